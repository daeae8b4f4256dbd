-- lua/gpipe/plan/settle.lua - plans candidates byte for byte: a row of an estimate becomes exact,
-- or falls and says by which case.

local candidates = require "gpipe.plan.candidates"
local case_of = require "gpipe.plan.case"
local demand = require "gpipe.plan.demand"
local exact = require "gpipe.plan.exact"
local fit = require "gpipe.plan.fit"
local rate = require "gpipe.plan.rate"
local stage_cost = require "gpipe.plan.stage_cost"

local settle = {}

local TRIES = 6 -- corrections of a row's bytes

--- The row of a case that fits.
---@param problem gpipe.PlanProblem
---@param case gpipe.PlanCase
---@param balance integer[]
---@param taken table[] of demand.devices
---@param ran table of rate.run
---@return gpipe.PlanRow
function settle.row(problem, case, balance, taken, ran)
  local shape, peak, parts, host = case.shape, {}, {}, {}
  for d, one in ipairs(taken) do
    peak[d], parts[d], host[d] = math.ceil(one.bytes), one.parts, math.ceil(one.host)
  end
  return {
    balance = table.move(balance, 1, #balance, 1, {}), schedule = shape.wanted,
    replicas = shape.replicas, gradients = case.memory.gradients,
    received = case.memory.received,
    label = shape.label, devices = shape.devices,
    chunks = math.min(shape.asked, problem.batch), asked = shape.asked, rows = case.rows,
    checkpoint = case.policy, seconds = ran.seconds, bubble = ran.bubble,
    recompute = ran.recompute, peak = peak, host = host, parts = parts, taken = taken,
    exact = false, case = case, simulation = ran.simulation,
  }
end

local function row_at(problem, case, balance, taken)
  return settle.row(problem, case, balance, taken, rate.run(problem, case, balance))
end

local function set_bytes(row, bytes, parts, host)
  row.peak, row.parts, row.host, row.exact = bytes, parts, host, true
  return row
end

-- Whether some device, or its part of the host's memory, has less than these bytes.
local function short_of(problem, bytes, host)
  local over, over_host = false, false
  for d, n in ipairs(bytes) do
    local device = problem.devices[d]
    over = over or n > device.memory
    over_host = over_host or device.host_memory and host[d] > device.host_memory
  end
  return over, over_host
end

-- Let the runtime plan the bytes of a row, and cut again with what the estimate lacked, until they
-- fit.
local function by_bytes(problem, row)
  for _ = 1, TRIES do
    local bytes, parts, host = exact.bytes(problem, row)
    local over, over_host = short_of(problem, bytes, host)
    if over_host then return nil, row.case end
    if not over then return set_bytes(row, bytes, parts, host) end
    local case = row.case
    for d, n in ipairs(bytes) do
      case.extra[d] = case.extra[d] + math.max(0, n - row.taken[d].bytes)
    end
    case.smallest = nil
    local balance, taken = fit.cut(problem, case)
    if not balance then return nil, case end
    local number = row.number
    row = row_at(problem, case, balance, taken)
    row.number = number
  end
end

-- Have the runtime's own search fill the memory for a row whose policy does that, and simulate what
-- it finds.
local function by_filling(problem, row)
  local bytes, parts, host, found = exact.filled(problem, row)
  local case = row.case
  if not bytes then return nil, case else case.found = found end
  if found.policy and found.policy ~= "selective" then
    case.lowered = candidates.lowered(case.shape, found.policy)
  end
  for key, value in pairs(rate.run(problem, case, row.balance)) do row[key] = value end
  return set_bytes(row, bytes, parts, host)
end

local function fills(case) return stage_cost.policies[case.policy].fills end

--- A row with exact bytes, perhaps with another cut; nil and the case if none fits.
---@param problem gpipe.PlanProblem
---@param row gpipe.PlanRow
---@return gpipe.PlanRow?
---@return gpipe.PlanCase? short
function settle.exactly(problem, row)
  return (fills(row.case) and by_filling or by_bytes)(problem, row)
end

-- ---- the nearest cut ----------------------------------------------------------------------------

--- The exact row of a case at the cut whose fullest stage is least above its room, and whether it
--- fits there; nil where the conditions allow no cut. What fills the memory and does not fit has
--- the bytes of "always", with which it would.
---@param problem gpipe.PlanProblem
---@param case gpipe.PlanCase
---@return gpipe.PlanRow? row
---@return boolean fits
function settle.nearest(problem, case)
  local fresh = case_of(problem, case.shape, case.lowered, case.policy)
  local balance = fit.nearest(problem, fresh)
  if not balance then return nil, false end
  local row = row_at(problem, fresh, balance, demand.devices(problem, fresh, balance))
  if fills(fresh) then
    local filled = by_filling(problem, row)
    if filled then return filled, true end
  end
  local planned = fills(fresh) and setmetatable({ checkpoint = "always" }, { __index = row }) or row
  local bytes, parts, host = exact.bytes(problem, planned)
  local over, over_host = short_of(problem, bytes, host)
  return set_bytes(row, bytes, parts, host), not over and not over_host
end

--- The exact row of a case and whether it fits: with the cut by time if it can be made to, else
--- with the nearest one. What the search has learned of the case is left aside, so the same case
--- always comes to the same end.
---@param problem gpipe.PlanProblem
---@param case gpipe.PlanCase
---@return gpipe.PlanRow?
---@return boolean fits
function settle.case(problem, case)
  local fresh = case_of(problem, case.shape, case.lowered, case.policy)
  local balance, taken = fit.cut(problem, fresh)
  local row = balance and settle.exactly(problem, row_at(problem, fresh, balance, taken))
  if row then return row, true end
  return settle.nearest(problem, case)
end

return settle
