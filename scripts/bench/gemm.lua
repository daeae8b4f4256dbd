-- scripts/bench/gemm.lua - stages made of matrix products against dnnl_sgemm on the same shapes.
--
-- A stage of Linears runs on one device with one thread; bench_gemm (gemm.c) makes the same
-- products by calling the library directly. The time beyond that is ours: bias, loss, cutting into
-- blocks, the engine. Both take turns. The share is theirs / ours, in processor time: with one
-- thread each that is the wall time on an idle machine, and other programs lengthen it little.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure = require "figure"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Compare stages of Linears with dnnl_sgemm.", {
  { "--rounds N", 9, "turns of each" }, { "--chunks N", 4, "micro-batches in a step" },
}, arg)
local program = figure.interpreter():match("^(.*/)[^/]*$") .. "bench_gemm"

-- Rows of a micro-batch, widths of the chain. The first is the GPT of the peers.
local cases = {
  { name = "gpt", rows = 256, widths = { 384, 1536, 384, 1536, 384 } },
  { name = "square", rows = 256, widths = { 1024, 1024, 1024, 1024, 1024 } },
  { name = "tall", rows = 1024, widths = { 512, 512, 512, 512 } },
  { name = "wide", rows = 64, widths = { 768, 3072, 768 } },
}

local function stage_of(case)
  local layers = {}
  for i = 2, #case.widths do layers[#layers + 1] = nn.Linear(case.widths[i - 1], case.widths[i]) end
  return gp.pipeline(nn.Sequential(layers), {
    devices = { { "cpu:0", threads = 1 } }, chunks = opt.chunks, checkpoint = "never",
    loss = nn.MSELoss(),
  })
end

-- Products of one micro-batch: forward and two gradients per layer, but no input gradient for the
-- first.
local function gflop(case)
  local sum = 0
  for i = 2, #case.widths do
    sum = sum + (i == 2 and 4 or 6) * case.rows * case.widths[i - 1] * case.widths[i]
  end
  return 1e-9 * sum
end

-- Seconds that the library takes for one micro-batch.
local function direct(case)
  local command = ("%s %d %s"):format(figure.quote(program), case.rows,
    table.concat(case.widths, " "))
  return function() return tonumber((assert(figure.capture(command), "bench_gemm failed"))) end
end

-- Seconds of one micro-batch in a step: the median of a few.
local function ours(pipe, x, y)
  return function()
    local times = {}
    for i = 1, 7 do
      local begin = os.clock()
      pipe:step(x, y)
      times[i] = (os.clock() - begin) / opt.chunks
    end
    return figure.median(times)
  end
end

local function compare(case)
  local pipe <close> = stage_of(case)
  local rows = case.rows * opt.chunks
  local x, y = gp.randn { rows, case.widths[1] }, gp.randn { rows, case.widths[#case.widths] }
  pipe:step(x, y)
  local times = figure.alternate(opt.rounds, { direct = direct(case), ours = ours(pipe, x, y) },
    { "direct", "ours" })
  local share = figure.median(figure.ratios(times.direct, times.ours))
  figure.print(("gemm.%s.direct"):format(case.name), gflop(case) / figure.median(times.direct),
    "GF/s")
  figure.print(("gemm.%s.share"):format(case.name), 100 * share, "%", ">=", 85)
end

for _, case in ipairs(cases) do
  if figure.capture(figure.quote(program) .. " 1 1 1 2>/dev/null") then
    compare(case)
  else
    figure.skip(("gemm.%s.share"):format(case.name), "no bench_gemm, or it finds no oneDNN")
  end
end
