-- lua/gpipe/plan/reasons.lua - why candidates fell, in words: one line for each schedule and
-- policy.

local counted = require "gpipe.counted"
local fit = require "gpipe.plan.fit"
local sizes = require "gpipe.sizes"

local reasons = {}

-- The largest part of what a device would need, estimated or exact: its name and bytes.
local function largest_of(parts)
  local name
  for other, bytes in pairs(parts) do
    local most = name and parts[name]
    if not most or bytes > most or bytes == most and other < name then name = other end
  end
  return name, parts[name]
end

local NAMES = {
  optimizer = "the optimizer's moments", saved = "kept values",
  versions = "versions of the weights",
  edges = "values under way between stages", batch = "the batch",
  carried = "what input gradients leave for weight gradients", packed = "packed weights",
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
  return ("%s (with %s on %s)"):format(reasons.short(near.fault),
    counted(near.shape.chunks, "micro-batch"), counted(near.shape.devices, "device"))
end

---@class gpipe.PlanFamilies a family is a schedule with a policy
---@field fits fun(label: string, policy: string) note that a candidate fits
---@field short fun(case: gpipe.PlanCase) note one that does not
---@field impossible fun(label: string, why: string) note a schedule that cannot be built
---@field list fun(): {what: string, why: string}[] those of which none fits
---@field nearest fun(count: integer): gpipe.PlanCase[] so many cases, the nearest to fitting first

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
  local function of(label, policy)
    built[label] = true
    return family(("%s, checkpoint %s"):format(label, policy))
  end
  function self.fits(label, policy) of(label, policy).fits = true end
  function self.short(case) table.insert(of(case.shape.label, case.policy).cases, case) end
  function self.impossible(label, why) family(label).why = family(label).why or why end
  function self.list()
    local list = {}
    for _, one in ipairs(order) do
      local why = not built[one.what] and why_of(problem, one)
      if why then list[#list + 1] = { what = one.what, why = why } end
    end
    return list
  end
  function self.nearest(count)
    local list = {}
    for _, one in ipairs(order) do list[#list + 1] = nearest_of(problem, one.cases) end
    table.sort(list, function(a, b)
      if a.fault.share ~= b.fault.share then return a.fault.share < b.fault.share end
      return a.shape.label .. a.policy < b.shape.label .. b.policy
    end)
    return table.move(list, 1, math.min(count, #list), 1, {})
  end
  return self
end

return reasons
