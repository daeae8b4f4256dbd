-- scripts/bench/gpu_parts.lua - pipelines of parts of one GPU, or of several GPUs, against one of
-- them.
--
-- A GPU cut into p parts (green contexts) runs a pipeline of p equal stages with m micro-batches;
-- one part runs the same model alone. Without bubbles the pipeline would be p times as fast, with
-- those of its schedule m p / (m + p - 1) times. The share of that which is reached shows what
-- transfers and waiting cost.
local gp = require "gpipe"
local figure = require "figure"
local gpt = require "gpu_gpt"
local nn = gp.nn

local parts = {}

-- The first layer makes rows of small ids, so that no transfer from the host counts.
local function model_of(size, blocks)
  gp.seed(0)
  local layers = {}
  for i = 1, blocks do layers[i] = gpt.block(size.width, size.heads) end
  layers[1] = nn.Sequential { nn.Embedding(256, size.width), layers[1] }
  return nn.Sequential(layers)
end

-- A function that trains one step on these devices.
local function trainer(size, precision, blocks, devices, m)
  local balance = {}
  for i = 1, #devices do balance[i] = blocks // #devices end
  local pipe = gp.pipeline(model_of(size, blocks), {
    balance = balance, devices = devices, chunks = m, schedule = "1f1b", checkpoint = "never",
    precision = precision,
    loss = function(output, target) return (output * target:to(output.dtype)):sum(),
    output:numel() end,
  })
  local ids = (gp.rand({ m * size.rows, size.context }) * 256):to "i64"
  local target = gp.ones { m * size.rows, 1, 1 }
  return function() pipe:step(ids, target) end, pipe
end

local function turn(train, steps)
  local times = {}
  train()
  for i = 1, steps do times[i] = figure.seconds(train) end
  return figure.median(times)
end

--- The names of all parts of the first GPU.
---@param p integer
---@return string[]
function parts.of_gpu(p)
  local devices = {}
  for i = 0, p - 1 do devices[i + 1] = ("cuda:0/%dof%d"):format(i, p) end
  return devices
end

--- Run a pipeline of these devices, and print its share of what its schedule allows.
---@param size {width: integer, heads: integer, context: integer, rows: integer, steps: integer, rounds: integer}
---@param precision string
---@param devices string[]
---@param name string of the figures
function parts.run(size, precision, devices, name)
  local p = #devices
  local m = 4 * p
  local one, _alone <close> = trainer(size, precision, 8, { devices[1] }, m)
  local many, _pipe <close> = trainer(size, precision, 8, devices, m)
  for _ = 1, 3 do one() many() end -- planned, captured, replayed
  local times = figure.alternate(size.rounds, {
    one = function() return turn(one, size.steps) end,
    many = function() return turn(many, size.steps) end,
  }, { "one", "many" })
  local speedup = figure.median(figure.ratios(times.one, times.many))
  figure.print(name .. ".speedup", speedup, "x " .. devices[1])
  figure.print(name .. ".share", 100 * speedup * (m + p - 1) / (m * p), "% of m p / (m + p - 1)",
    ">=", 90)
end

return parts
