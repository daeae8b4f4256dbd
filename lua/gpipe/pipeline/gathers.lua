-- lua/gpipe/pipeline/gathers.lua - how often the actions of a pipeline wait in their middle for
-- those of other replicas (sync_batch_norm), as schedule:simulate takes it.

local gathers = {}

-- The plan ran B, or I and W; the other form is computed from it.
local function complete(made, s)
  if made.B[s] == 0 then
    made.B[s] = made.I[s] + made.W[s]
  else
    made.I[s] = made.B[s] - made.W[s]
  end
end

--- Lists with a number for each stage.
---@param pipe table
---@param plan {handle: any}
---@return {F: integer[], B: integer[], I: integer[], W: integer[]}? nil if they never do
function gathers.of(pipe, plan)
  local made, any = { F = {}, B = {}, I = {}, W = {} }, false
  for op, list in pairs(made) do
    for s = 1, pipe.stages do
      list[s] = select(3, pipe.core:cost(plan.handle, s - 1, op))
      any = any or list[s] > 0
    end
  end
  for s = 1, pipe.stages do complete(made, s) end
  return any and made or nil
end

return gathers
