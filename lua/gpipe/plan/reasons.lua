-- lua/gpipe/plan/reasons.lua - why candidates fell, in words: one line for each schedule and
-- policy, and the message where nothing fits.

local candidates = require "gpipe.plan.candidates"
local device_bytes = require "gpipe.plan.device_bytes"
local fit = require "gpipe.plan.fit"
local possible = require "gpipe.plan.possible"
local sizes = require "gpipe.sizes"

local reasons = {}

-- The largest part of what a device would need: its name and bytes.
local function largest_of(parts)
  local name = device_bytes.PARTS[1]
  for _, other in ipairs(device_bytes.PARTS) do
    if parts[other] > parts[name] then name = other end
  end
  return name, parts[name]
end

local NAMES = {
  optimizer = "the optimizer's moments", saved = "kept values",
  versions = "versions of the weights",
  edges = "values under way between stages", batch = "the batch",
}

--- "3.2 GiB needed on sim:0/1, which has 2.0 GiB; most of it, 1.9 GiB, are gradients".
---@param fault gpipe.PlanFault
---@return string
function reasons.short(fault)
  if fault.host then
    return ("%s of the host's memory needed by %s, which may have %s there"):format(
      sizes.text(math.floor(fault.host)), fault.device.name, sizes.text(fault.device.host_memory))
  end
  local name, bytes = largest_of(fault.parts)
  return ("%s needed on %s, which has %s; the largest part, %s, is %s"):format(
    sizes.text(math.floor(fault.bytes)), fault.device.name, sizes.text(fault.device.memory),
    sizes.text(math.floor(bytes)), NAMES[name] or name)
end

-- ---- rejected -----------------------------------------------------------------------------------

-- The case of a family that is likely to be nearest to fitting: most devices, smallest
-- micro-batches. Only for this one it is found out how far it is from that.
local function nearest_of(problem, cases)
  table.sort(cases, function(a, b)
    if a.shape.devices ~= b.shape.devices then return a.shape.devices > b.shape.devices end
    return a.shape.asked > b.shape.asked
  end)
  for _, case in ipairs(cases) do
    case.fault = case.fault or fit.fault(problem, case)
    if case.fault then return case end
  end
end

local function why_of(problem, one)
  if one.fits then return nil end
  local near = nearest_of(problem, one.cases)
  if not near then return one.why end
  local m, p = near.shape.chunks, near.shape.devices
  return ("%s (with %d micro-batch%s on %d device%s)"):format(reasons.short(near.fault), m,
    m == 1 and "" or "es", p, p == 1 and "" or "s")
end

---@class gpipe.PlanFamilies a family is a schedule with a policy
---@field fits fun(what: string, label: string) note that a candidate fits
---@field short fun(what: string, case: gpipe.PlanCase) note one that does not
---@field impossible fun(label: string, why: string) note a schedule that cannot be built
---@field list fun(): {what: string, why: string}[] those of which none fits
---@field nearest fun(): gpipe.PlanCase? the case that is nearest to fitting

--- Collect what becomes of each family.
---@param problem gpipe.PlanProblem
---@return gpipe.PlanFamilies
function reasons.collect(problem)
  local families, order, self, built = {}, {}, {}, {}
  local function family(what)
    if not families[what] then
      families[what] = { what = what, cases = {} }
      order[#order + 1] = families[what]
    end
    return families[what]
  end
  function self.fits(what, label)
    family(what).fits, built[label] = true, true
  end
  function self.short(what, case)
    table.insert(family(what).cases, case)
    built[case.shape.label] = true
  end
  function self.impossible(label, why) family(label).why = family(label).why or why end
  function self.list()
    local list = {}
    for _, one in ipairs(order) do
      local why = not built[one.what] and why_of(problem, one)
      if why then list[#list + 1] = { what = one.what, why = why } end
    end
    return list
  end
  function self.nearest()
    local best
    for _, one in ipairs(order) do
      local near = nearest_of(problem, one.cases)
      if near and (not best or near.fault.share < best.fault.share) then best = near end
    end
    return best
  end
  return self
end

-- ---- nothing fits -------------------------------------------------------------------------------

local MOST_DEVICES = 4096

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
  local policy = change.policy or near.policy
  local shape = candidates.shape(near.shape.wanted, #other.devices, change.asked)
  if not shape or possible.fault(problem, shape.schedule) then return false end
  shape.asked = change.asked
  local case = fit.case(other, shape, candidates.lowered(shape, policy), policy)
  if #other.devices == #problem.devices and shape.devices == near.shape.devices then
    case.extra = near.extra
  end
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
    local list = candidates.chunks(problem.chunks, count, problem.batch)
    for i = #list, 1, -1 do
      if enough(problem, near, count, math.min(list[i], problem.batch)) then
        return ("%d devices like these"):format(count)
      end
    end
    count = 2 * count
  end
end

-- More micro-batches than the option allowed.
local function more_chunks(problem, near)
  local chunks = problem.chunks and 2 * near.shape.asked or math.huge
  while chunks <= problem.batch do
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
    local change = { devices = problem.devices, policy = policy, asked = near.shape.asked }
    if not tried and fits_with(problem, near, change) then
      return ("checkpoint = %q"):format(policy)
    end
  end
end

-- What a device would have to have, if nothing else changes.
local function more_memory(near)
  local bytes = math.ceil(1.02 * near.fault.bytes) -- the text has a digit behind the point only
  return ("%s of memory on each device"):format(sizes.text(bytes))
end

--- Why nothing fits, and the nearest thing that does.
---@param problem gpipe.PlanProblem
---@param faults table of reasons.collect
---@return string
function reasons.nothing(problem, faults)
  local near = faults.nearest()
  if not near then
    local list = faults.list()
    local first = list[1]
    return ("%s: no schedule can be built%s"):format(problem.who,
      first and (": %s: %s"):format(first.what, first.why) or ", expected option 'schedules' with "
      .. "one that fits the devices")
  end
  local would = {}
  local finders = { other_policy, more_chunks, more_devices }
  for _, find in ipairs(fit.is_large(problem, near) and {} or finders) do
    would[#would + 1] = find(problem, near)
  end
  would[#would + 1] = more_memory(near)
  local count = #problem.devices
  return ("%s: no plan fits %d device%s: %s, even with %s, %d micro-batch%s and checkpoint %s. It "
    .. "would fit with %s"):format(problem.who, count, count == 1 and "" or "s",
    reasons.short(near.fault), near.shape.label, near.shape.chunks,
    near.shape.chunks == 1 and "" or "es", near.policy, table.concat(would, ", or with "))
end

return reasons
