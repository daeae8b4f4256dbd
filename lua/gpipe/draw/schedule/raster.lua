-- lua/gpipe/draw/schedule/raster.lua - choose the action that each column of a row shows.
--
-- Where cells are wider than columns, a column shows the action that covers most of it. Where many
-- actions share a column ("dense"), the shares of the ops, and of idling, are carried from column
-- to column: a stretch that is one third forwards shows forwards in a third of its columns instead
-- of losing them.

local raster = {}

-- Sorts before every op. Of equal shares the first name wins, so that the result does not depend on
-- the order of a table.
local IDLE = ""

-- Call visit(action, begin, finish) with times in columns; each action of a pair gets one half.
local function spans(view, d, per_time, visit)
  view:each(d, function(action, begin, finish, half)
    local from, to = begin * per_time, finish * per_time
    local middle = (from + to) / 2
    if half == 1 then to = middle elseif half == 2 then from = middle end
    visit(action, from, to)
  end)
end

-- Add what an action covers of each column to the layer of its op.
local function cover(layer, action, from, to, columns)
  for c = math.max(0, math.floor(from + 1e-6)), math.min(columns, math.ceil(to - 1e-6)) - 1 do
    local share = math.min(to, c + 1) - math.max(from, c)
    layer.sum[c] = (layer.sum[c] or 0) + share
    if share > (layer.best[c] or 0) then layer.best[c], layer.owner[c] = share, action end
  end
end

-- Layers by op, and the ops in alphabetical order.
local function layers_of(view, d, per_time, columns)
  local layers, ops = {}, {}
  spans(view, d, per_time, function(action, from, to)
    local layer = layers[action.op]
    if not layer then
      layer = { sum = {}, best = {}, owner = {}, credit = 0 }
      layers[action.op], ops[#ops + 1] = layer, action.op
    end
    cover(layer, action, from, to, columns)
  end)
  table.sort(ops)
  return layers, ops
end

local function share_of(layer, c) return layer.sum[c] or 0 end

-- The op that covers most of a column; IDLE where the device is busy for less than half of it.
local function majority(layers, ops, c)
  local busy, most, winner = 0, 0, IDLE
  for _, op in ipairs(ops) do
    local share = share_of(layers[op], c)
    busy = busy + share
    if share > most + 1e-9 then most, winner = share, op end
  end
  return busy > 0.5 - 1e-6 and winner or IDLE
end

-- The op with the largest credit after this column; it pays one column.
local function most_owed(layers, ops, idle, c)
  local busy, winner = 0, IDLE
  for _, op in ipairs(ops) do
    local layer = layers[op]
    layer.credit = layer.credit + share_of(layer, c)
    busy = busy + share_of(layer, c)
    -- an op is not shown where it does not run: its credit lapses there
    if share_of(layer, c) == 0 then layer.credit = math.min(layer.credit, 0) end
  end
  idle.credit = busy > 1 - 1e-6 and math.min(idle.credit, 0) or idle.credit + 1 - busy
  local most = busy > 1 - 1e-6 and -math.huge or idle.credit
  for _, op in ipairs(ops) do
    local layer = layers[op]
    if share_of(layer, c) > 0 and layer.credit > most + 1e-9 then
      most, winner = layer.credit, op
    end
  end
  local paid = layers[winner] or idle
  paid.credit = paid.credit - 1
  return winner
end

--- The action that each column 0 .. columns - 1 of device d shows; nil where it idles.
---@param view gpipe.View
---@param d integer from 1
---@param per_time number columns per unit of the view's time
---@param columns integer
---@param dense boolean several actions share a column
---@return table<integer, table>
function raster.row(view, d, per_time, columns, dense)
  local layers, ops = layers_of(view, d, per_time, columns)
  local owners, idle = {}, { credit = 0 }
  for c = 0, columns - 1 do
    local op = dense and most_owed(layers, ops, idle, c) or majority(layers, ops, c)
    owners[c] = layers[op] and layers[op].owner[c]
  end
  return owners
end

--- Runs of columns that show the same action: visit(action or nil, first, width).
---@param owners table<integer, table>
---@param columns integer
---@param same fun(a: table?, b: table?): boolean
---@param visit fun(action: table?, first: integer, width: integer)
function raster.runs(owners, columns, same, visit)
  local first = 0
  while first < columns do
    local width = 1
    while first + width < columns and same(owners[first], owners[first + width]) do
      width = width + 1
    end
    visit(owners[first], first, width)
    first = first + width
  end
end

--- The devices that get rows (from 1): all, or the first and the last ones.
---@param devices integer
---@param most integer
---@return integer[]
function raster.shown(devices, most)
  local list = {}
  if devices <= most then most = devices end
  local head = (most + 1) // 2
  for d = 1, head do list[d] = d end
  for d = devices - (most - head) + 1, devices do list[#list + 1] = d end
  return list
end

return raster
