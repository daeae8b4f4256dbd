-- scripts/bench/gpu_curve.lua - the losses that the GPT of the benchmarks must have, step by step.
--
-- A speed means nothing where the numbers are wrong, so every training that is timed shows its
-- losses beside those of a CPU in f32 (gpu_losses.lua, shipped with the sources). A batch repeats
-- two sequences: its mean loss and gradients are those of the two alone, so one curve serves every
-- batch size, and a CPU can make it.
local gp = require "gpipe"
local figure = require "figure"

local curve = {}

local DISTINCT = 2 -- sequences of a batch that differ

-- How far a loss may be from that of f32 on a CPU, relative. In bf16 on a CPU it was 5.8e-4 over 20
-- steps of the full size: four times as much.
local BOUND = { f32 = 1e-4, tf32 = 1e-3, bf16 = 2.5e-3, f16 = 1e-3 }

-- Up to this step the losses of f32 fall evenly. Later they jump, and rounding decides when: on an
-- H200 in bf16, step 16 was 0.16 % off with one vocabulary and 0.46 % with another.
local SMOOTH = 8

--- Ids of a batch, and for each the id that follows it.
---@param size {batch: integer, context: integer, vocabulary: integer}
---@return Tensor ids i64 [batch, context]
---@return Tensor following i64 [batch, context]
function curve.batch(size)
  if size.batch % DISTINCT ~= 0 then
    error(("--batch is %d, expected a multiple of %d"):format(size.batch, DISTINCT), 0)
  end
  local drawn = gp.rand({ DISTINCT, size.context }, { seed = 1 }) * size.vocabulary
  local ids = drawn:to "i64":tile { size.batch // DISTINCT, 1 }
  return ids, ids:roll(-1, 2)
end

--- Return the key under which gpu_losses.lua keeps the losses of a size.
---@param size table layers, width, heads, context and vocabulary count
---@return string
function curve.key(size)
  return ("%d layers, width %d, %d heads, context %d, vocabulary %d"):format(size.layers,
    size.width, size.heads, size.context, size.vocabulary)
end

--- Print how far the first and the eighth loss are from what they must be.
--- Errors: a size without a curve; a loss out of its bound, after all were printed.
---@param name string the figures' first word
---@param size table as for key
---@param precision string
---@param losses number[] of consecutive steps, from the first of the training
function curve.print(name, size, precision, losses)
  local known = require("gpu_losses")[curve.key(size)]
  if not known then
    error(("no losses are known of %s: make them with --only losses"):format(curve.key(size)), 0)
  end
  local wrong
  for _, step in ipairs { 1, math.min(#losses, #known, SMOOTH) } do
    local difference = math.abs(losses[step] - known[step]) / known[step]
    local text = ("relative: %.5f nats, %.5f on a CPU,"):format(losses[step], known[step])
    figure.print(("%s.loss.%d"):format(name, step), difference, text, "<=", BOUND[precision])
    local good = difference <= BOUND[precision] -- NaN is not
    if not good then wrong = step end
  end
  if wrong then
    error(("the loss of step %d is %.5f, expected %.5f"):format(wrong, losses[wrong], known[wrong]),
      0)
  end
end

--- Train on a CPU and print the losses as a line of gpu_losses.lua.
---@param trainer fun(size: table, precision: string, o: table): gpipe.Pipeline, fun(): number
---@param size table as for key, steps and precision: f32 for what is shipped, others for the bounds
function curve.make(trainer, size)
  size.batch = DISTINCT
  local _pipe <close>, step = trainer(size, size.precision, { device = "cpu:0" })
  local texts = {}
  for i = 1, size.steps do texts[i] = ("%.6f"):format(step()) end
  print(('  ["%s"] = {\n    %s,\n  },'):format(curve.key(size), table.concat(texts, ", ")))
end

return curve
