-- lua/gpipe/plan/nothing.lua - where nothing fits by the estimates: the nearest cases are planned
-- exactly, which may show that one does fit; else they say what is missing and what would do.
--
-- Whatever is advised has been planned byte for byte under the changed conditions, in the same way
-- as gp.plan itself will, so it works. Only figures of very large cases, and of profiles without a
-- model, stay estimates, and the text says so.

local candidates = require "gpipe.plan.candidates"
local case_of = require "gpipe.plan.case"
local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local fit = require "gpipe.plan.fit"
local possible = require "gpipe.plan.possible"
local reasons = require "gpipe.plan.reasons"
local settle = require "gpipe.plan.settle"
local sizes = require "gpipe.sizes"

local nothing = {}

local NEAR = 6              -- cases that are planned exactly
local MOST_CELLS = 1 << 14  -- stages x micro-batches of a case that is planned exactly here
local MOST_DEVICES = 4096

---@class gpipe.PlanNear the case that is nearest to fitting
---@field case gpipe.PlanCase
---@field fault gpipe.PlanFault
---@field row? gpipe.PlanRow with exact bytes; nil where they are only estimated
---@field fits boolean

-- ---- the nearest case ---------------------------------------------------------------------------

local function is_exact(problem, case)
  return problem.verify and #case.on * case.shape.chunks <= MOST_CELLS
end

-- What each device takes by an exact row, as faults read it.
local function taken_of(row)
  local taken = {}
  for d, bytes in ipairs(row.peak) do
    taken[d] = { bytes = bytes, parts = row.parts[d], host = row.host[d] }
  end
  return taken
end

-- A case, planned exactly if it is small enough.
local function planned(problem, case)
  if not is_exact(problem, case) then return { case = case, fault = case.fault, fits = false } end
  local row, fits = settle.case(problem, case)
  if not row then return nil end
  return { case = case, row = row, fits = fits,
    fault = fit.fault_of(problem, row.balance, taken_of(row)) }
end

--- The case that is nearest to fitting, or the fastest of those that do fit when they are planned.
---@param problem gpipe.PlanProblem
---@param faults gpipe.PlanFamilies
---@return gpipe.PlanNear?
function nothing.nearest(problem, faults)
  local best
  for _, case in ipairs(faults.nearest(NEAR)) do
    local one = planned(problem, case)
    if one and one.fits then
      if not best or not best.fits or one.row.seconds < best.row.seconds then best = one end
    elseif one and not (best and best.fits)
      and (not best or one.fault.share < best.fault.share) then
      best = one
    end
  end
  return best
end

-- ---- what would fit -----------------------------------------------------------------------------

