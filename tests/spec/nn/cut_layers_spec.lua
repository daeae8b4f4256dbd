-- tests/spec/nn/cut_layers_spec.lua - layers that consist of several ops give the same bits eagerly
-- and in a pipeline that is cut around them: outputs, and gradients of parameters.

local gp = require "gpipe"
local golden = { require "tests.golden.volumes", require "tests.golden.sequences" }

local nn = gp.nn

local function evaluate(text) return assert(load("local nn, gp = ... return " .. text))(nn, gp) end

local function numbers(shape, seed) return gp.randn(shape, { seed = seed }) end

-- Compares the outputs and gradients of a model with those of its eager run.
local function check(case)
  local x = numbers(case.inputs[1].shape, 1):abs() + 0.1
  local eager, piped = evaluate(case.layer), evaluate(case.layer)
  if next(eager:state_dict()) then piped:load_state_dict(eager:state_dict()) end
  local outputs = { eager(x) }
  local pipe <close> = gp.pipeline(nn.Sequential { nn.Identity(), piped, nn.Identity() },
    { balance = { 1, 1, 1 }, devices = { "cpu:0", "cpu:0", "cpu:0" } })
  local seeds, total = {}, 0
  for i, y in ipairs { pipe:forward(x) } do
    assert.is_true(gp.equal(outputs[i], y), "output " .. i)
    seeds[i] = numbers(y.shape, 1 + i)
    total = total + (outputs[i] * seeds[i]):sum()
  end
  if #eager:parameters() == 0 then return end
  total:backward()
  pipe:backward(seeds)
  local have = pipe:parameters()
  for i, p in ipairs(eager:parameters()) do
    assert.is_true(gp.equal(p.grad, have[i].grad), p.name)
  end
end

describe("cut from its neighbours", function()
  for _, list in ipairs(golden) do
    for _, case in ipairs(list) do
      local fits = #case.inputs == 1 and not case.layer:find("called", 1, true)
        and case.inputs[1].kind ~= "ids"
      if fits then it(case.layer .. " gives the same bits", function() check(case) end) end
    end
  end
end)
