-- lua/gpipe/pipeline/plan/parameters.lua - checks before a pipeline allocates the parameters of a
-- model: that they fit, and that a checkpoint can hold their names.

local balance = require "gpipe.pipeline.plan.balance"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"
local sizes = require "gpipe.sizes"

local parameters = {}

local WHO = "gp.pipeline"

local LONGEST_NAME = 4096 -- bytes, as safetensors files take them (GP_ARCHIVE_MAX_NAME)

--- Refuse names that could not be saved, because hours of training later would be too late.
---@param model nn.Sequential
function parameters.check_names(model)
  for _, list in ipairs { model:parameters(), model:buffers() } do
    for _, entry in ipairs(list) do
      if #entry.name > LONGEST_NAME then
        errors.raise("%s: the name of a parameter, '%s', has %d bytes, expected at most %d: no "
          .. "checkpoint could hold it", WHO, errors.name(entry.name), #entry.name, LONGEST_NAME)
      end
    end
  end
end

-- ---- memory ------------------------------------------------------------------------------------

-- The bytes of each layer's parameters with their gradients, and of its buffers; a shared parameter
-- counts for its first layer.
local function layer_bytes(model)
  local bytes, seen = {}, {}
  for i = 1, #model do
    bytes[i] = 0
    for kind, list in ipairs { model[i]:parameters(), model[i]:buffers() } do
      for _, entry in ipairs(list) do
        local param = entry.param
        if not seen[param] then
          seen[param] = true
          local copies = kind == 1 and param.requires_grad and 2 or 1
          bytes[i] = bytes[i] + copies * sizes.bytes(param.shape, param.dtype)
        end
      end
    end
  end
  return bytes
end

-- The capacity of a memory: a GPU's, or the machine's for its CPU devices.
local function capacity_of(device)
  if device.kind == "cpu" then return core.machine().memory end
  if device.capacity then return device.capacity end -- of a rank's GPU
  local index = math.tointeger(tonumber(device.memory:match "%d+$"))
  local gpu = index and (core.gpus(true) or {})[index + 1]
  return gpu and gpu.memory
end

local function largest_of(bytes, first, last)
  local at = first
  for i = first, last do
    if bytes[i] > bytes[at] then at = i end
  end
  return at
end

-- The smallest number of stages that each fit a memory, and their balance.
local function fitting(bytes, capacity)
  for stages = 1, #bytes do
    local list, at, fits = balance.cut(bytes, stages), 0, true
    for _, count in ipairs(list) do
      local sum = 0
      for i = at + 1, at + count do sum = sum + bytes[i] end
      at, fits = at + count, fits and sum <= capacity
    end
    if fits then return stages, list end
  end
end

-- What would help if a memory is too small.
local function advice(bytes, one)
  local capacity = one.capacity
  if one.device.kind == "cpu" and not one.is_cap then
    return "CPU devices share it, so more stages do not help: fewer parameters, or GPUs"
  end
  local stages, list = fitting(bytes, capacity)
  if not stages then
    return "no number of stages would fit: the largest layer alone is too large"
  end
  local words = #list <= 16 and (" (balance = {%s})"):format(table.concat(list, ", ")) or ""
  return ("%d stages would fit%s"):format(stages, words)
end

-- The memories that a stage on a device counts in: the device's, and the device's share of it.
local function memories_of(d, device)
  local list = { { name = device.place or device.memory, capacity = capacity_of(device) } }
  if device.cap then list[2] = { name = d, capacity = device.cap, is_cap = true } end
  return list
end

-- Add up the stages in each memory, in the order in which stages come to them.
local function fill(bytes, counts, made, chosen)
  local sums, at, list = {}, 0, {}
  for s, count in ipairs(counts) do
    local stage = { index = s - 1, first = at + 1, last = at + count, bytes = 0 }
    for i = stage.first, stage.last do stage.bytes = stage.bytes + bytes[i] end
    at = at + count
    local placed = made.placement[s - 1]
    for _, d in ipairs(type(placed) == "table" and placed or { placed }) do
      for _, memory in ipairs(memories_of(d, chosen[d + 1])) do
        local one = sums[memory.name]
        if not one then
          one = { device = chosen[d + 1], bytes = 0, stages = {}, capacity = memory.capacity,
            is_cap = memory.is_cap }
          sums[memory.name], list[#list + 1] = one, one
        end
        one.bytes = one.bytes + stage.bytes
        one.stages[#one.stages + 1] = stage
      end
    end
  end
  return list
end

-- The first memory that is too small, or else the fullest.
local function worst(list)
  local most = list[1]
  for _, one in ipairs(list) do
    if one.capacity and one.bytes > one.capacity then return one, true end
    if one.bytes > most.bytes then most = one end
  end
  return most, false
end

-- Name the stage and the layer that take most of a memory.
local function breakdown(model, bytes, one)
  local stage = one.stages[1]
  for _, other in ipairs(one.stages) do
    if other.bytes > stage.bytes then stage = other end
  end
  local layer = largest_of(bytes, stage.first, stage.last)
  return ("stage %d (layers %d-%d) %s, of that layer %d (%s) %s"):format(stage.index, stage.first,
    stage.last, sizes.text(stage.bytes), layer, nn.describe(model[layer]), sizes.text(bytes[layer]))
end

-- "cuda:0, which has 8.0 GiB".
local function room_of(one)
  local has = sizes.text(one.capacity)
  if one.is_cap then
    return ("device %s, which may take %s (option 'memory')"):format(one.device.name, has)
  end
  local device = one.device
  local name = device.kind == "cpu" and "the machine's memory"
    or device.place and device.name or device.memory
  return ("%s, which has %s"):format(name, has)
end

--- Refuse parameters that are larger than the memory they are to lie in. If the system promises
--- more memory than there is, the process would be killed later.
---@param model nn.Sequential
---@param counts integer[] layers of the stages
---@param made gpipe.Schedule
---@param chosen table[] devices
function parameters.check_memory(model, counts, made, chosen)
  local bytes = layer_bytes(model)
  local one, is_over = worst(fill(bytes, counts, made, chosen))
  if not is_over then return end
  errors.raise_as("memory", "%s: parameters and gradients take %s of %s: %s; %s", WHO,
    sizes.text(one.bytes), room_of(one), breakdown(model, bytes, one), advice(bytes, one))
end

return parameters
