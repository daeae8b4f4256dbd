-- lua/gpipe/pipeline/areas.lua - pipe:memory(): what a pipeline takes of each device's memory, by
-- what it is for.
--
-- Every byte was planned before it was allocated. The work area, which holds what micro-batches
-- keep and the temporaries, is shared by the plans of a pipeline; everything else of a plan is its
-- own.

local columns = require "gpipe.draw.columns"
local sizes = require "gpipe.sizes"

local areas = {}

local WORK = { saved = true, recomputed = true, carried = true, transient = true, waste = true }

-- The order in which areas are shown.
local ORDER = {
  "parameters", "gradients", "optimizer", "buffers", "extra gradients", "packed", "halves",
  "prepared", "constants", "kernel states", "versions", "edges", "saved", "recomputed", "carried",
  "transient", "waste", "staging", "workspace", "thread scratch", "padding",
}

---@class gpipe.DeviceMemory
---@field name string
---@field planned integer bytes
---@field measured integer bytes that are allocated
---@field lower_bound integer bytes that no layout of the same values could do without
---@field cap integer|nil
---@field areas table<string, integer>

local Memory = {}
Memory.__index = Memory
Memory.__name = "gpipe.Memory"

-- Add the areas of a plan; the work area counts once, for the plan that needs most of it.
local function add_plan(sum, own)
  for name, bytes in pairs(own) do
    if name ~= "shared" and not (WORK[name] and own.shared > 0) then
      sum[name] = (sum[name] or 0) + bytes
    end
  end
end

local function largest_work(pipe, d)
  local most
  for _, plan in pairs(pipe.plans) do
    local own = pipe.core:areas(plan.handle, d)
    if own.shared > (most and most.shared or 0) then most = own end
  end
  return most
end

-- The areas of a device, without those that are empty.
local function areas_of(pipe, d, held)
  local sum = {}
  for name, bytes in pairs(held) do
    if name ~= "measured" and name ~= "shared" then sum[name] = bytes end
  end
  for _, plan in pairs(pipe.plans) do add_plan(sum, pipe.core:areas(plan.handle, d)) end
  local most = largest_work(pipe, d)
  for name in pairs(WORK) do
    sum[name] = (sum[name] or 0) + (most and most[name] or 0)
  end
  -- a plan that was dropped may have needed more than those that are left
  if most then sum.waste = sum.waste + held.shared - most.shared end
  for name, bytes in pairs(sum) do
    if bytes == 0 then sum[name] = nil end
  end
  return sum
end

local function device_of(pipe, d)
  local held = pipe.core:held(d)
  local own = areas_of(pipe, d, held)
  local planned = 0
  for _, bytes in pairs(own) do planned = planned + bytes end
  return {
    name = pipe.devices[d + 1].name, planned = planned, measured = held.measured,
    lower_bound = planned - (own.waste or 0), cap = pipe.devices[d + 1].cap, areas = own,
  }
end

-- The areas that any device has, in order.
local function shown(list)
  local names = {}
  for _, name in ipairs(ORDER) do
    for _, one in ipairs(list) do
      if one.areas[name] then
        names[#names + 1] = name
        break
      end
    end
  end
  return names
end

function Memory:__tostring()
  local rows, names = { { "bytes of" } }, shown(self)
  for d, one in ipairs(self) do rows[1][d + 1] = one.name end
  local function add(title, read)
    local row = { title }
    for d, one in ipairs(self) do row[d + 1] = read(one) and sizes.text(read(one)) or "" end
    rows[#rows + 1] = row
  end
  for _, name in ipairs(names) do add(name, function(one) return one.areas[name] end) end
  add("planned", function(one) return one.planned end)
  add("measured", function(one) return one.measured end)
  add("lower bound", function(one) return one.lower_bound end)
  for _, one in ipairs(self) do
    if one.cap then
      add("cap", function(each) return each.cap end)
      break
    end
  end
  return columns.text(rows)
end

--- The report of a pipeline: a list with an element per device.
---@param pipe table
---@return gpipe.DeviceMemory[]
function areas.of(pipe)
  local list = setmetatable({}, Memory)
  for d = 1, #pipe.devices do list[d] = device_of(pipe, d - 1) end
  return list
end

return areas
