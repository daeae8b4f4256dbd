-- lua/gpipe/pipeline/plan/budgets/needs.lua - compares what plans would take with the room that
-- there is.

local needs = {}

---@class gpipe.PlanNeed what a plan would take on a device, in bytes
---@field bytes integer all of it
---@field work integer of that, what stages keep and have in work
---@field grown integer what the pipeline would hold more for it
---@field host integer of the host's memory
---@field time number seconds of a step by the cost model

--- All that a plan would take on a device.
---@param need gpipe.PlanNeed
---@return integer
function needs.total(need) return need.bytes + need.grown end

--- The first device that has too little room, or nil.
---@param list gpipe.PlanNeed[]
---@param room table per device: bytes, or false for no limit; field host: the same of the host's
--- memory, or nil
---@return integer? device
function needs.short_of(list, room)
  for d, need in ipairs(list) do
    if room[d] and needs.total(need) > room[d] then return d end
    if room.host and room.host[d] and need.host > room.host[d] then return d end
  end
end

-- The seconds of a step. Ranks tell theirs for each device: what a rank knows least of is short.
local function step_of(list)
  local most = 0
  for _, need in ipairs(list) do most = math.max(most, need.time) end
  return most
end

--- Whether the first plan is the better one: it fits, and the other one does not or is slower.
function needs.is_better(list, others, room)
  if needs.short_of(list, room) then return false end
  return needs.short_of(others, room) ~= nil or step_of(list) < step_of(others)
end

--- How full the fullest device would be, as a share of its room, or of that on the host.
function needs.fullest(list, room)
  local most = 0
  for d, need in ipairs(list) do
    local there = room.host and room.host[d]
    if room[d] then most = math.max(most, needs.total(need) / math.max(1, room[d])) end
    if there then most = math.max(most, need.host / math.max(1, there)) end
  end
  return most
end

return needs
