-- lua/gpipe/run_writer/follower.lua - a training run over several ranks: rank 0 has the folder, and
-- the others do with it what concerns all.
--
-- Every rank runs the script's loop. A checkpoint needs the values of all ranks, so all of them
-- save at the same steps; and all end after the same step, whichever was told to.

local checkpoint = require "gpipe.checkpoint"
local core = require "gpipe.core"
local nn_state = require "gpipe.nn.state"
local ranks = require "gpipe.ranks"

local follower = {}

--- Is the run's pipeline that of several ranks?
---@param pipe any
---@return boolean
function follower.is_shared(pipe) return pipe ~= nil and pipe.spread == true end

--- The reason why any rank wants to end, the same on all of them.
---@param reason string? of this rank
---@return string?
function follower.reason(reason)
  for _, one in ipairs(ranks.collect("run: end of a step", reason or false)) do
    if one then return one end
  end
end

-- ---- a lost rank -------------------------------------------------------------------------------

local shared = {} ---@type table<gpipe.Run, true>

--- Note a run over several ranks, or that it is over.
---@param run gpipe.Run
---@param is_open boolean
function follower.note(run, is_open)
  shared[run] = is_open or nil
  if not is_open then core.rank_goes_on(false) end
end

--- Tell the launcher, too, that the job can go on from a checkpoint, if the last one is written: on
--- another rank than the first, its own files of it.
---@param run gpipe.Run
function follower.note_checkpoint(run)
  if not run.shared or run.saved == 0 or run.saves.pending then return end
  if (run.saves.failed or 0) == 0 then core.rank_goes_on(true) end
end

-- A run that is a `<close>` variable has failed before its script has.
local function has_checkpoint(run)
  if not run.folder or not run.saves then return false end
  return run.saved > 0 and (run.follows or #run.saves:steps() > 0)
end

--- Has a rank been lost, and is there a checkpoint from which the job can go on?
---@return gpipe.Run? run that has the checkpoint
function follower.to_go_on()
  if not core.ranks_lost() then return nil end
  for run in pairs(shared) do
    if has_checkpoint(run) then return run end
  end
end

--- The same; says so.
---@return boolean
function follower.goes_on()
  local run = follower.to_go_on()
  if not run then return false end
  io.stderr:write(("gpipe: %s: a rank was lost; the same command goes on from the last "
    .. "checkpoint\n"):format(run.folder))
  return true
end

-- ---- checkpoints -------------------------------------------------------------------------------

-- What another rank has in the place of rank 0's gpipe.Saves.
local Saves = {}
Saves.__index = Saves

local function save(self, name, parts, background)
  local of = {}
  for key, value in pairs(parts) do of[key] = value end
  of.background = background
  local saving = checkpoint.save(self.path .. "/" .. name, of)
  self.pending = background and saving or nil
  return saving and true or nil
end

function Saves:save(step, parts, background)
  return save(self, ("step-%08d"):format(step), parts, background)
end

function Saves:best(name, parts, background)
  return save(self, "best-" .. name:gsub("[^%w_.-]", "_"), parts, background)
end

-- Take the result of the save in the background, or wait for it: of this rank's files. Rank 0 knows
-- how the whole save has ended.
function Saves:settle(wait)
  local pending = self.pending
  if not pending or not (wait or pending:done()) then return end
  self.pending = nil
  pending:finish()
end

-- Load the checkpoint that rank 0 has loaded.
function Saves:load(parts)
  local step = ranks.tell("run: checkpoint", nil, 0)
  if not step then return nil end
  local _ <close> = nn_state.load_in "apart"
  local extra = assert(checkpoint.load(("%s/step-%08d"):format(self.path, step), parts))
  return extra, step
end

---@param path string of the run
---@return table
function follower.saves(path) return setmetatable({ path = path .. "/checkpoints" }, Saves) end

--- On rank 0: load the newest checkpoint and let the others load the same.
---@param saves gpipe.Saves
---@param parts table
---@return table? extra
---@return integer? step
function follower.load_first(saves, parts)
  local extra, step = saves:load(parts) -- if it raises, the others see that this rank ends
  ranks.tell("run: checkpoint", step, 0)
  return extra, step
end

return follower
