-- lua/gpipe/pipeline/plan/keeps.lua - the stages that keep everything on their device although the
-- policy is "selective" or "offload", or layers of theirs are offloaded.
--
-- What a stage saves is least with "selective", but not always what it has in work: a chain of
-- cheap values that is made again lies in memory as a whole, where one that was kept shrinks as
-- backward goes along it; and what it is made from stays on its edge for longer. So the runtime is
-- asked what a plan takes either way, and no device takes more than it does with "never". With
-- "offload" copies under way may take as much as they free; then they are left out.

local keeps = {}

local SPREADS = 3 -- from stages to their neighbours

local function total(need) return need.bytes + need.grown end

-- The devices that take more with the first plan than with the second, or, where it has to pay,
-- that take no less.
local function worse(needs, others, pays)
  local list = {}
  for d, need in ipairs(needs) do
    local more = total(need) - total(others[d])
    if more > 0 or pays and more == 0 then list[#list + 1] = d end
  end
  return list
end

local function copy_with(flags, stages)
  local copy = table.move(flags, 1, #flags, 1, {})
  for _, stage in ipairs(stages) do copy[stage] = true end
  return copy
end

-- Let the k-th stage of each device that is worse keep everything, where that takes less. Returns
-- the flags, what they take, and how many stages the fullest of these devices has.
local function try_stage(measure, flags, needs, bad, of, k)
  local tried, most = {}, 0
  for _, d in ipairs(bad) do
    tried[#tried + 1] = of[d][k]
    most = math.max(most, #of[d])
  end
  local some, back = copy_with(flags, tried), false
  local others = measure(some)
  for _, d in ipairs(bad) do
    local stage = of[d][k]
    if stage and total(others[d]) >= total(needs[d]) then
      some[stage], back = flags[stage], true
    end
  end
  return some, back and measure(some) or others, most
end

-- Stages that keep everything, with their neighbours: what these make again they read from edges,
-- whose values lie on both devices.
local function with_neighbours(flags, bad, of, stages)
  local more = {}
  for _, d in ipairs(bad) do
    for _, stage in ipairs(of[d]) do
      for s = math.max(1, stage - 1), math.min(stages, stage + 1) do more[#more + 1] = s end
    end
  end
  return copy_with(flags, more)
end

--- Find the stages that keep everything.
---@param measure fun(flags: boolean[]): gpipe.PlanNeed[] what the plan would take on each device
---@param of integer[][] the stages of each device, from 1
---@param stages integer
---@param pays? boolean a device that does not gain keeps everything, too
---@return boolean[]? flags per stage; nil if none has to
function keeps.find(measure, of, stages, pays)
  local none, all = {}, {}
  for s = 1, stages do none[s], all[s] = false, true end
  local least, needs, flags = measure(all), measure(none), none
  local bad = worse(needs, least, pays)
  if #bad == 0 then return nil end
  local k = 0
  repeat
    local most
    k = k + 1
    flags, needs, most = try_stage(measure, flags, needs, bad, of, k)
    bad = worse(needs, least, pays)
  until #bad == 0 or k >= most
  if #bad == 0 then return flags end
  for _, d in ipairs(bad) do flags = copy_with(flags, of[d]) end
  for _ = 1, SPREADS do
    bad = worse(measure(flags), least)
    if #bad == 0 then return flags end
    flags = with_neighbours(flags, bad, of, stages)
  end
  return #worse(measure(flags), least) > 0 and all or flags
end

--- The stages of each device, from 1.
---@param placement integer[] the devices (from 0), stage after stage and copy after copy
---@param copies integer devices of each stage
---@param devices integer
---@return integer[][]
function keeps.stages(placement, copies, devices)
  local of = {}
  for d = 1, devices do of[d] = {} end
  for i, device in ipairs(placement) do
    local list, stage = of[device + 1], (i - 1) // copies + 1
    if list[#list] ~= stage then list[#list + 1] = stage end
  end
  return of
end

return keeps
