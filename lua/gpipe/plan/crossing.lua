-- lua/gpipe/plan/crossing.lua - what a cut costs the stages beside it, beyond their layers.
--
-- Within a stage images keep the order in which the library is fastest; what crosses a cut is
-- row-major. So stages copy, or their ops read one order and write another, and no profile of
-- layers knows it. The cut of a plan is measured stage by stage; what a stage takes beyond its
-- layers is noted with the cut before it (the first stage: behind it), as seconds for each byte
-- that crosses. Cuts that were not measured take what others take in the middle, by their bytes.

local crossing = {}

---@class gpipe.Crossings by side: what the first stage has behind it, and others before them
---@field behind table<string, table<integer, number>> F and B -> layer before the cut -> s per byte
---@field before table<string, table<integer, number>>

--- Nothing is known yet.
---@return gpipe.Crossings
function crossing.new()
  return { behind = { F = {}, B = {} }, before = { F = {}, B = {} } }
end

local FIELDS = { F = "forward", B = "backward" }

local function sum_of(layers, field, first, last)
  local sum = 0
  for i = first, last do sum = sum + layers[i][field] end
  return sum
end

--- Note what the stages of a cut took, as parts of all layers without a cut.
---@param known gpipe.Crossings
---@param balance integer[]
---@param stages table<string, number[]> F and B of each stage, of profile.cut
---@param layers gpipe.PlanLayer[] with as many rows
function crossing.note(known, balance, stages, layers)
  local first = 1
  for stage, count in ipairs(balance) do
    local last = first + count - 1
    local cut = stage == 1 and last or first - 1
    local side, bytes = stage == 1 and known.behind or known.before, layers[cut].output_bytes
    for op, field in pairs(FIELDS) do
      local seconds = stages[op][stage] * sum_of(layers, field, 1, #layers)
      local beyond = seconds - sum_of(layers, field, first, last)
      side[op][cut] = bytes > 0 and beyond / bytes or 0
    end
    first = last + 1
  end
end

-- The seconds behind each layer from what is known of some; nothing is gained by an unknown cut.
local function spread(side, layers)
  local list, some = {}, {}
  for _, rate in pairs(side) do some[#some + 1] = rate end
  table.sort(some)
  local middle = #some > 0 and math.max(0, some[(#some + 1) // 2]) or 0
  for i, layer in ipairs(layers) do list[i] = (side[i] or middle) * layer.output_bytes end
  return list
end

--- The seconds of a cut behind each layer, by side and op; nil where no cut was measured.
---@param known gpipe.Crossings?
---@param layers gpipe.PlanLayer[]
---@return {behind: table<string, number[]>, before: table<string, number[]>}?
function crossing.seconds(known, layers)
  if not known then return nil end
  local sides = {}
  for side, ops in pairs(known) do
    sides[side] = { F = spread(ops.F, layers), B = spread(ops.B, layers) }
  end
  return sides
end

--- Seconds to add to F, and to B or I, of a stage of layers i .. j among n; 0 where nothing is
--- known.
---@param sides table? of crossing.seconds
---@param i integer
---@param j integer
---@param n integer
---@return number forward
---@return number backward
function crossing.of(sides, i, j, n)
  if not sides or i == 1 and j == n then return 0, 0 end
  local side, cut = i == 1 and sides.behind or sides.before, i == 1 and j or i - 1
  return side.F[cut], side.B[cut]
end

return crossing
