-- lua/gpipe/plan/knots.lua - the figures of layers at some numbers of rows, and straight lines
-- between them and beyond.
--
-- A list of knots is {{rows =, layers =, measured =}, ...} in the order of the rows, for devices of
-- one sort.

local median = require "gpipe.pipeline.median"

local knots = {}

--- The figures of a layer that grow with the rows of a micro-batch.
knots.GROWING = { "forward", "forward_dropped", "input", "weight", "backward", "recompute",
  "output_bytes", "gradient_bytes", "saved_bytes", "workspace_bytes", "head_bytes", "carried_bytes",
  "packed_bytes", "scratch_bytes" }

-- Layers with figures that f makes of the lists of the same figure in all of these.
local function combined(lists, f)
  local layers = {}
  local function of(i, key, within)
    local values = {}
    for n, list in ipairs(lists) do
      local layer = list[i]
      values[n] = (within and layer[within] or layer)[key]
    end
    return f(values)
  end
  for i, first in ipairs(lists[1]) do
    local layer = {}
    for key, value in pairs(first) do layer[key] = value end
    for _, key in ipairs(knots.GROWING) do layer[key] = of(i, key) end
    layer.selective = {}
    for key in pairs(first.selective) do layer.selective[key] = of(i, key, "selective") end
    layers[i] = layer
  end
  return layers
end

-- The layers at a part of the way from a to b.
local function between(a, b, part)
  return combined({ a, b }, function(v) return math.max(0, v[1] + (v[2] - v[1]) * part) end)
end

-- The place of the first knot with at least so many rows; behind the last one there is none.
local function place_of(list, rows)
  local at = 1
  while list[at] and list[at].rows < rows do at = at + 1 end
  return at
end

--- The layers for so many rows.
---@param list {rows: integer, layers: gpipe.PlanLayer[]}[] one at least
---@param rows integer
---@return gpipe.PlanLayer[]
function knots.at(list, rows)
  local at = place_of(list, rows)
  if #list == 1 then return list[1].layers end
  if list[at] and list[at].rows == rows then return list[at].layers end
  at = math.min(math.max(at, 2), #list)
  local a, b = list[at - 1], list[at]
  return between(a.layers, b.layers, (rows - a.rows) / (b.rows - a.rows))
end

--- Add what was measured with so many rows; of several measurements the middle counts.
---@param list {rows: integer, layers: gpipe.PlanLayer[], measured: gpipe.PlanLayer[][]}[]
---@param rows integer
---@param layers gpipe.PlanLayer[]
function knots.add(list, rows, layers)
  local at = place_of(list, rows)
  local known = list[at]
  if known and known.rows == rows then
    known.measured[#known.measured + 1] = layers
    known.layers = combined(known.measured, median)
  else
    table.insert(list, at, { rows = rows, layers = layers, measured = { layers } })
  end
end

return knots