-- The same devices again and again: what a larger machine of that kind would be.
local function repeated(list, count)
  local all = {}
  for i = 1, count do
    all[i] = setmetatable({}, { __index = list[(i - 1) % #list + 1] })
  end
  return all
end

-- Whether the problem would fit with these changes, under the schedule and policy of the nearest
-- case unless they say otherwise.
local function fits_with(problem, near, change)
  local other = setmetatable(change, { __index = problem })
  local policy = change.policy or near.case.policy
  local shape = candidates.shape(near.case.shape.wanted, #other.devices, change.asked, true)
  if not shape or possible.fault(problem, shape.schedule) then return false end
  shape.asked = change.asked
  local case = case_of(other, shape, candidates.lowered(shape, policy), policy)
  if is_exact(other, case) then return (select(2, settle.case(other, case))) end
  return (fit.cut(other, case)) ~= nil
end

-- Whether so many devices are enough, with any of the policies.
local function enough(problem, near, count, chunks)
  local devices = repeated(problem.devices, count)
  for _, policy in ipairs(problem.policies) do
    if fits_with(problem, near, { devices = devices, asked = chunks, policy = policy }) then
      return true
    end
  end
  return false
end

-- The smallest number of devices that is enough, doubling it each time.
local function more_devices(problem, near)
  local count = 2 * #problem.devices
  while count <= math.min(MOST_DEVICES, problem.figures.count) do
    local list = candidates.chunks(problem.chunks, count, problem.pieces)
    for i = #list, 1, -1 do
      if enough(problem, near, count, math.min(list[i], problem.batch)) then
        return counted(count, "device") .. " like these"
      end
    end
    count = 2 * count
  end
end

-- More micro-batches than the option allowed.
local function more_chunks(problem, near)
  local chunks = problem.chunks and 2 * near.case.shape.asked or math.huge
  while chunks <= problem.pieces do
    if fits_with(problem, near, { devices = problem.devices, asked = chunks }) then
      return ("chunks = %d"):format(chunks)
    end
    chunks = 2 * chunks
  end
end

local function other_policy(problem, near)
  for _, policy in ipairs { "except_last", "always" } do
    local tried = false
    for _, own in ipairs(problem.policies) do tried = tried or own == policy end
    local change = { devices = problem.devices, policy = policy, asked = near.case.shape.asked }
    if not tried and fits_with(problem, near, change) then
      return ("checkpoint = %q"):format(policy)
    end
  end
end

-- ---- how much memory would do -------------------------------------------------------------------

-- The problem with the same memory on all devices. Cuts by memory then do not depend on how much.
local function with_memory(problem, memory, host_memory)
  local devices = {}
  for d, device in ipairs(problem.devices) do
    devices[d] = setmetatable({ memory = memory, host_memory = host_memory },
      { __index = device })
  end
  return setmetatable({ devices = devices }, { __index = problem })
end

-- The most that a device takes in the nearest cut if all have the same memory: its own and the
-- host's.
local function most_of(problem, near)
  if not near.row then return 1.02 * near.fault.bytes, near.fault.host or 0 end
  local even = with_memory(problem, 1 << 50)
  local row = settle.nearest(even, near.case)
  local bytes, host = 0, 0
  for d, n in ipairs(row.peak) do
    bytes, host = math.max(bytes, n), math.max(host, row.host[d])
  end
  return bytes, host
end

-- What a device would have to have, if nothing else changes.
local function more_memory(problem, near)
  local bytes, host = most_of(problem, near)
  local about = near.row and "" or "about "
  local words = ("%s%s of memory on each device"):format(about, sizes.at_least(bytes))
  if near.fault.host then
    words = words .. (" and %s of the host's memory for it"):format(sizes.at_least(host))
  end
  return words
end

-- Whether no number of stages can keep the conditions.
local function is_contradiction(problem)
  for stages = 1, problem.conditions and math.min(problem.figures.count, MOST_DEVICES) or 0 do
    if not possible.stages_fault(problem, stages) then return false end
  end
  return problem.conditions ~= nil
end

-- Why no schedule can be built. Conditions that none can keep are a mistake of the script.
local function unbuilt(problem, faults)
  local first = faults.list()[1]
  local why = first and (": %s: %s"):format(first.what, first.why) or ""
  if is_contradiction(problem) then
    errors.raise("%s: no schedule can be built%s, expected fewer conditions (options 'together' "
      .. "and 'pinned')", problem.who, why)
  end
  return ("%s: no schedule can be built%s, expected option 'schedules' with one that fits the "
    .. "devices"):format(problem.who, why)
end

--- Why nothing fits, and the nearest thing that does.
---@param problem gpipe.PlanProblem
---@param faults gpipe.PlanFamilies
---@param near? gpipe.PlanNear
---@return string
function nothing.text(problem, faults, near)
  if not near then return unbuilt(problem, faults) end
  local would = {}
  local finders = { other_policy, more_chunks, more_devices }
  for _, find in ipairs(fit.is_large(problem, near.case) and {} or finders) do
    would[#would + 1] = find(problem, near)
  end
  would[#would + 1] = more_memory(problem, near)
  local shape = near.case.shape
  return ("%s: no plan fits %s: %s, even with %s, %s and checkpoint %s. It would fit with "
    .. "%s"):format(problem.who, counted(#problem.devices, "device"), reasons.short(near.fault),
    shape.label, counted(shape.chunks, "micro-batch"), near.case.policy,
    table.concat(would, ", or with "))
end

return nothing
