-- lua/gpipe/run_writer/saves.lua - the checkpoints of a run: checkpoints/step-00000100 and
-- best-NAME.
--
-- They are written in the background unless the run is ending. An older one is removed only when a
-- newer one is complete, so that there is always one to resume from.

local checkpoint = require "gpipe.checkpoint"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local nn_state = require "gpipe.nn.state"
local progress = require "gpipe.progress"

---@class gpipe.Saves
---@field path string of the folder of checkpoints
---@field keep integer
---@field failed integer saves that failed since the last good one
---@field pending {saving: gpipe.Saving, name: string}? the one that is being written
local Saves = {}
Saves.__index = Saves

local saves = {}

local MOST_FAILURES = 3

---@param path string of the run
---@param keep integer newest checkpoints to keep
---@return gpipe.Saves
function saves.new(path, keep)
  local self = setmetatable({ path = path .. "/checkpoints", keep = keep, failed = 0 }, Saves)
  self:clear()
  return self
end

--- Remove the remains of a process that was killed while it saved or removed a checkpoint. The
--- caller holds the lock of the run.
function Saves:clear()
  for _, name in ipairs(core.folder_names(self.path) or {}) do
    if name:find "^%.step%-" or name:find "^%.best%-" then
      core.folder_remove(self.path .. "/" .. name)
    end
  end
end

-- ---- which there are ---------------------------------------------------------------------------

local function name_of(step) return ("step-%08d"):format(step) end

--- List the steps of the checkpoints that are there, newest first.
---@return integer[]
function Saves:steps()
  local list = {}
  for _, name in ipairs(core.folder_names(self.path) or {}) do
    local step = name:match "^step%-(%d+)$"
    if step then list[#list + 1] = math.tointeger(tonumber(step)) end
  end
  table.sort(list, function(a, b) return a > b end)
  return list
end

-- ---- saving ------------------------------------------------------------------------------------

-- Rename before removing: a process that is killed half-way leaves nothing that looks complete.
local function remove(self, name)
  local old = ("%s/.%s.old"):format(self.path, name)
  core.folder_remove(old)
  if os.rename(self.path .. "/" .. name, old) then core.folder_remove(old) end
end

local function prune(self)
  for i, step in ipairs(self:steps()) do
    if i > self.keep then remove(self, name_of(step)) end
  end
end

-- Report a save that failed; the next one tries again. After several failures in a row the run
-- ends: hours of training that cannot be saved are worse than an error.
local function note(self, good, message)
  if good then
    self.failed = 0
    prune(self)
    return
  end
  self.failed = self.failed + 1
  progress.say(("gpipe: the checkpoint was not saved: %s"):format(message))
  if self.failed >= MOST_FAILURES then
    errors.raise("gp.run: %d checkpoints in a row could not be saved: %s", self.failed, message)
  end
end

--- Take the result of the save in the background, if it has ended.
---@param wait? boolean true: wait for its end
function Saves:settle(wait)
  local pending = self.pending
  if not pending or not (wait or pending:done()) then return end
  self.pending = nil
  note(self, pending:finish())
end

local function save(self, name, parts, background)
  self:settle(true)
  local of = {}
  for key, value in pairs(parts) do of[key] = value end
  of.background = background
  local saving, message = checkpoint.save(self.path .. "/" .. name, of)
  if saving and background then
    self.pending = saving
    return true
  end
  note(self, saving, message)
  return saving
end

--- Save the checkpoint of a step.
---@param step integer
---@param parts table options of gp.checkpoint.save
---@param background boolean
---@return boolean? true where it was saved, or is being saved
function Saves:save(step, parts, background) return save(self, name_of(step), parts, background) end

--- Save the checkpoint that is best by some measure.
---@param name string of the measure
---@param parts table
---@param background boolean
function Saves:best(name, parts, background)
  return save(self, "best-" .. name:gsub("[^%w_.-]", "_"), parts, background)
end

-- ---- going on ----------------------------------------------------------------------------------

--- Load the newest complete checkpoint; damaged ones are named on standard error.
--- Errors: raises where checkpoints are there and none can be read, or where one does not fit.
---@param parts table options of gp.checkpoint.load
---@return table? extra nil where there is none
---@return integer? step
function Saves:load(parts)
  local _ <close> = nn_state.load_in "apart" -- the others load what could be read here
  local reasons = {}
  for _, step in ipairs(self:steps()) do
    local extra, message = checkpoint.load(self.path .. "/" .. name_of(step), parts)
    if extra then return extra, step end
    reasons[#reasons + 1] = message
    progress.say(("gpipe: %s; trying an older checkpoint"):format(message))
  end
  if #reasons > 0 then
    errors.raise("gp.run: no checkpoint in %s can be read: %s", self.path,
      table.concat(reasons, "; "))
  end
  return nil
end

return saves
