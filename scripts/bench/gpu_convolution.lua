-- scripts/bench/gpu_convolution.lua - convolutions on a GPU: how far they are from f64 on the same
-- GPU and inputs, and how many images a second ResNet-50 trains with.
--
-- cuDNN computes them where it takes them, our own kernels with GPIPE_CONVOLUTION=own; f64 is
-- always ours. Inputs are numbers that bf16 holds exactly, so that the difference is what the
-- computation adds. NaN is never within a bound.
local gp = require "gpipe"
local figure = require "figure"
local nn = gp.nn

local convolution = {}

-- ---- exactness ----------------------------------------------------------------------------------

-- Layers of ResNet, and special cases: few channels, groups, padding that differs, no padding.
local CASES = {
  { name = "3x3", 64, 64, 3, { padding = 1 } },
  { name = "1x1", 256, 64, 1, { stride = 2, bias = false } },
  { name = "7x7", 3, 64, 7, { stride = 2, padding = 3, bias = false } },
  { name = "depthwise", 64, 64, 3, { padding = 1, groups = 64 } },
  { name = "dilated", 64, 32, 3, { dilation = 2, padding = { 2, 3, 2, 3 } } },
  { name = "transposed", 64, 32, 2, { stride = 2 }, transposed = true },
}
-- Sums run in another order; halves are rounded once.
local BOUND = { f32 = 1e-5, tf32 = 1e-5, bf16 = 5e-3, f16 = 1e-3 }

local function draw(shape, seed, dtype)
  return gp.randn(shape, { seed = seed }):to "bf16":to(dtype)
end

-- The images are a parameter, so that a gradient reaches them.
local Convolve = nn.class("Convolve")
function Convolve:init(case, side, dtype)
  local options = { dtype = dtype }
  for name, value in pairs(case[4]) do options[name] = value end
  local shape = { 4, case[1], side, side }
  self.images = nn.Parameter(shape, draw(shape, 1, dtype), { dtype = dtype })
  self.layer = (case.transposed and nn.ConvTranspose2d or nn.Conv2d)(case[1], case[2], case[3],
    options)
  for i, name in ipairs { "weight", "bias" } do
    local p = self.layer[name]
    if p then p:copy_(draw(p.shape, 1 + i, dtype)) end
  end
end

function Convolve:forward(x) return self.layer(self.images * x) end

-- Returns the output and the gradients as f64 on the host. With precision nil all of it is computed
-- in f64.
local function results_of(case, side, precision)
  local dtype = precision and "f32" or "f64"
  local model = Convolve(case, side, dtype)
  local one = gp.ones({ 4, 1, 1, 1 }, { dtype = dtype })
  local pipe <close> = gp.pipeline(nn.Sequential { model }, {
    devices = { "cuda:0" }, precision = precision,
    loss_scale = precision == "f16" and { initial = 1 } or nil,
    loss = function(output, wanted) return (output * wanted:to(output.dtype)):sum(), 1 end,
  })
  local output = pipe:eval():forward(one)
  pipe:train():step(one, draw(output.shape, 9, dtype))
  local results = { output:to "cpu":to "f64" }
  for i, p in ipairs(pipe:parameters()) do results[i + 1] = p.grad:to "cpu":to "f64" end
  return results
end

local function norm(t) return math.sqrt((t * t):sum():item()) end

local NAMES = { "out", "dx", "dw", "db" }

--- Print the relative errors of outputs and gradients.
--- Errors: some are out of their bounds, after all were printed.
---@param side integer pixels of the images' sides
function convolution.compare(side)
  local exact = figure.exact()
  for _, case in ipairs(CASES) do
    local want = results_of(case, side)
    for _, precision in ipairs { "f32", "tf32", "bf16", "f16" } do
      local got = results_of(case, side, precision)
      for i in ipairs(want) do
        exact.print(("gpu.convolution.%s.%s.%s"):format(case.name, precision, NAMES[i]),
          norm(got[i] - want[i]) / norm(want[i]), "relative error", BOUND[precision])
      end
    end
  end
  exact.finish()
end

-- ---- training -----------------------------------------------------------------------------------

local function print_paths(pipe)
  local count = { cuDNN = 0 }
  for _, path in ipairs(pipe:describe().devices[1].paths) do
    if path.kind == "convolution" then
      local own = path.path ~= "cuDNN"
      count[path.path] = (count[path.path] or 0) + 1
      if own then print(("# %s: %s (%s)"):format(path.shape, path.path, path.why)) end
    end
  end
  figure.print("gpu.resnet.cudnn", count.cuDNN, "kinds of convolution by cuDNN")
  figure.print("gpu.resnet.own", count["own kernels"] or 0, "by our own kernels")
end

--- Print images a second of a training step of ResNet on square images.
---@param size table depth, images, side, steps, precision
function convolution.train(size)
  gp.seed(0)
  local pipe <close> = gp.pipeline(gp.models.resnet(size.depth), {
    devices = { "cuda:0" }, checkpoint = "never", precision = size.precision,
    loss = nn.CrossEntropyLoss(),
  })
  pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1, momentum = 0.9 }))
  local images = gp.randn { size.images, 3, size.side, size.side }
  local classes = gp.randint(0, 1000, { size.images })
  local times = {}
  for i = -3, size.steps do
    local seconds = figure.seconds(function() pipe:step(images, classes) end)
    if i > 0 then times[i] = seconds end
  end
  figure.print("gpu.resnet.images", size.images / figure.median(times),
    "images/s in " .. size.precision)
  figure.print("gpu.resnet.memory", gp.memory()["cuda:0"].peak / 2 ^ 30, "GiB")
  print_paths(pipe)
end

return convolution
