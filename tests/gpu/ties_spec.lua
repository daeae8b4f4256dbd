-- tests/gpu/ties_spec.lua - a weight of two layers has the same gradient wherever the model is cut.
--
-- Each layer has an accumulator of its own, and the end of the mini-batch adds them, in one stage as
-- over several.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local placements = require "tests.support.placements"
local training = require "tests.support.training"
local nn = gp.nn
local on_gpu = gpu.spec(it)

local V, C = 13, 6

local function model()
  gp.seed(8)
  local layers = { nn.Embedding(V, C), nn.Sequential { nn.Linear(C, C), nn.Tanh() },
    nn.Linear(C, V) }
  layers[3].weight = layers[1].weight
  return nn.Sequential(layers)
end

-- Runs steps that begin gradients, steps that add to them, and updates, in turn; some are replays.
local function run(options)
  local x, y = models.ids(6, 5), models.ids(6, 5)
  local merged = { loss = nn.CrossEntropyLoss(), seed = 5 }
  for key, value in pairs(options) do merged[key] = value end
  local pipe <close> = gp.pipeline(model(), merged)
  local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  local got = { losses = {}, first = {} }
  for step = 1, 4 do
    got.losses[2 * step - 1] = pipe:step(x, y)
    if step == 1 then got.first = training.gradients(pipe) end
    got.losses[2 * step] = pipe:step(x, y, { accumulate = true })
    if step == 1 then got.gradients = training.gradients(pipe) end
    opt:step()
    pipe:step(x, y)
    opt:step()
  end
  got.state = pipe:state_dict()
  return got
end

describe("a tied weight", function()
  for _, precision in ipairs { "f32", "bf16" } do
    for _, chunks in ipairs { 1, 2 } do
      on_gpu(("has the bits of every cut: %s, %d chunks"):format(precision, chunks), function()
        for _, names in ipairs(placements.sizes()) do
          local one
          for _, balance in ipairs { { 3 }, { 1, 2 }, { 2, 1 }, { 1, 1, 1 } } do
            local options = { balance = balance, chunks = chunks, precision = precision }
            for _, placed in ipairs(placements.each(names, options)) do
              local got = run(placed)
              one = one or got
              assert.is_nil(training.difference(one, got))
            end
          end
        end
      end)
    end
  end
end)
