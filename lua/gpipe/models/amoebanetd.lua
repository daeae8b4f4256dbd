-- lua/gpipe/models/amoebanetd.lua - AmoebaNet-D, whose cells read the two cells before them.
--
-- Source: Real et al. 2018, "Regularized Evolution for Image Classifier Architecture Search", and
-- the TensorFlow code of GPipe's benchmark, which decides where they differ: what a normal cell
-- joins, and that "max_pool_3x3" averages.

local List = require "gpipe.models.list"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"
local options = require "gpipe.options"

-- ---- operations ---------------------------------------------------------------------------------

-- ReLU, convolution, norm; kernel and stride as nn.Conv2d takes them.
local function unit(from, to, kernel, stride)
  local size = type(kernel) == "table" and kernel or { kernel, kernel }
  local conv = nn.Conv2d(from, to, kernel, { stride = stride or 1, bias = false,
    padding = { size[1] // 2, size[2] // 2 } })
  return nn.Sequential { nn.ReLU(), conv, nn.BatchNorm2d(to) }
end

-- Halve the image: one half of the output channels reads the pixels between those that the other
-- half reads.
local Reduce = nn.class("FactorizedReduce")
function Reduce:init(from, to)
  self.conv1 = nn.Conv2d(from, to // 2, 1, { stride = 2, bias = false })
  self.conv2 = nn.Conv2d(from, to - to // 2, 1, { stride = 2, bias = false })
  self.bn = nn.BatchNorm2d(to)
end
function Reduce:forward(x)
  x = x:relu()
  local shifted = x:pad { -1, 1, -1, 1 }
  return self.bn(core.concat({ self.conv1(x), self.conv2(shifted) }, 2))
end

local function average(_, stride)
  return nn.AvgPool2d(3, { stride = stride, padding = 1, count_include_pad = false })
end

local OPERATIONS = {
  none = function(c, stride) return stride == 1 and nn.Identity() or Reduce(c, c) end,
  avg_pool_3x3 = average,
  max_pool_3x3 = average,
  max_pool_2x2 = function(_, stride) return nn.MaxPool2d(2, { stride = stride }) end,
  conv_1x1 = function(c, stride) return unit(c, c, 1, stride) end,
  conv_3x3 = function(c, stride)
    local q = c // 4
    return nn.Sequential { unit(c, q, 1), unit(q, q, 3, stride), unit(q, c, 1) }
  end,
  conv_1x7_7x1 = function(c, stride)
    local q = c // 4
    return nn.Sequential { unit(c, q, 1), unit(q, q, { 1, 7 }, { 1, stride }),
      unit(q, q, { 7, 1 }, { stride, 1 }), unit(q, c, 1) }
  end,
}

-- ---- cells --------------------------------------------------------------------------------------

-- States 0 and 1 are the inputs. Each line makes one more state from two operations on earlier
-- states.
local NORMAL = {
  { 1, "conv_1x1", 1, "max_pool_3x3" },
  { 1, "none", 0, "conv_1x7_7x1" },
  { 0, "conv_1x1", 0, "conv_1x7_7x1" },
  { 2, "max_pool_3x3", 2, "none" },
  { 1, "avg_pool_3x3", 5, "conv_1x1" },
  joined = { 0, 3, 4, 6 },
}
local REDUCTION = {
  { 0, "max_pool_2x2", 0, "max_pool_3x3" },
  { 2, "none", 1, "conv_3x3" },
  { 2, "conv_1x7_7x1", 2, "max_pool_3x3" },
  { 3, "none", 1, "max_pool_2x2" },
  { 2, "avg_pool_3x3", 3, "conv_1x1" },
  joined = { 4, 5, 6 },
}

local Cell = nn.class("Cell")

-- widths: channels of the cell before the last one, of the last one, and of this one's states.
function Cell:init(widths, reduction, reduced_before)
  local before, last, c = widths.before, widths.last, widths.own
  self.plan = reduction and REDUCTION or NORMAL
  self.reduce1 = unit(last, c, 1)
  if reduced_before then
    self.reduce2 = Reduce(before, c)
  elseif before ~= c then
    self.reduce2 = unit(before, c, 1)
  end
  for i, line in ipairs(self.plan) do
    for side = 0, 1 do
      local stride = reduction and line[1 + 2 * side] < 2 and 2 or 1
      self[("op%d_%d"):format(i + 1, side)] = OPERATIONS[line[2 + 2 * side]](c, stride)
    end
  end
end

-- `last` is the output of the previous cell, `before` that of the one before it; the next cell
-- needs both of these.
function Cell:forward(last, before)
  before = before or last
  local states = { [0] = self.reduce1(last), self.reduce2 and self.reduce2(before) or before }
  for i, line in ipairs(self.plan) do
    local name = "op" .. i + 1
    states[i + 1] = self[name .. "_0"](states[line[1]]) + self[name .. "_1"](states[line[3]])
  end
  local joined = {}
  for i, state in ipairs(self.plan.joined) do joined[i] = states[state] end
  return core.concat(joined, 2), last
end

local Classify = nn.class("Classify")
function Classify:init(width, classes)
  self.pool, self.fc = nn.AvgPool2d(7), nn.Linear(width, classes)
end
-- Only the last cell's state is used; the state before it, which every cell passes on, ends here.
function Classify:forward(x, _) return self.fc(self.pool(x):reshape { x.shape[1], -1 }) end

-- ---- the model ----------------------------------------------------------------------------------

-- Appends cells one by one, and keeps the widths between them.
local Cells = {}
Cells.__index = Cells

function Cells:add(name, reduction)
  if reduction then self.own = 2 * self.own end
  self.layers:add(name, Cell(self, reduction, self.reduced))
  self.before, self.last = self.last, self.own * (reduction and 3 or 4)
  self.reduced = reduction
end

local OPTIONS = {
  classes = { type = "integer", default = 1000, min = 1 },
  layers = { type = "integer", default = 18, min = 3 },
  filters = { type = "integer", default = 256, min = 16 },
}

--- AmoebaNet-D: `layers` normal cells in three equal parts, each behind a cell that halves the
--- image, and `filters` channels at the widest stem.
---
--- Shapes: [N, 3, 224, 224] -> [N, classes]; every boundary between cells carries two tensors. With
--- 18 layers and 256 filters 122,470,120 parameters.
--- Errors: layers that are not a multiple of 3, filters not a multiple of 16; an unknown option.
--- ```lua
--- local model = gp.models.amoebanetd {classes = 10, layers = 3, filters = 32}
--- assert(#model == 9)
--- ```
---@param opts? {classes?: integer, layers?: integer, filters?: integer}
---@return nn.Sequential
return function(opts)
  local o = options.check("gp.models.amoebanetd", opts, OPTIONS)
  for name, n in pairs { layers = 3, filters = 16 } do
    if o[name] % n ~= 0 then
      errors.raise("gp.models.amoebanetd: %s is %d, expected a multiple of %d", name, o[name], n)
    end
  end
  local width, layers = o.filters // 4, List.new()
  layers:add("stem1", nn.Sequential { nn.ReLU(),
    nn.Conv2d(3, width, 3, { stride = 2, padding = 1, bias = false }), nn.BatchNorm2d(width) })
  local cells = setmetatable({ layers = layers, before = width, last = width, own = width,
    reduced = false }, Cells)
  cells:add("stem2", true)
  cells:add("stem3", true)
  for part = 1, 5, 2 do
    for i = 1, o.layers // 3 do cells:add(("cell%d_normal%d"):format(part, i), false) end
    if part < 5 then cells:add(("cell%d_reduction"):format(part + 1), true) end
  end
  layers:add("classify", Classify(cells.last, o.classes))
  return nn.Sequential(layers)
end
