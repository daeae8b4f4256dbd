-- scripts/bench/gpu_shapes.lua - each product of the GPT's step alone, and its attention, against
-- the rate of a large product on the same GPU.
--
-- A step is as fast as its products; this shows which shape falls short, forward, for the input and
-- for the weight. Times come from pipe:profile, kernel by kernel of a replayed step. The FLOP of
-- causal attention count only the pairs that are not masked.
local gp = require "gpipe"
local figure = require "figure"
local nn = gp.nn

local shapes = {}

local WARM, ROUNDS = 3, 5

-- Inputs and outputs of the layers, as multiples of the width; the head's outputs are the
-- vocabulary.
local PRODUCTS = {
  { name = "qkv", 1, 3 }, { name = "proj", 1, 1 }, { name = "up", 1, 4 }, { name = "down", 4, 1 },
  { name = "head", 1 },
}

-- Values of the shape that have a gradient, from numbers that lie on the GPU.
local Input = nn.class("Input")
function Input:init(shape) self.values = nn.Parameter(shape, nn.init.normal(0, 1)) end
function Input:forward(x) return self.values * x end

local Attend = nn.class("Attend")
function Attend:init(shape)
  self.q, self.k, self.v = Input(shape), Input(shape), Input(shape)
end

function Attend:forward(x)
  return gp.attention(self.q(x), self.k(x), self.v(x), { causal = true })
end

-- Median seconds and the FLOP of each op of these layers whose name has this word in it.
local function measure(layers, word, precision)
  local pipe <close> = gp.pipeline(nn.Sequential(layers), {
    devices = { "cuda:0" }, checkpoint = "never", precision = precision,
    loss = function(output, target) return (output * target:to(output.dtype)):sum(), 1 end,
    loss_scale = precision == "f16" and { initial = 1 } or nil,
  })
  local one, found, order = gp.ones { 1, 1, 1, 1 }, {}, {}
  local function step() pipe:step(one, one) end
  for _ = 1, WARM do step() end
  for _ = 1, ROUNDS do
    for _, row in ipairs(pipe:profile(step, { ceilings = false }).rows) do
      if row.op:find(word, 1, true) and row.flop > 0 then
        local op = found[row.op] or { name = row.op, flop = row.flop, seconds = {} }
        if not found[row.op] then found[row.op], order[#order + 1] = op, op end
        table.insert(op.seconds, row.seconds)
      end
    end
  end
  table.sort(order, function(a, b) return a.name < b.name end)
  return order
end

local function print_ops(name, ops, best)
  if #ops == 0 then error(name .. ": the profile has no such op", 0) end
  for _, op in ipairs(ops) do
    local rate = op.flop / figure.median(op.seconds)
    local full = ("gpu.shape.%s.%s"):format(name, op.name)
    figure.print(full, rate / 1e12, ("TFLOP/s, %.0f%% of the best product"):format(100 * rate / best))
  end
end

-- The best rate of a large product's three ops.
local function best_of(size, precision)
  local side, best = size.product, 0
  local ops = measure({ Input { 1, 1, 2 * side, side },
    nn.Linear(side, side, { bias = false }) }, "linear", precision)
  for _, op in ipairs(ops) do best = math.max(best, op.flop / figure.median(op.seconds)) end
  figure.print("gpu.shape.best", best / 1e12,
    ("TFLOP/s, %d x %d by %d x %d"):format(2 * side, side, side, side))
  return best
end

--- Print the rate of each shape.
---@param size table width, heads, context, vocabulary, batch, product
---@param precision string
function shapes.run(size, precision)
  local best = best_of(size, precision)
  for _, p in ipairs(PRODUCTS) do
    local from = p[1] * size.width
    local to = p[2] and p[2] * size.width or size.vocabulary
    print_ops(p.name, measure({ Input { 1, 1, size.batch * size.context, from },
      nn.Linear(from, to, { bias = false }) }, "linear", precision), best)
    collectgarbage()
  end
  local shape = { size.batch, size.heads, size.context, size.width // size.heads }
  print_ops("attention", measure({ Attend(shape) }, "attention", precision), best)
end

return shapes
