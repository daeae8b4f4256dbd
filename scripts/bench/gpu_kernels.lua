-- scripts/bench/gpu_kernels.lua - our own kernels as a share of copying memory on the GPU.
--
-- A model makes one large tensor on the GPU and sends it through n layers of a kind; two models
-- that differ in n alone differ by what those layers take, forward and backward, without transfers,
-- losses and launches. Tensors are several times the cache, so that memory is what is measured.
local gp = require "gpipe"
local figure = require "figure"
local nn = gp.nn

local kernels = {}

local Grow = nn.class("Grow") -- one number a step becomes rows x width
function Grow:init(rows, width) self.w = nn.Parameter({ 1, rows, width }, nn.init.normal(0, 1)) end
function Grow:forward(x) return self.w * x end

local Apply = nn.class("Apply")
function Apply:init(apply) self.apply = apply end
function Apply:forward(x) return self.apply(x) end

local function apply(f) return function() return Apply(f) end end

-- times: how often a layer reads or writes the elements, forward and backward; bound in % of the
-- copy.
local KERNELS = {
  { name = "add", times = 4, make = apply(function(x) return x * 1.01 end) },
  { name = "gelu", times = 5, make = apply(function(x) return x:gelu("tanh") end) },
  { name = "softmax", times = 5, make = apply(function(x) return x:softmax(-1) end) },
  -- dx, dw read x, dy
  { name = "layer_norm", times = 7, make = function(width) return nn.LayerNorm(width) end },
  { name = "dropout", times = 4, make = function() return nn.Dropout(0.1) end },
}

-- ---- measuring ----------------------------------------------------------------------------------

-- Bytes a second that a copy from GPU memory to GPU memory moves, read and written.
local function copy_rate(rows, width, rounds)
  local from, to = gp.ones({ rows, width }, { device = "cuda:0" }),
    gp.ones({ rows, width }, { device = "cuda:0" })
  local times = {}
  for i = -1, rounds do
    local seconds = figure.seconds(function()
      for _ = 1, 10 do to:copy_(from) end
      to[1][1] = to[1][2] -- waits
    end)
    if i > 0 then times[i] = seconds / 10 end
  end
  return 2 * 4 * rows * width / figure.median(times)
end

-- Seconds of a step of the model with n layers of a kind.
local function seconds_of(size, make, n, use)
  local layers = { Grow(size.elements, size.width) }
  for i = 1, n do layers[i + 1] = make(size.width) end
  local pipe <close> = gp.pipeline(nn.Sequential(layers), {
    devices = { "cuda:0" }, checkpoint = "never",
    loss = function(output, target) return (output * target):sum(), 1 end,
  })
  if use then pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-3 })) end
  local x, y, times = gp.ones { 1, 1, 1 }, gp.ones { 1, 1, 1 }, {}
  for i = -3, size.rounds do
    local seconds = figure.seconds(function() pipe:step(x, y) end)
    if i > 0 then times[i] = seconds end
  end
  return figure.median(times)
end

local function print_share(name, bytes, seconds, rate)
  figure.print(("gpu.kernel.%s"):format(name), 100 * bytes / seconds / rate, "% of copy", ">=", 80)
end

local nothing = apply(function(x) return x end)

--- Print the copy's rate and the share of it that kernels reach.
---@param size {rows: integer, width: integer, rounds: integer} rows x width elements of f32
function kernels.run(size)
  size.elements = size.rows
  local bytes, rate = 4 * size.rows * size.width, copy_rate(size.rows, size.width, size.rounds)
  figure.print("gpu.copy", rate / 1e9, "GB/s")
  for _, kernel in ipairs(KERNELS) do
    local few, many = seconds_of(size, kernel.make, 1), seconds_of(size, kernel.make, 5)
    print_share(kernel.name, 4 * kernel.times * bytes, many - few, rate)
  end
  -- Reads parameter, gradient and two moments, writes all but the gradient.
  local without, with = seconds_of(size, nothing, 1), seconds_of(size, nothing, 1, true)
  print_share("adamw", 7 * bytes, with - without, rate)
end

return kernels
