-- lua/gpipe/pipeline/plan/parameters.lua - checks before a pipeline allocates the parameters of a
-- model: that they fit, and that a checkpoint can hold their names.

local balance = require "gpipe.pipeline.plan.balance"
local core = require "gpipe.core"
local counted = require "gpipe.counted"
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

-- The smallest number of devices, each with so many stages, that fit a memory, and the balance.
local function fitting(bytes, capacity, each)
  for stages = each, #bytes, each do
    local list, at, fits = balance.cut(bytes, stages), 0, true
    for _, count in ipairs(list) do
      local sum = 0
      for i = at + 1, at + count do sum = sum + bytes[i] end
      at, fits = at + count, fits and each * sum <= capacity
    end
    if fits then return stages // each, list end
  end
end

-- The least that a device of this kind of memory may take: with so much on each any stage fits.
local function least_of(list, one)
  local least = one.capacity
  for _, other in ipairs(list) do
    if other.is_cap == one.is_cap and other.capacity then
      least = math.min(least, other.capacity)
    end
  end
  return least
end

-- What would help if a memory is too small. Schedules whose stages lie on several devices, or in an
-- order of their own, take other numbers of devices than any.
local function advice(bytes, list, one, made)
  if one.device.kind == "cpu" and not one.is_cap then
    return "CPU devices share it, so more stages do not help: fewer parameters, or GPUs"
  end
  if made.copies > 1 then return "expected more devices, or fewer parameters" end
  local each = made.stages // made.devices
  local devices, counts = fitting(bytes, least_of(list, one), each)
  if not devices then
    return ("no number of stages would fit devices that may take %s: the largest layer alone is "
      .. "too large"):format(sizes.text(least_of(list, one)))
  end
  local words = #counts <= 16 and (" (balance = {%s})"):format(table.concat(counts, ", ")) or ""
  local on = each > 1 and " on " .. counted(devices, "device") or ""
  return ("%s would fit%s%s"):format(counted(#counts, "stage"), on, words)
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
  local list = fill(bytes, counts, made, chosen)
  local one, is_over = worst(list)
  if not is_over then return end
  errors.raise_as("memory", "%s: parameters and gradients take %s of %s: %s; %s", WHO,
    sizes.text(one.bytes), room_of(one), breakdown(model, bytes, one),
    advice(bytes, list, one, made))
end

return parameters
