-- lua/gpipe/pipeline/memory.lua - what to do if a device has too little memory for a plan.
--
-- Plans of other shapes and garbage hold memory too, so they are freed first. If that does not
-- help, the error says which number of micro-batches or which checkpoint mode would fit, or what
-- the devices would have to have. All of that is planned without allocating, as a pipeline with
-- these settings would plan it.

local budgets = require "gpipe.pipeline.plan.budgets"
local caps = require "gpipe.pipeline.plan.caps"
local core = require "gpipe.core"
local sizes = require "gpipe.sizes"

local memory = {}

local TRIES = 8 -- doublings of the number of micro-batches
-- Fits where another mode does, and takes less time than those that make expensive values again.
local AUTO = 'checkpoint = "auto" (as much as there is room for)'

-- The modes that keep less than this one, in descending order of what they keep; "auto", which may
-- keep as little as it has to, comes last. "offload" keeps all, but elsewhere.
local function thriftier(mode)
  local modes, found = {}, false
  for _, name in ipairs(core.checkpoints) do -- in the order of what they keep
    if found and name ~= "auto" and name ~= "offload" then modes[#modes + 1] = name end
    found = found or name == mode
  end
  if mode ~= "auto" then modes[#modes + 1] = "auto" end
  return modes
end

-- ---- one setting --------------------------------------------------------------------------------

---@class gpipe.MemoryTry a setting of chunks and checkpoint
---@field chunks? integer nil: those of the pipeline
---@field mode? string nil: that of the pipeline
---@field needs gpipe.PlanNeed[]
---@field room table per device, and field `host`
---@field share number how full the fullest device would be

-- What a setting takes; nil if no such plan is possible.
local function try(pipe, specify, training, chunks, mode)
  local good, needs, room = pcall(caps.try, pipe,
    function() return specify(chunks or pipe.chunks) end, training, mode or pipe.checkpoint)
  if not good then return nil end
  return { chunks = chunks, mode = mode, needs = needs, room = room,
    share = budgets.fullest(needs, room) }
end

-- "chunks = 8 with checkpoint = "always"".
local function setting(one)
  local parts = {}
  if one.chunks then parts[#parts + 1] = "chunks = " .. one.chunks end
  if one.mode then parts[#parts + 1] = ("checkpoint = %q"):format(one.mode) end
  return parts[1] and table.concat(parts, " with ")
end

-- The setting, and what it takes of the fullest device.
local function words(one)
  local largest = 0
  for _, need in ipairs(one.needs) do largest = math.max(largest, budgets.total(need)) end
  return ("%s (%s)"):format(setting(one), sizes.text(largest))
end

-- What the devices that are short would have to have: "device cpu:1 would need 3.2 MiB".
local function lacking(pipe, one)
  local list = {}
  for d, need in ipairs(one.needs) do
    local device, room, there = pipe.devices[d], one.room[d], one.room.host and one.room.host[d]
    local more = room and budgets.total(need) - room or 0
    if more > 0 and device.cap then
      list[#list + 1] = ("device %s would need %s (option 'memory')"):format(device.name,
        sizes.at_least(device.cap + more))
    elseif more > 0 then
      list[#list + 1] = ("device %s would need %s more than there is"):format(device.name,
        sizes.at_least(more))
    end
    if there and need.host > there then
      list[#list + 1] = ("device %s would need %s of the host's memory (option 'host_memory')")
        :format(device.name, sizes.at_least(device.host_memory + need.host - there))
    end
  end
  return table.concat(list, ", ")
end

-- ---- all of them --------------------------------------------------------------------------------

-- The first number of micro-batches that fits with one of the modes. See: hears of each try.
local function more_chunks(pipe, rows, modes, see)
  local chunks = pipe.chunks
  for _ = 1, TRIES do
    if chunks >= rows then break end
    chunks = math.min(2 * chunks, rows)
    for _, mode in ipairs(modes) do
      local one = see(chunks, mode or nil)
      if one and one.share <= 1 then return one end
    end
  end
end

-- The first mode that fits with as many micro-batches.
local function other_mode(modes, see)
  for _, mode in ipairs(modes) do
    local one = see(nil, mode)
    if one and one.share <= 1 then return one end
  end
end

--- The settings that would fit, as the end of an error text.
---@param pipe table
---@param specify fun(chunks: integer): table the specification of the plan for this number of
--- micro-batches
---@param rows integer rows of the mini-batch
---@param training boolean whether checkpoint modes matter
---@return string
function memory.advise(pipe, specify, rows, training)
  local found, least = {}, nil
  local function see(chunks, mode)
    local one = try(pipe, specify, training, chunks, mode)
    if one and (not least or one.share < least.share) then least = one end
    return one
  end
  local modes = training and thriftier(pipe.checkpoint) or {}
  see()
  local other = other_mode(modes, see)
  if other and other.mode ~= "auto" then found[1] = words(other) end
  -- "auto" follows "except_last" or "always" where nothing else fits
  if other and other.mode ~= "selective" then found[#found + 1] = AUTO end
  local more = more_chunks(pipe, rows, { false }, see)
    or #found == 0 and more_chunks(pipe, rows, modes, see)
  if more then found[#found + 1] = words(more) end
  if #found > 0 then return "; would fit: " .. table.concat(found, ", or ") end
  if not least then return "; no other setting of chunks and checkpoint can be planned" end
  local nearest = setting(least)
  return ("; no setting of chunks and checkpoint would fit: %s%s; or fewer rows, or more devices")
    :format(nearest and nearest .. " comes nearest, and " or "", lacking(pipe, least))
end

return memory
