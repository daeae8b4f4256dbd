-- lua/gpipe/run_writer/records.lua - the two logs of a run, one JSON object a line, and its events.
--
--   log.jsonl     what the script logged, and nothing else: the same bytes however often the run
--                 was stopped and resumed
--   timing.jsonl  the time, the speed and the memory of each step
--   events.*      the values of the log for TensorBoard, a file for each process
--
-- A checkpoint holds the lengths of both. A run that resumes from it truncates them there, so that
-- no step is in them twice. A full disk costs records, not the run; one warning says so.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_plain = require "gpipe.plain"
local is_tensor = require "gpipe.tensor.is"
local events = require "gpipe.train.events"
local json = require "gpipe.io.json"
local progress = require "gpipe.progress"

---@class gpipe.Records
---@field path string of the folder
---@field files table<string, file*>
---@field bytes table<string, integer> lengths of the files
---@field events gpipe.Events?
local Records = {}
Records.__index = Records

local records = {}

local NAMES = { "log.jsonl", "timing.jsonl" }

---@param path string of the folder
---@return gpipe.Records
function records.new(path)
  return setmetatable({ path = path, files = {}, bytes = {} }, Records)
end

local function warn_once(self, message)
  if self.warned then return end
  self.warned = true
  progress.say(("gpipe: %s: %s: records are lost, training goes on (said once)"):format(
    self.path, message))
end

-- ---- lengths -----------------------------------------------------------------------------------

--- Flush both files to the disk and return their lengths.
---@return integer[]
function Records:lengths()
  local list = {}
  for i, name in ipairs(NAMES) do
    local good, message = core.file_sync(self.path .. "/" .. name)
    if not good then warn_once(self, message) end
    list[i] = self.bytes[name] or 0
  end
  return list
end

-- Cut off an incomplete last line, or the next record would continue it. Returns the new length.
local function whole_lines(path, size)
  local file <close> = assert(io.open(path, "rb"))
  local at = size
  while at > 0 do
    local first = math.max(0, at - 4096)
    file:seek("set", first)
    local block = file:read(at - first) or ""
    local last = block:match ".*()\n"
    if last then
      at = first + last
      break
    end
    at = first
  end
  return at < size and core.file_cut(path, at) or at
end

--- Truncate both files to the lengths in a checkpoint (0 without one) and open them.
--- Errors: raises where the system refuses.
---@param step integer that is over
---@param lengths? integer[]
---@return string? warning where a file is shorter than it was
function Records:open(step, lengths)
  local warning
  for i, name in ipairs(NAMES) do
    local path = self.path .. "/" .. name
    local file, message = io.open(path, "ab")
    if not file then errors.raise("gp.run: %s", message) end
    local wanted = lengths and lengths[i] or 0
    local left, reason = core.file_cut(path, wanted)
    if not left then errors.raise("gp.run: %s", reason) end
    if left < wanted then
      left = whole_lines(path, left)
      warning = ("%s has %d bytes, expected %d: records are missing"):format(path, left, wanted)
    end
    file:setvbuf "no" -- a record is one write: it is there whole, or not at all
    self.files[name], self.bytes[name] = file, left
  end
  local reason
  self.events, reason = events.new(self.path, { start = step + 1 })
  if not self.events then warn_once(self, reason) end
  return warning
end

function Records:close()
  if self.events then self.events:close() end
  for _, file in pairs(self.files) do file:close() end
  self.files = {}
end

-- ---- records -----------------------------------------------------------------------------------

-- Append a line; where the disk is full, cut off the part that was written.
local function append(self, name, line)
  local good, message = self.files[name]:write(line .. "\n")
  if good then
    self.bytes[name] = self.bytes[name] + #line + 1
    return
  end
  core.file_cut(self.path .. "/" .. name, self.bytes[name])
  warn_once(self, message)
end

local function scalar(name, value)
  if is_tensor(value) and value:numel() == 1 then value = value:item() end
  local kind = type(value)
  if kind == "number" or kind == "boolean" or kind == "string" then return value end
  errors.raise("run:log: '%s' is %s, expected a number, a scalar tensor, a string or a boolean",
    tostring(name), errors.show(value))
end

local function word(value)
  return value ~= value and "nan" or value > 0 and "inf" or "-inf"
end

--- Turn values into what is logged: scalar tensors become numbers, a list its mean. An empty list
--- (an asynchronous schedule that has no loss yet) is left out.
---@param values table<string, any>
---@return table<string, number|boolean|string>
function records.values(values)
  local found = {}
  for name, value in pairs(values) do
    if type(name) ~= "string" or name == "step" or name == "nonfinite" then
      errors.raise("run:log: a value is named %s, expected a string other than 'step' and "
        .. "'nonfinite'", errors.show(name))
    end
    if is_plain(value) then
      local sum = 0
      for _, one in ipairs(value) do sum = sum + scalar(name, one) end
      value = #value > 0 and sum / #value or nil
    end
    if value ~= nil then found[name] = scalar(name, value) end
  end
  return found
end

--- Append a record to the log.
---@param step integer
---@param values table<string, number|boolean|string> of records.values
function Records:log(step, values)
  local fields, bad = { step = step }, nil
  for name, value in pairs(values) do
    fields[name] = value
    if type(value) == "number" and (value ~= value or math.abs(value) == math.huge) then
      bad = bad or {}
      bad[name] = word(value)
      fields[name] = nil
    end
  end
  for name in pairs(bad or {}) do fields[name] = 0 / 0 end -- null
  fields.nonfinite = bad
  append(self, "log.jsonl", json.line({ "step" }, fields))
  for name, value in pairs(self.events and values or {}) do
    if type(value) == "number" then
      local good, message = self.events:scalar(step, name, value)
      if not good then warn_once(self, message) end
    end
  end
end

--- Write the settings to the events, so that TensorBoard shows them.
---@param text string
function Records:describe(text)
  if self.events then self.events:text(0, "config", "```\n" .. text .. "\n```") end
end

--- Append a record to timing.jsonl.
---@param step integer
---@param fields table<string, any>
function Records:time(step, fields)
  fields.step = step
  append(self, "timing.jsonl", json.line({ "step", "time" }, fields))
end

return records
