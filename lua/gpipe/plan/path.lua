-- lua/gpipe/plan/path.lua - the critical path of a simulated step in a line: which actions it is
-- made of, and which stage it stays in longest.

local path = {}

local NAMES = { F = "forward", B = "backward", I = "input gradients", W = "weight gradients",
  R = "recomputation" }
local ORDER = { "F", "B", "I", "W", "R" }

--- "forward 30 %, backward 60 %, transfers and waiting 10 %; longest in stage 2 (41 %)".
---@param simulation gpipe.Simulation
---@return string
function path.text(simulation)
  local by_op, by_stage, sum, whole = {}, {}, 0, simulation.makespan
  for _, action in ipairs(simulation.critical) do
    local seconds = action.finish - action.begin
    by_op[action.op] = (by_op[action.op] or 0) + seconds
    by_stage[action.stage] = (by_stage[action.stage] or 0) + seconds
    sum = sum + seconds
  end
  if whole <= 0 or #simulation.critical < simulation.critical_length then return nil end
  local words, most, at = {}, -1, 0
  for _, op in ipairs(ORDER) do
    if (by_op[op] or 0) > 0.005 * whole then
      words[#words + 1] = ("%s %.0f %%"):format(NAMES[op], 100 * by_op[op] / whole)
    end
  end
  if whole - sum > 0.005 * whole then
    words[#words + 1] = ("transfers %.0f %%"):format(100 * (whole - sum) / whole)
  end
  for stage = 0, simulation.stages - 1 do
    if (by_stage[stage] or 0) > most then most, at = by_stage[stage] or 0, stage end
  end
  return ("%s; longest in stage %d (%.0f %%)"):format(table.concat(words, ", "), at,
    100 * most / whole)
end

return path
