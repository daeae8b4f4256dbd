-- scripts/bench/bytes.lua - bytes that kernels of images and losses read and write, an element.
--
--   build/gpipe-lua scripts/bench/bytes.lua --run batch_norm     trains a step of the case on cuda:0
--   build/gpipe-lua scripts/bench/bytes.lua --report FILE        prints ratios from what was counted
--
-- A case runs where GPUs are simulated and their accesses counted: the report has a line `bytes
-- KERNEL<...> grid .. read R written W` for each kernel and grid, and `kernel NAME COUNT` for its
-- launches. The floor is each operand of the size of the image once. A window that overlaps reads
-- elements several times, mostly from the cache, and so lies above it.
local gp = require "gpipe"
local figure = require "scripts.bench.figure"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Count bytes of an element.", {
  { "--run NAME", "", "train a step of this case" },
  { "--report FILE", "", "the report of all cases, each under its label" },
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

-- Each kernel with its floor in bytes an element of `of`, by a pattern of its mangled name. Halves
-- have 2 bytes.
local CASES = {
  { "batch_norm", image(nn.BatchNorm2d(C), nn.AvgPool2d(2)), {
    { "statistics", "warp_stats_kernel", 2 }, { "normalised", "normalise_kernel", 4 },
    { "sums of gradients", "warp_sums_kernel", 4 }, { "gradient", "input_gradient_kernel", 6 },
    { "average pool", "resample2d_element", 2 + 2 / 4 },
    { "its gradient", "resample2d_dx_element", 2 + 2 / 4 },
  } },
  { "norm_relu", image(nn.BatchNorm2d(C), nn.ReLU()), {
    { "normalised, ReLU", "normalise_kernel", 4 },
    { "sums of gradients", "warp_relu_sums_kernel", 4 },
    { "gradient", "input_gradient_kernel", 6 },
  } },
  { "norm_add_relu", image(AddNorm()), {
    { "normalised, sum, ReLU", "normalise_kernel", 6 },
    { "gate and sums of gradients", "warp_gate_sums_kernel", 8 },
    { "gradient", "input_gradient_kernel", 6 },
  } },
  { "max_pool", image(nn.MaxPool2d(2)), {
    { "largest of 2 x 2", "max_pool2d_element", 2 + 3 / 4 },
    { "its gradient", "max_pool2d_dx_element", 2 + 3 / 4 },
  } },
  { "max_pool_3", image(nn.MaxPool2d(3, { stride = 2, padding = 1 })), {
    { "largest of 3 x 3, overlapping", "max_pool2d_element", 2 + 3 / 4 },
    { "its gradient", "max_pool2d_dx_element", 2 + 3 / 4 },
  } },
  { "upsample", image(nn.Upsample { scale = 2, mode = "bilinear" }), {
    { "twice as large, bilinear", "resample2d_element", 2 + 4 * 2 },
    { "its gradient", "resample2d_dx_element", 2 + 4 * 2 },
  } },
  { "cross_entropy", function()
    return nn.Sequential { nn.Linear(16, VOCABULARY) }, gp.randn { ROWS, 16 }, nn.CrossEntropyLoss()
  end, { { "loss and gradient", "both_long", 4 } }, SCORES },
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

-- Returns {[label] = {[kernel] = {read, written, launches}}} of a report.
local function read(path)
  local found, label = {}, ""
  for line in assert(io.lines(path)) do
    label = line:match "^== (.+)$" or label
    found[label] = found[label] or {}
    local kernel, got, put = line:match "^bytes (%S+).- read (%d+) written (%d+)$"
    if kernel then
      local sum = found[label][kernel] or { 0, 0 }
      found[label][kernel] = { sum[1] + tonumber(got), sum[2] + tonumber(put) }
    end
  end
  return found
end

local function print_case(case, counted)
  for _, kernel in ipairs(case[3]) do
    local what, pattern, floor = table.unpack(kernel)
    local bytes = 0
    for name, sum in pairs(counted or {}) do
      if name:find(pattern, 1, true) then bytes = bytes + sum[1] + sum[2] end
    end
    local each = bytes / (case[4] or IMAGE)
    local label = ("bytes.%s.%s"):format(case[1], what:gsub("[%s,]+", "_"))
    if bytes == 0 then
      print(label .. " skipped: no kernel " .. pattern)
    else
      figure.print(label, each, ("of %.2f: %.2f times"):format(floor, each / floor))
    end
  end
end

local counted = opt.report ~= "" and read(opt.report)
for _, case in ipairs(CASES) do
  if opt.run == case[1] then run(case) end
  if counted then print_case(case, counted[case[1]]) end
end
