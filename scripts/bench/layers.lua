-- scripts/bench/layers.lua - stages made of convolutions against oneDNN's own on the same shapes.
--
-- A stage of Conv2ds runs on one device with one thread; bench_layers (layers.c) calls the
-- library's convolutions directly, on images channels-last and weights in the order that it likes
-- best. The time beyond that is ours: gathers, packed weights, bias, loss, the engine. Both take
-- turns; the share is theirs / ours, in processor time, as in gemm.lua.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure = require "figure"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Compare stages of convolutions with oneDNN's.", {
  { "--rounds N", 5, "turns of each" }, { "--rows N", 8, "images of a micro-batch" },
}, arg)
local program = figure.interpreter():match("^(.*/)[^/]*$") .. "bench_layers"

-- ResNet's shapes: the sizes of the images, then layers as {in, out, kernel}.
local CASES = {
  { name = "3x3_64", size = 56, { 64, 64, 3 }, { 64, 64, 3 } },
  { name = "3x3_128", size = 28, { 128, 128, 3 }, { 128, 128, 3 } },
  { name = "3x3_256", size = 14, { 256, 256, 3 }, { 256, 256, 3 } },
  { name = "3x3_512", size = 7, { 512, 512, 3 }, { 512, 512, 3 } },
  { name = "bottleneck", size = 14, { 1024, 256, 1 }, { 256, 256, 3 }, { 256, 1024, 1 } },
}

local function stage_of(case)
  local layers = {}
  for i, layer in ipairs(case) do
    layers[i] = nn.Conv2d(layer[1], layer[2], layer[3], { padding = "same" })
  end
  return gp.pipeline(nn.Sequential(layers), {
    devices = { { "cpu:0", threads = 1 } }, checkpoint = "never", loss = nn.MSELoss(),
  })
end

-- Forward and two gradients per layer, but no input gradient for the first.
local function gflop(case)
  local sum = 0
  for i, layer in ipairs(case) do
    sum = sum + (i == 1 and 4 or 6) * opt.rows * case.size ^ 2 * layer[1] * layer[2] * layer[3] ^ 2
  end
  return 1e-9 * sum
end

-- Seconds that the library takes for all products.
local function direct(case)
  return function()
    local sum = 0
    for i, layer in ipairs(case) do
      local line = assert(figure.capture(("OMP_NUM_THREADS=1 %s %d %d %d %d %d 1 %d"):format(
        figure.quote(program), opt.rows, layer[1], layer[2], case.size, layer[3], layer[3] // 2)),
        "bench_layers failed")
      local forward, input, weight = line:match("(%S+) (%S+) (%S+)")
      sum = sum + forward + weight + (i > 1 and input or 0)
    end
    return sum
  end
end

-- Seconds of a step: the least of a few, as in layers.c.
local function ours(pipe, x, y)
  return function()
    local best = math.huge
    for _ = 1, 8 do
      local begin = os.clock()
      pipe:step(x, y)
      best = math.min(best, os.clock() - begin)
    end
    return best
  end
end

local function compare(case)
  local pipe <close> = stage_of(case)
  local x = gp.randn { opt.rows, case[1][1], case.size, case.size }
  local y = gp.randn { opt.rows, case[#case][2], case.size, case.size }
  pipe:step(x, y)
  local times = figure.alternate(opt.rounds, { direct = direct(case), ours = ours(pipe, x, y) },
    { "direct", "ours" })
  local share = figure.median(figure.ratios(times.direct, times.ours))
  figure.print(("layers.%s.direct"):format(case.name), gflop(case) / figure.median(times.direct),
    "GF/s")
  figure.print(("layers.%s.share"):format(case.name), 100 * share, "%", ">=", 90)
end

for _, case in ipairs(CASES) do
  if figure.capture(("%s 1 1 1 1 1 1 0 2>/dev/null"):format(figure.quote(program))) then
    compare(case)
  else
    figure.skip(("layers.%s"):format(case.name), "bench_layers does not run (libdnnl-dev)")
  end
end
