-- tests/spec/nn/golden_spec.lua - every layer and loss computes what PyTorch computes: outputs and
-- gradients, on the same numbers; and trained models end where they end in PyTorch. layers.py,
-- options.py, volumes.py, sequences.py and training.py of tests/golden wrote the expected numbers.

local gp = require "gpipe"
local array = require "tests.support.array"
local golden = require "tests.golden.layers"
local golden_options = require "tests.golden.options"
local golden_sequences = require "tests.golden.sequences"
local golden_volumes = require "tests.golden.volumes"
local trained = require "tests.golden.training"

local nn = gp.nn

local TOLERANCE = 1e-5 -- f32 against f32, sums of up to some hundred terms of order 1
local TRAINED = 1e-4   -- the same after 20 steps, whose errors add up

-- ---- numbers that both sides make ------------------------------------------------------------

local function elements(k, shape, number)
  local count, list = 1, {}
  for _, size in ipairs(shape) do count = count * size end
  for i = 0, count - 1 do list[i + 1] = number(31 * i * i + 7919 * i + 104729 * k) end
  return list, count
end

local SCALE = { wide = 4 }

local function make(k, spec)
  local positive = spec.kind == "positive" or spec.kind == "share"
  local list = elements(k, spec.shape, function(n)
    if spec.kind == "ids" then return n % spec.below end
    local share = n % 1009 / 1009
    return (SCALE[spec.kind] or 1) * (positive and share or 2 * share - 1)
  end)
  local t = gp.tensor(list, { dtype = spec.kind == "ids" and "i64" or "f32" })
  if spec.kind == "positive" then t = t * 0.9 + 0.05 end
  return t:reshape(spec.shape)
end

-- Fills parameters with the numbers of tensors 100, 101, ... in order of declaration.
local function fill(layer)
  local values = {}
  for i, p in ipairs(layer:parameters()) do
    values[p.name] = make(99 + i, { shape = p.param.shape }) * 0.5
  end
  if next(values) then layer:load_state_dict(values, { strict = false }) end
end

-- ---- comparing -------------------------------------------------------------------------------

local function near(what, want, have, tolerance)
  local got = array.of(have)
  assert.are.same(want.shape, got.shape, what)
  for i = 1, #want do
    local v = got[(i - 1) * want.every + 1]
    assert(math.abs(want[i] - v) <= (tolerance or TOLERANCE) * (1 + math.abs(want[i])),
      ("%s: element %d is %.9g, expected %.9g"):format(what, (i - 1) * want.every, v, want[i]))
  end
end

-- Calls a layer in the way that a case describes.
local Called = nn.class("Called")
function Called:init(layer, call) self.layer, self.call = layer, call end
function Called:forward(...) return self.call(self.layer, ...) end
function Called:parameters() return self.layer:parameters() end
function Called:load_state_dict(...) return self.layer:load_state_dict(...) end

local function run(case)
  local layer = assert(load("local nn, called, gp = ... return " .. case.layer))(nn, Called, gp)
  fill(layer)
  local inputs, leaves = {}, {}
  for i, spec in ipairs(case.inputs) do
    inputs[i] = make(i, spec)
    if spec.kind == "numbers" or spec.kind == "wide" or spec.kind == "positive" then
      inputs[i] = inputs[i]:detach()
      inputs[i].requires_grad = true
      leaves[#leaves + 1] = inputs[i]
    end
  end
  local outputs = { layer(table.unpack(inputs)) }
  local total = 0
  for i, y in ipairs(outputs) do total = total + (y * make(49 + i, { shape = y.shape })):sum() end
  total:backward()
  return layer, outputs, leaves
end

local function all_of(lists)
  local all = {}
  for _, list in ipairs(lists) do table.move(list, 1, #list, #all + 1, all) end
  return all
end

describe("what PyTorch computes", function()
  for _, case in ipairs(all_of { golden, golden_options, golden_volumes, golden_sequences }) do
    it("is computed by " .. case.layer, function()
      local layer, outputs, leaves = run(case)
      assert.equal(#case.outputs, #outputs)
      for i, want in ipairs(case.outputs) do near("output " .. i, want, outputs[i]) end
      for i, want in ipairs(case.gradients) do
        near("gradient of input " .. i, want, leaves[i].grad)
      end
      local parameters = layer:parameters()
      assert.equal(#case.parameters, #parameters)
      for i, want in ipairs(case.parameters) do
        assert.equal(want.name, parameters[i].name)
        assert.are.same(want.shape, parameters[i].param.shape)
        near("gradient of " .. want.name, want.gradient, parameters[i].grad)
      end
    end)
  end
end)

-- ---- training --------------------------------------------------------------------------------

-- Evaluates a Lua text that names models, losses, optimizers and their options.
local function evaluate(text)
  return assert(load("local nn, optim = ... return " .. text))(nn, gp.optim)
end

describe("20 steps of training", function()
  for _, case in ipairs(trained) do
    local kind = case.optimizer:match "%w+$"
    it(("end where PyTorch ends, in two stages: %s, %s"):format(case.model:sub(1, 40), kind),
      function()
      local model = evaluate(case.model)
      fill(model)
      local pipe <close> = gp.pipeline(model, { loss = evaluate(case.loss),
        balance = { 1, #model - 1 }, devices = { "cpu:0", "cpu:1" } })
      local opt = evaluate(case.optimizer)(pipe:parameters(), evaluate(case.options))
      local x, y = make(1, case.inputs[1]), make(2, case.inputs[2])
      for step, want in ipairs(case.losses) do
        local loss = pipe:step(x, y)
        assert(math.abs(loss - want) <= TRAINED * want, ("loss of step %d"):format(step))
        opt:step()
      end
      local parameters = pipe:parameters()
      assert.equal(#case.parameters, #parameters)
      for i, want in ipairs(case.parameters) do
        near(parameters[i].name, want, parameters[i].value, TRAINED)
      end
    end)
  end
end)
