-- lua/gpipe/plan/possible.lua - whether a schedule can run a model at all, whatever the memory.
--
-- An asynchronous schedule updates its stages at different times, so it wants layers that share a
-- parameter on one stage. Layers that stay together leave fewer places for cuts, and pinned ones
-- want so many stages.

local windows = require "gpipe.pipeline.plan.partition.windows"

local possible = {}

--- The layers of a model that share a parameter, one list for each such parameter.
---@param model nn.Sequential
---@return integer[][]
function possible.ties(model)
  local readers, groups = {}, {}
  for i = 1, #model do
    local seen = {}
    for _, entry in ipairs(model[i]:parameters()) do
      local list = readers[entry.param] or {}
      readers[entry.param] = list
      if not seen[entry.param] then list[#list + 1] = i end
      if not seen[entry.param] and #list == 2 then groups[#groups + 1] = list end
      seen[entry.param] = true
    end
  end
  return groups
end

-- Whether layers lie in a group that stays together, with all between its first and last.
local function is_within(list, group)
  local first, last = math.min(table.unpack(group)), math.max(table.unpack(group))
  for _, layer in ipairs(list) do
    if layer < first or layer > last then return false end
  end
  return true
end

local function tied_fault(problem)
  for _, list in ipairs(problem.ties) do
    local kept = false
    for _, group in ipairs(problem.together or {}) do kept = kept or is_within(list, group) end
    if not kept then
      local layers = table.concat(list, ", ")
      return ("layers %s share a parameter, and its stages are updated at different times; "
        .. "together = {{%s}} keeps them on one"):format(layers, layers)
    end
  end
end

--- Why no schedule of so many stages can run the model, or nil.
---@param problem gpipe.PlanProblem
---@param stages integer
---@return string?
function possible.stages_fault(problem, stages)
  if stages > problem.figures.count then
    return ("it has %d stages, the model %d layers"):format(stages, problem.figures.count)
  end
  return problem.conditions and windows.fault(problem.conditions, stages)
end

--- Why a schedule cannot run the model, or nil.
---@param problem gpipe.PlanProblem
---@param schedule gpipe.Schedule
---@return string?
function possible.fault(problem, schedule)
  local fault = possible.stages_fault(problem, schedule.stages)
  if fault then return fault end
  return schedule.batch > 0 and schedule.stages > 1 and tied_fault(problem) or nil
end

return possible
