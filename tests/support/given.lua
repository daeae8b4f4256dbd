-- tests/support/given.lua - makes schedules from rows that a spec writes down.

local gp = require "gpipe"

local given = {}

-- Returns one more than the largest micro-batch.
local function micros_of(rows)
  local most = 0
  for _, row in ipairs(rows) do
    for op, number in row:gmatch "(%u[%u_]*)(%d+)" do
      if op ~= "U" then most = math.max(most, math.min(tonumber(number), 1e7) + 1) end
    end
  end
  return math.tointeger(most)
end

--- Make a schedule of these rows; it has one stage a device unless placement says otherwise.
---@param rows string[]
---@param options? {placement: table?, batch: integer?}
---@return gpipe.Schedule
function given.schedule(rows, options)
  local placement = options and options.placement
  if not placement then
    placement = {}
    for d = 1, #rows do placement[d - 1] = d - 1 end
  end
  local made = { rows = rows, placement = placement, batch = options and options.batch }
  return gp.schedule.wrap("given", made, micros_of(rows))
end

--- Return the only entry of the report of a schedule that must be refused, and the printed report.
---@param schedule gpipe.Schedule
---@param limits? table
function given.fault(schedule, limits)
  local good, report = schedule:verify(limits)
  assert(good == nil, "it was accepted")
  assert(#report == 1)
  local text = tostring(report)
  assert(text:match "^[^\n]*" == report[1].message)
  return report[1], text
end

return given
