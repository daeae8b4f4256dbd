-- lua/gpipe/checkpoint/contents.lua - what a checkpoint holds: the tensors of each stage as
-- entries, and everything else as a plain table.
--
-- Names of tensors do not depend on the cut: "model.3.weight", "optimizer.3.weight.moment1". The
-- file that holds a tensor does depend on it, but loading looks in all files.

local core = require "gpipe.core"
local names = require "gpipe.nn.names"
local object = require "gpipe.pipeline.object"
local optimizer = require "gpipe.optim.optimizer"
local progress = require "gpipe.pipeline.progress"
local random = require "gpipe.random"
local settings = require "gpipe.optim.settings"
local shared = require "gpipe.ranks.state"

local contents = {}

-- ---- tensors -----------------------------------------------------------------------------------

local function model_entries(model)
  local entries, buffers = names.parameters(model), names.buffers(model)
  return table.move(buffers, 1, #buffers, #entries + 1, entries)
end

--- List all tensors as entries {name, stage, value, box}; a value shares the memory of its tensor,
--- and is nil where another rank holds it (gpipe.ranks.state).
---@param of {pipe: gpipe.Pipeline?, model: nn.Module?, opt: gpipe.Optimizer?}
---@return {name: string, stage: integer, value: gpipe.Tensor?, box: gpipe.Tensor?}[]
function contents.entries(of)
  local entries, stage_of = {}, {}
  local function add(part, stage, entry)
    entries[#entries + 1] = {
      name = part .. "." .. entry.name, stage = stage, box = entry.box, shape = entry.shape,
      value = not shared.is_away(entry) and entry.value or nil,
    }
  end
  for _, entry in ipairs(model_entries(of.model)) do
    local stage = of.pipe and of.pipe.stage_of[(of.pipe.layer_of[entry.param] or 0) + 1] or 0
    stage_of[entry.name] = stage
    add("model", stage, entry)
  end
  for _, entry in ipairs(of.opt and optimizer.entries(of.opt) or {}) do
    add("optimizer", stage_of[entry.param] or 0, entry)
  end
  return entries
end

-- ---- the rest ----------------------------------------------------------------------------------

local function first_line(path)
  local file <close> = io.open(path)
  return file and file:read "l" or nil
end

local function script()
  local list = rawget(_G, "arg")
  local path = type(list) == "table" and list[0] or nil
  local file <close> = path and io.open(path, "rb")
  local text = file and file:read "a"
  local words = {}
  for i = 1, type(list) == "table" and #list or 0 do words[i] = tostring(list[i]) end
  return { path = path, text = text, arguments = words }
end

local function devices_of(pipe)
  local list = {}
  for i, device in ipairs(pipe.devices) do list[i] = device.name end
  return list
end

--- Collect all state that is no tensor of the model or the optimizer. A resumed run needs
--- `progress`, `optimizer`, `random`, `data` and `extra`; the other fields are for people.
---@param of table
---@return table
function contents.state(of)
  local machine = core.machine()
  local state = {
    version = core.version, random = random.state(), extra = of.extra, script = script(),
    data = of.data and of.data:state(),
    saved = os.date "!%Y-%m-%dT%H:%M:%SZ",
    machine = { host = first_line "/proc/sys/kernel/hostname", model = machine.model,
      cores = machine.cores, isa = machine.isa },
  }
  if of.pipe then
    state.progress = of.pipe:progress()
    state.pipeline = {
      balance = of.pipe.balance, chunks = of.pipe.chunks, schedule = of.pipe.schedule_name,
      replicas = of.pipe.replicas, sum_group = of.pipe.sum_group,
      checkpoint = of.pipe.checkpoint, precision = of.pipe.precision.name,
      devices = devices_of(of.pipe),
    }
  end
  if of.opt then state.optimizer = settings.get(of.opt) end
  return state
end

--- Raise if a part of a state does not fit, before anything is set. Whether `data`, an object of
--- the script's, fits can only be tried: if it refuses, it is put back as it was.
---@param of table
---@param state table
function contents.check(of, state)
  if of.pipe then progress.check(object.inside(of.pipe), state.progress, true) end
  random.check(state.random)
  if not of.data then return end
  local before = of.data:state()
  local good, message = pcall(of.data.restore, of.data, state.data)
  if good then return end
  pcall(of.data.restore, of.data, before)
  error(message, 0)
end

--- Set the state that contents.check has accepted, except the tensors, and the position in the
--- data, which contents.check has set already.
---@param of table
---@param state table
function contents.restore(of, state)
  if of.pipe then progress.set(object.inside(of.pipe), state.progress, true) end
  if of.opt then settings.restore(of.opt, state.optimizer) end
  random.restore(state.random)
end

return contents
