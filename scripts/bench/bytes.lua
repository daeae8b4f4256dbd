-- scripts/bench/bytes.lua - bytes that kernels of images and losses read and write, an element.
--
--   build/gpipe-lua scripts/bench/bytes.lua      needs no GPU: `ninja -C build gpipe_cuda_counting`
--
-- The kernels run on the host, compiled so that their accesses to a GPU's memory are counted
-- (tests/cuda/bytes.cpp); each case is a process that trains a step. The floor is each operand of
-- the size of the image once. A window that overlaps reads elements several times, mostly from the
-- cache, and so lies above it; the bound is what is reached today.
local gp = require "gpipe"
local figure = require "scripts.bench.figure"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Count bytes of an element.", {
  { "--run NAME", "", "train a step of this case, and print nothing" },
}, arg)

local N, C, SIDE, ROWS, VOCABULARY = 16, 64, 32, 64, 50304
local IMAGE, SCORES = N * C * SIDE * SIDE, ROWS * VOCABULARY

-- ---- models -------------------------------------------------------------------------------------

-- A weight for each channel, so that what follows has a gradient to pass on.
local Scale = nn.class("Scale")
function Scale:init() self.w = nn.Parameter({ 1, C, 1, 1 }, nn.init.normal(0, 0.5)) end
function Scale:forward(x) return x * self.w end

local AddNorm = nn.class("AddNorm")
function AddNorm:init() self.norm = nn.BatchNorm2d(C) end
function AddNorm:forward(x) return (self.norm(x) + x):relu() end

local function image(...)
  local layers = { ... }
  return function()
    return nn.Sequential { Scale(), table.unpack(layers) }, gp.randn { N, C, SIDE, SIDE },
      nn.MSELoss()
  end
end

-- Each kernel with its floor and its bound in bytes an element, by a part of its name or of the types
-- of its arguments. Halves have 2 bytes.
local CASES = {
  { "batch_norm", image(nn.BatchNorm2d(C), nn.AvgPool2d(2)), {
    { "statistics", "warp_stats_kernel", 2, 2.25 }, { "normalised", "normalise_kernel", 4, 7 },
    { "sums of gradients", "warp_sums_kernel", 4, 4.32 },
    { "gradient", "input_gradient_kernel", 6, 10.5 },
    { "average pool", "resample2d_element", 2 + 2 / 4, 2.5 },
    { "its gradient", "resample2d_dx_element", 2 + 2 / 4, 4 },
  } },
  { "norm_relu", image(nn.BatchNorm2d(C), nn.ReLU()), {
    { "normalised, ReLU", "normalise_kernel", 4, 7 },
    { "sums of gradients", "warp_relu_sums_kernel", 4, 4.57 },
    { "gradient", "input_gradient_kernel", 6, 11.5 },
  } },
  { "norm_add_relu", image(AddNorm()), {
    { "normalised, sum, ReLU", "normalise_kernel", 6, 9 },
    { "gate and sums of gradients", "warp_gate_sums_kernel", 8, 8.32 },
    { "gradient", "input_gradient_kernel", 6, 10.5 },
  } },
  { "max_pool", image(nn.MaxPool2d(2)), {
    { "largest of 2 x 2", "max_pool2d_element", 2 + 3 / 4, 2.75 },
    { "its gradient", "max_pool2d_dx_element", 2 + 3 / 4, 5 },
  } },
  { "max_pool_3", image(nn.MaxPool2d(3, { stride = 2, padding = 1 })), {
    { "largest of 3 x 3, overlapping", "max_pool2d_element", 2 + 3 / 4, 5.07 },
    { "its gradient", "max_pool2d_dx_element", 2 + 3 / 4, 8.48 },
  } },
  { "upsample", image(nn.Upsample { scale = 2, mode = "bilinear" }), {
    { "twice as large, bilinear", "resample2d_element", 2 + 4 * 2, 39.6 },
    { "its gradient", "resample2d_dx_element", 2 + 4 * 2, 70.5 },
  } },
  { "cross_entropy", function()
    return nn.Sequential { nn.Linear(16, VOCABULARY) }, gp.randn { ROWS, 16 }, nn.CrossEntropyLoss()
  end, { { "loss and gradient", "both_long", 4, 4.15 } }, SCORES },
}

-- ---- running ------------------------------------------------------------------------------------

local function run(case)
  gp.seed(1)
  local model, x, loss = case[2]()
  local y = case[4] and gp.zeros({ ROWS }, { dtype = "i64" }) or gp.zeros(model(x).shape)
  local pipe <close> = gp.pipeline(model, {
    devices = { "cuda:0" }, chunks = 1, precision = "bf16", loss = loss, balance = { #model },
  })
  pipe:step(x, y)
end

-- ---- the table ----------------------------------------------------------------------------------

-- Trains a step of the case in a process of its own; returns {[kernel and types] = bytes}.
local function count(case)
  local path = os.tmpname()
  local plugin = os.getenv "GPIPE_CUDA_PLUGIN"
    or (arg[-1]:match "^(.*/)" or "./") .. "libgpipe_cuda_counting.so"
  local command = ("GPIPE_CUDA_PLUGIN=%s GPIPE_TEST_BYTES=%s %s %s --run %s"):format(
    figure.quote(plugin), path, figure.quote(arg[-1]), figure.quote(arg[0]), case[1])
  local good = os.execute(command)
  local found = {}
  for line in io.lines(path) do
    local kernel, got, put = line:match "^bytes (.+) read (%d+) written (%d+)$"
    if kernel then found[kernel] = (found[kernel] or 0) + tonumber(got) + tonumber(put) end
  end
  os.remove(path)
  return good and found
end

local exact = figure.exact()

local function print_case(case, counted)
  for _, kernel in ipairs(case[3]) do
    local what, pattern, floor, bound = table.unpack(kernel)
    local bytes = 0
    for name, sum in pairs(counted) do
      if name:find(pattern, 1, true) then bytes = bytes + sum end
    end
    local each = bytes / (case[4] or IMAGE)
    local label = ("bytes.%s.%s"):format(case[1], what:gsub("[%s,]+", "_"))
    if bytes == 0 then error(label .. ": no accesses of a kernel " .. pattern, 0) end
    exact.print(label, each, ("of %.2f: %.2f times"):format(floor, each / floor), bound)
  end
end

for _, case in ipairs(CASES) do
  if opt.run == case[1] then return run(case) end
end
for _, case in ipairs(CASES) do
  local counted = count(case)
  if not counted or not next(counted) then
    return figure.skip("bytes", "no plugin that counts: ninja -C build gpipe_cuda_counting")
  end
  print_case(case, counted)
end
exact.finish()
