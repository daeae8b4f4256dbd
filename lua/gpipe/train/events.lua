-- lua/gpipe/train/events.lua - `gp.train.events`: writes a file that TensorBoard shows.
--
-- Records are buffered for a few seconds and then written at once. If a full disk cuts a write off,
-- the part is removed, so that a reader never finds half a record in the middle; the caller gets an
-- error and can go on.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local bytes = require "gpipe.train.event_bytes"
local histogram_of = require "gpipe.train.histogram"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local parameters = require "gpipe.train.parameters"
local shared = require "gpipe.ranks.state"

local PAUSE = 5          -- longest time in seconds that a record is buffered
local MOST_WAITING = 200 -- records

---@class gpipe.Events
---@field path string of the file
---@field lost integer records that could not be written
---@field file file*? nil if it is closed
local Events = { __name = "gpipe.Events" }
Events.__index = Events

local WHO = "gp.train.events"

-- ---- the file ----------------------------------------------------------------------------------

-- Time differences come from a clock that is never set back.
local epoch = os.time() - core.seconds()
local function now() return epoch + core.seconds() end

local made = 0 -- files made by this process

-- A name as TensorBoard needs it: found by "tfevents", sorted by the seconds.
local function own_name(folder)
  local pid, host = core.process()
  local name = ("%s/events.out.tfevents.%010d.%s.%d.%d"):format(folder, os.time(),
    host ~= "" and host or "host", pid, made)
  made = made + 1
  return name
end

local function failed(self, message, code)
  return nil, ("%s: cannot write: %s"):format(self.path, message:gsub("^.*: ", "")), code or "io"
end

--- Write the buffered records. Records that the system refuses are lost and counted in `lost`;
--- later ones are written after the last whole record.
--- ```lua
--- local events <close> = gp.train.events(os.tmpname() .. ".tfevents")
--- events:scalar(1, "loss", 2.5)
--- assert(events:flush())
--- ```
---@return boolean? true
---@return string? message
---@return string? code "io"
function Events:flush()
  self.flushed_at = core.seconds()
  local count = #self.waiting
  if count == 0 then return true end
  if not self.file then return failed(self, "it is closed", "closed") end
  local text = table.concat(self.waiting)
  self.waiting = {}
  local good, message = self.file:write(text)
  if good then
    self.bytes = self.bytes + #text
    return true
  end
  self.lost = self.lost + count
  core.file_cut(self.path, self.bytes)
  return failed(self, ("%s (%d records lost so far)"):format(message, self.lost))
end

