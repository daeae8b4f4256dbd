-- scripts/bench/gpu_kernels.lua - our own kernels as a share of copying memory on the GPU.
--
-- A model makes one large tensor on the GPU and sends it through n layers of a kind. Two models
-- that differ only in n differ by what those layers take, forward and backward, without transfers,
-- losses and launches. Tensors are several times the cache, so the figures are those of memory.
local gp = require "gpipe"
local ceilings = require "gpu_ceilings"
local figure = require "figure"
local nn = gp.nn

local kernels = {}

local Grow = nn.class("Grow") -- makes rows x width from one number a step
function Grow:init(rows, width) self.w = nn.Parameter({ 1, rows, width }, nn.init.normal(0, 1)) end
function Grow:forward(x) return self.w * x end

local Apply = nn.class("Apply")
function Apply:init(apply) self.apply = apply end
function Apply:forward(x) return self.apply(x) end

local function apply(f) return function() return Apply(f) end end

local Look = nn.class("Look") -- adds rows of a table, chosen by ids that stay on the GPU
local CHOICES = 4096
function Look:init(rows, width)
  self.table = nn.Embedding(CHOICES, width)
  self.ids = (gp.rand { 1, rows } * CHOICES):to "i64"
end

function Look:forward(x) return x + self.table(self.ids) end

-- Casts to another dtype and back: the two launches are what is measured.
local function cast(x) return x:to(x.dtype == "f32" and "bf16" or "f32"):to(x.dtype) end

local Image = nn.class("Image") -- a layer that sees rows x width as one image, channels-last
local SIDE = 64 -- pixels of a row
function Image:init(channels, layer) self.channels, self.layer = channels, layer end

function Image:forward(x)
  local shape = { 1, x:numel() // (SIDE * self.channels), SIDE, self.channels }
  return self.layer(x:reshape(shape):permute(1, 4, 2, 3)):permute(1, 3, 4, 2):reshape(x.shape)
end

local function image(channels, make) return function() return Image(channels, make()) end end

local WINDOW = { stride = 1, padding = 1 } -- of 3 x 3, which keeps the size

-- times: how often a layer reads or writes the elements, forward and backward; bound in % of the
-- copy. A function of the elements' bytes where another dtype comes into it.
local KERNELS = {
  { name = "add", times = 4, make = apply(function(x) return x * 1.01 end) },
  { name = "gelu", times = 5, make = apply(function(x) return x:gelu("tanh") end) },
  { name = "softmax", times = 5, make = apply(function(x) return x:softmax(-1) end) },
  -- dx, dw read x, dy
  { name = "layer_norm", times = 7, make = function(size) return nn.LayerNorm(size.width) end },
  { name = "dropout", times = 4, make = function() return nn.Dropout(0.1) end },
  -- there and back, twice, with 6 bytes each
  { name = "cast", times = function(bytes) return 24 / bytes end, make = apply(cast),
    fuse = false },
  -- table to rows, sum of two, gradient read
  -- statistics read x; forward reads, writes; sums read x, dy; dx reads both, writes
  { name = "batch_norm_64", times = 8, make = image(64, function() return nn.BatchNorm2d(64) end) },
  { name = "batch_norm_256", times = 8,
    make = image(256, function() return nn.BatchNorm2d(256) end) },
  { name = "avg_pool", times = 4, make = image(64, function() return nn.AvgPool2d(3, WINDOW) end) },
  -- and a byte for each position, written and read
  { name = "max_pool", times = function(bytes) return 4 + 2 / bytes end,
    make = image(64, function() return nn.MaxPool2d(3, WINDOW) end) },
  { name = "embedding", times = 6, make = function(size) return Look(size.rows, size.width) end },
}

-- ---- measuring ----------------------------------------------------------------------------------

local function sum_of(output, target) return (output * target:to(output.dtype)):sum(), 1 end

-- Seconds of a step of these layers behind the tensor. o: {loss?, fuse?, use?, targets?}
local function seconds_of(size, layers, o)
  table.insert(layers, 1, Grow(size.rows, size.width))
  local pipe <close> = gp.pipeline(nn.Sequential(layers), {
    devices = { "cuda:0" }, checkpoint = "never", loss = o.loss or sum_of, fuse = o.fuse,
    precision = size.dtype, loss_scale = size.dtype == "f16" and { initial = 1 } or nil,
  })
  if o.use then pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-3 })) end
  local x, y, times = gp.ones { 1, 1, 1 }, o.targets or gp.ones { 1, 1, 1 }, {}
  for i = -3, size.rounds do
    local seconds = figure.seconds(function() pipe:step(x, y) end)
    if i > 0 then times[i] = seconds end
  end
  return figure.median(times)
end

local function repeated(size, kernel, n)
  local layers = {}
  for i = 1, n do layers[i] = kernel.make(size) end
  return seconds_of(size, layers, { fuse = kernel.fuse })
end

local function print_share(size, name, bytes, seconds)
  figure.print(("gpu.kernel.%s.%s"):format(size.dtype, name), 100 * bytes / seconds / size.rate,
    "% of copy", ">=", 80)
end

-- Forward reads the scores; backward reads them and writes over them. The sum that serves as
-- baseline reads and writes them once, so that time is added back.
local function print_cross_entropy(size, bytes)
  local loss, targets = nn.CrossEntropyLoss(), (gp.rand { 1, size.rows } * size.width):to "i64"
  local with = seconds_of(size, {}, { loss = loss, targets = targets })
  local seconds = with - seconds_of(size, {}, {}) + 2 * bytes / size.rate
  print_share(size, "cross_entropy", 3 * bytes, seconds)
end

--- Print the copy's rate and the share of it that kernels reach.
---@param size {rows: integer, width: integer, rounds: integer, dtype: string} rows x width elements
function kernels.run(size)
  local element = size.dtype == "f32" and 4 or 2
  local bytes = element * size.rows * size.width
  size.rate = ceilings.copy_rate(size.rows, size.width, size.rounds)
  figure.print("gpu.copy", size.rate / 1e9, "GB/s")
  for _, kernel in ipairs(KERNELS) do
    local few, many = repeated(size, kernel, 1), repeated(size, kernel, 5)
    local times = type(kernel.times) == "function" and kernel.times(element) or kernel.times
    print_share(size, kernel.name, 4 * times * bytes, many - few)
  end
  print_cross_entropy(size, bytes)
  if size.dtype ~= "f32" then return end -- updates run in f32 only
  -- Reads parameter, gradient and two moments, writes all but the gradient.
  local without, with = seconds_of(size, {}, {}), seconds_of(size, {}, { use = true })
  print_share(size, "adamw", 7 * bytes, with - without)
end

return kernels
