-- scripts/bench/kernels.lua - what single ops reach, as a share of copying memory or of
-- multiplying.
--
-- No bounds: these figures say where a step's time could be won. Each op runs as a stage of several
-- such layers in a row on one device with one thread, forward and backward, as it does in training.
-- Rows that stay in the cache from one layer to the next are part of the result, so shares above
-- 100 % are possible. At the default sizes a whole tensor stays in the cache, where a copy is
-- several times as fast as in memory, and shares are low; docs/performance.md says which sizes its
-- figures are of.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local core = require "gpipe.core"
local figure = require "figure"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Time single kernels.", {
  { "--rounds N", 9, "turns of each" }, { "--width N", 384, "width of a row" },
  { "--rows N", 256, "rows of a micro-batch" }, { "--layers N", 8, "layers of a stage" },
  { "--only NAME", "", "this kernel alone" },
}, arg)
local ELEMENTS, HEAD = opt.rows * opt.width, 64

-- ---- what is measured ------------------------------------------------------------------------

-- A layer without parameters that applies a function.
local Apply = nn.class("Apply")
function Apply:init(apply) self.apply = apply end
function Apply:forward(x) return self.apply(x) end

-- x [B, T, C] attends to itself.
local function attend(x)
  local b, t, c = table.unpack(x.shape)
  local heads = x:reshape { b, t, c // HEAD, HEAD }:permute { 1, 3, 2, 4 }
  local mixed = core.attention(heads, heads, heads, { causal = true })
  return mixed:permute({ 1, 3, 2, 4 }):reshape { b, t, c }
end

local function apply(work) return function() return Apply(work) end end

-- BatchNorm1d with the rows of the batch as positions and the width as channels.
local Norm = nn.class("Norm")
function Norm:init() self.norm = nn.BatchNorm1d(opt.width) end
function Norm:forward(x) return self.norm(x:reshape(opt.rows, opt.width)):reshape(x.shape) end
local function apply_norm() return Norm() end

-- forward, backward: how many times each reads or writes the elements (bytes / 4), or its FLOP
-- where `flop`. The backward pass of a norm reads what the gradients of its weights need twice:
-- sums over rows have one order, so they are made column by column.
local kernels = {
  { name = "add", make = apply(function(x) return x + x end), forward = 2, backward = 2 },
  { name = "relu", make = apply(function(x) return x:relu() end), forward = 2, backward = 3 },
  { name = "gelu", make = apply(function(x) return x:gelu("tanh") end), forward = 2, backward = 3 },
  { name = "softmax", make = apply(function(x) return x:softmax(-1) end), forward = 2,
    backward = 3 },
  { name = "layer_norm", make = function() return nn.LayerNorm(opt.width) end, forward = 2,
    backward = 5 },
  { name = "rms_norm", make = function() return nn.RMSNorm(opt.width) end, forward = 2,
    backward = 5 },
  { name = "batch_norm", make = apply_norm, forward = 3, backward = 5 },
  { name = "dropout", make = function() return nn.Dropout(0.1) end, forward = 2, backward = 2 },
  {
    name = "linear", make = function() return nn.Linear(opt.width, opt.width) end, flop = true,
    forward = 2 * opt.width, backward = 4 * opt.width,
  },
  { -- half of the pairs of positions are seen
    name = "attention", make = apply(attend), flop = true, forward = 2 * opt.rows,
    backward = 5 * opt.rows,
  },
}

-- ---- measuring -------------------------------------------------------------------------------

-- The first layer has a parameter, so that gradients flow through layers that have none. The last
-- ones keep the batch's output small, because its memory is allocated anew for every batch.
local Gain = nn.class("Gain")
function Gain:init() self.w = nn.Parameter({ 1 }, nn.init.ones()) end
function Gain:forward(x) return x * self.w end
local function total(x) return x:sum(-1) end

local function stage_of(layers)
  return gp.pipeline(nn.Sequential(layers), {
    devices = { { "cpu:0", threads = 1 } }, chunks = 1, checkpoint = "never",
  })
end

-- A contender: seconds in actions of one forward and of one backward, the median of a few.
local function passes(pipe)
  local x = gp.randn { 1, opt.rows, opt.width }
  return function()
    local forward, backward = {}, {}
    for i = 1, 5 do
      local y = pipe:forward(x)
      forward[i] = pipe.stats.busy[1]
      pipe:backward(y)
      backward[i] = pipe.stats.busy[1]
    end
    return { figure.median(forward), figure.median(backward) }
  end
end

-- A contender: seconds of a piece of work, the median of a few.
local function turns_of(work)
  return function()
    local times = {}
    for i = 1, 5 do times[i] = figure.seconds(work) end
    return figure.median(times)
  end
end

local function copying(elements)
  local from, to = gp.randn { elements }, gp.zeros { elements }
  return turns_of(function() to:copy_(from) end)
end

-- Returns, per round, the seconds of a layer's forward and backward pass (what the layers add to a
-- stage that has none), and of a copy.
local function seconds_of(kernel)
  local layers = { Gain() }
  for i = 1, opt.layers do layers[i + 1] = kernel.make() end
  table.move({ Gain(), Apply(total) }, 1, 2, #layers + 1, layers)
  local with <close> = stage_of(layers)
  local without <close> = stage_of { Gain(), Gain(), Apply(total) }
  local times = figure.alternate(opt.rounds,
    { with = passes(with), without = passes(without), copy = copying(ELEMENTS) },
    { "with", "without", "copy" })
  local added = { {}, {}, times.copy }
  for i = 1, opt.rounds do
    for pass = 1, 2 do
      added[pass][i] = (times.with[i][pass] - times.without[i][pass]) / opt.layers
    end
  end
  return table.unpack(added)
end

-- ---- report ----------------------------------------------------------------------------------

-- Prints the rate of `words` of each element, as a share of what copying reaches in the same
-- rounds.
local function report_copy(name, words, seconds, copy)
  local shares = {}
  for i = 1, #seconds do shares[i] = 100 * words * copy[i] / (2 * seconds[i]) end
  figure.print("kernels." .. name, figure.median(shares), "% of copy")
end

local multiply -- FLOP per second of the linear layer

local function report_flop(name, flop, seconds)
  local rate = flop * ELEMENTS / figure.median(seconds)
  if name == "linear.forward" then
    multiply = rate
    figure.print("kernels.linear", 1e-9 * multiply, "GF/s")
  end
  figure.print("kernels." .. name, 100 * rate / multiply, "% of linear")
end

-- AdamW reads value, gradient and two moments and writes three of them.
local function report_adamw()
  local n = 1 << 20
  local pipe <close> = stage_of { nn.Embedding(n // 64, 64) }
  local adam = gp.optim.AdamW(pipe:parameters(), { lr = 1e-3 })
  local ids = gp.zeros({ 8 }, { dtype = "i64" })
  pipe:backward(pipe:forward(ids))
  local times = figure.alternate(opt.rounds,
    { update = turns_of(function() adam:step() end), copy = copying(n) }, { "update", "copy" })
  report_copy("adamw", 7, times.update, times.copy)
end

-- Attention is compared with the linear layer.
local function wanted(name)
  return opt.only == "" or opt.only == name or (opt.only == "attention" and name == "linear")
end

for _, kernel in ipairs(kernels) do
  if wanted(kernel.name) then
    local forward, backward, copy = seconds_of(kernel)
    local report = kernel.flop and report_flop or report_copy
    report(kernel.name .. ".forward", kernel.forward, forward, copy)
    report(kernel.name .. ".backward", kernel.backward, backward, copy)
  end
end
if wanted("adamw") then report_adamw() end