local function add(self, event)
  if not self.file then
    errors.raise("%s: %s is closed, expected an open file", WHO, self.path)
  end
  self.waiting[#self.waiting + 1] = bytes.record(event)
  if #self.waiting < MOST_WAITING and core.seconds() - self.flushed_at < PAUSE then return true end
  return self:flush()
end

--- Write the buffered records and close the file. A `<close>` variable does this too.
--- ```lua
--- local events = gp.train.events(os.tmpname() .. ".tfevents")
--- assert(events:close())
--- ```
---@return boolean? true
---@return string? message
---@return string? code
function Events:close()
  if not self.file then return true end
  local good, message, code = self:flush()
  self.file:close()
  self.file = nil
  return good, message, code
end

function Events:__close() self:close() end
function Events:__gc() self:close() end
function Events:__tostring()
  return ("events in %s (%d bytes%s)"):format(self.path, self.bytes,
    self.lost > 0 and (", %d records lost"):format(self.lost) or "")
end

-- ---- records -----------------------------------------------------------------------------------

local function check_place(who, step, name)
  options.argument(who, "step", step, { type = "integer", min = 0, required = true })
  options.argument(who, "name", name, { type = "string", required = true })
end

--- Add a number, as a point of the curve `name`.
--- Errors: raises for a step below 0 and for other values; nil, message, code if the disk refuses,
--- after which training may go on.
--- ```lua
--- local events <close> = gp.train.events(os.tmpname() .. ".tfevents")
--- assert(events:scalar(7, "train/loss", 2.5))
--- ```
---@param step integer
---@param name string
---@param value number
---@param time? number seconds since 1970; now
---@return boolean? true
---@return string? message
---@return string? code "io"
function Events:scalar(step, name, value, time)
  check_place("events:scalar", step, name)
  options.argument("events:scalar", "value", value, { type = "number", required = true })
  options.argument("events:scalar", "time", time, { type = "number" })
  return add(self, bytes.scalar(time or now(), step, name, value))
end

--- Add a text, shown as Markdown: the settings of a run, a sample.
--- Errors: as those of scalar.
--- ```lua
--- local events <close> = gp.train.events(os.tmpname() .. ".tfevents")
--- assert(events:text(0, "config", "lr = 0.1"))
--- ```
---@param step integer
---@param name string
---@param text string
---@param time? number seconds since 1970; now
---@return boolean? true
---@return string? message
---@return string? code "io"
function Events:text(step, name, text, time)
  check_place("events:text", step, name)
  options.argument("events:text", "text", text, { type = "string", required = true })
  options.argument("events:text", "time", time, { type = "number" })
  return add(self, bytes.text(time or now(), step, name, text))
end

--- Add a histogram of the elements of a tensor. Elements that are not finite are left out; if there
--- are no others, nothing is added. Cost: 0.2 seconds for a million elements.
--- Errors: as those of scalar.
--- ```lua
--- local events <close> = gp.train.events(os.tmpname() .. ".tfevents")
--- assert(events:histogram(1, "weights", gp.randn {100}))
--- ```
---@param step integer
---@param name string
---@param tensor gpipe.Tensor
---@param time? number seconds since 1970; now
---@return boolean? true
---@return string? message
---@return string? code "io"
function Events:histogram(step, name, tensor, time)
  check_place("events:histogram", step, name)
  if not is_tensor(tensor) then
    errors.raise("events:histogram: the tensor is %s, expected a tensor", errors.show(tensor))
  end
  options.argument("events:histogram", "time", time, { type = "number" })
  local counted = histogram_of(tensor)
  return not counted or add(self, bytes.histogram(time or now(), step, name, counted))
end

--- Add histograms of all parameters as `parameters/NAME` and of their gradients as
--- `gradients/NAME`. Call it now and then, between `pipe:step` and `opt:step`. In a job all ranks
--- call it together, because it brings what other ranks hold.
--- Errors: as those of scalar.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- local events <close> = gp.train.events(os.tmpname() .. ".tfevents")
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
--- assert(events:parameters(1, pipe))
--- ```
---@param step integer
---@param of gpipe.Pipeline|nn.Module|table a list such as pipe:parameters "weight$"
---@return boolean? true
---@return string? message
---@return string? code "io"
function Events:parameters(step, of)
  check_place("events:parameters", step, "")
  local entries, settle = parameters.read("events:parameters", of)
  settle()
  for _, entry in ipairs(entries) do
    local value, grad = shared.value(entry.param), shared.gradient(entry.param)
    local good, message, code = self:histogram(step, "parameters/" .. entry.name, value)
    if good and grad then
      good, message, code = self:histogram(step, "gradients/" .. entry.name, grad)
    end
    if not good then return nil, message, code end
  end
  return true
end

-- ---- making one --------------------------------------------------------------------------------

local function open_file(path)
  local there = io.open(path, "rb")
  if there then
    local taken = there:seek "end" ~= 0
    there:close()
    if taken then
      return nil, path .. ": cannot write: it exists, expected a new file or a folder", "io"
    end
  end
  local file, message = io.open(path, "ab")
  if not file then return nil, message, "io" end
  file:setvbuf "no" -- records are buffered here, and each write is whole
  return file
end

--- Open a file of events for TensorBoard (`tensorboard --logdir FOLDER`). In a folder, which is
--- made if it is missing, the file gets its own name. A path whose name contains "tfevents" is the
--- file itself. Records are written every few seconds, and at `flush` and `close`.
---
--- `start` is the first step of a process that resumes a run: TensorBoard then ignores what older
--- files in the folder say about this and later steps.
--- Errors: raises for wrong arguments; nil, message, code if the system refuses, or if the file
--- exists.
--- ```lua
--- local folder = os.tmpname()
--- os.remove(folder)
--- local events <close> = assert(gp.train.events(folder))
--- for step = 1, 3 do events:scalar(step, "loss", 1 / step) end
--- ```
---@param path string
---@param opts? {start?: integer, time?: number} time: of the first record, in seconds since 1970;
--- now
---@return gpipe.Events?
---@return string? message
---@return string? code "io"
local function events(path, opts)
  options.argument(WHO, "path", path, { type = "string", required = true })
  opts = options.check(WHO, opts,
    { start = { type = "integer", min = 0 }, time = { type = "number" } })
  if not path:match "[^/]*$":find("tfevents", 1, true) then
    local good, message, code = core.folder_make(path)
    if not good then return nil, message, code end
    path = own_name(path)
  end
  local file, message, code = open_file(path)
  if not file then return nil, message, code end
  local opened = setmetatable({ path = path, file = file, waiting = {}, bytes = 0, lost = 0,
    flushed_at = core.seconds() }, Events)
  add(opened, bytes.version(opts.time or now()))
  if opts.start then add(opened, bytes.start(opts.time or now(), opts.start)) end
  local good
  good, message, code = opened:flush()
  if not good then return nil, message, code end
  return opened
end

return { new = events, methods = Events }
