-- scripts/bench/gpu_pairs.lua - where there are several GPUs: how fast values cross between each two
-- of them, and a pipeline of the first two.
local gp = require "gpipe"
local core = require "gpipe.core"
local figure = require "figure"

local pairs_of_gpus = {}

local COPIES, WIDTH = 8, 1024

-- GB/s of copies that one GPU receives from another, the median of the rounds.
local function rate(from, to, rows, rounds)
  local source = gp.ones({ rows, WIDTH }, { device = from })
  local target = gp.zeros({ rows, WIDTH }, { device = to })
  local rates = {}
  local function copy()
    for _ = 1, COPIES do target:copy_(source) end
    assert(target:narrow(1, rows, 1):narrow(2, WIDTH, 1):item() == 1, "a copy did not arrive")
  end
  copy()
  for i = 1, rounds do rates[i] = COPIES * rows * WIDTH * 4 / figure.seconds(copy) / 1e9 end
  return figure.median(rates)
end

--- Print the rate of each ordered pair of GPUs, and the share of its schedule that a pipeline of two
--- GPUs reaches.
---@param opt {rows: integer, rounds: integer} rows of 1,024 elements of f32 are copied
---@param stages table size of the pipeline's model (gpu_parts.lua)
---@param precision string
function pairs_of_gpus.run(opt, stages, precision)
  local count = #core.gpus()
  if count < 2 then return figure.skip("gpu.pairs", "one GPU") end
  for a = 0, count - 1 do
    for b = 0, count - 1 do
      if a ~= b then
        local got = rate("cuda:" .. a, "cuda:" .. b, opt.rows, opt.rounds)
        figure.print(("gpu.pairs.%d.%d"):format(a, b), got, "GB/s")
      end
    end
  end
  require("gpu_parts").run(stages, precision, { "cuda:0", "cuda:1" }, "gpu.pairs.pipeline")
end

return pairs_of_gpus
