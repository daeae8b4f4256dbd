-- lua/gpipe/plan/moments.lua - what the stages of a device hold at the same time: how many micro-
-- batches of each kind, as schedule:moments has it.
--
-- A walk through a schedule takes a while, so it is made when a device is first asked for, and for
-- all cuts of the layers at once.

local moments = {}

local NUMBERS = 4 -- of a stage in a row

--- What the stages of each device (from 1) hold at the same time. The first stage runs I and W as
--- one B, because no gradient leaves it: there W reads what I would.
---@param lowered gpipe.Schedule
---@param shape gpipe.PlanShape
---@param away? boolean what is saved waits on the host
---@return table<integer, integer[][]>
function moments.of_devices(lowered, shape, away)
  return setmetatable({}, { __index = function(list, d)
    local rows = lowered:moments(d - 1, away)
    for k, stage in ipairs(shape.holders[d]) do
      for _, row in ipairs(stage == 0 and rows or {}) do
        row[NUMBERS * k - 1], row[NUMBERS * k] = row[NUMBERS * k - 2], 0
      end
    end
    list[d] = rows
    return rows
  end })
end

-- Do the numbers behind place `first` of a row nowhere exceed those behind place `at` of another?
local function is_within(row, first, other, at)
  for k = 1, NUMBERS do
    if row[first + k] > other[at + k] then return false end
  end
  return true
end

-- Add a moment of a stage, unless another one holds as much of everything; it takes the place of
-- those of which it does.
local function add(list, row, first)
  for _, other in ipairs(list) do
    if is_within(row, first, other, 0) then return end
  end
  local kept = 0
  for k = 1, #list do
    local other = list[k]
    list[k] = nil
    if not is_within(other, 0, row, first) then
      kept = kept + 1
      list[kept] = other
    end
  end
  list[kept + 1] = table.move(row, first + 1, first + NUMBERS, 1, {})
end

--- What each stage (from 0) holds at the same time, of the moments of its first device.
---@param case gpipe.PlanCase
---@param lowered gpipe.Lowered
---@return table<integer, integer[][]>
function moments.of_stages(case, lowered)
  return setmetatable({}, { __index = function(list, stage)
    local d, own, first = case.on[stage + 1][1], {}, 0
    for k, other in ipairs(case.shape.holders[d]) do
      if other == stage then first = NUMBERS * (k - 1) end
    end
    for _, row in ipairs(lowered.moments[d]) do add(own, row, first) end
    list[stage] = own
    return own
  end })
end

return moments
