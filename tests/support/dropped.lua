-- tests/support/dropped.lua - checks attention with dropout, although what it drops is not known
-- beforehand.
--
-- The output shows it: where v is the identity matrix, the output is the dropped probabilities
-- themselves. Output and gradients are then checked for the same draw.

local assert = require "luassert"
local gp = require "gpipe"
local array = require "tests.support.array"
local attention = require "tests.support.attention"
local conformance = require "tests.support.conformance"
local inputs = require "tests.support.inputs"

local nn = gp.nn
local x = inputs.float

local dropped = {}

local DROP = 0.4

-- A layer that has the inputs as parameters, and booleans as constants.
local Attend = nn.class("Attend")
function Attend:init(case)
  self.call, self.count = function(...) return case.row.call(case.o, ...) end, #case.inputs
  for i, input in ipairs(case.inputs) do
    local value = inputs.tensor(input)
    local free = input.dtype ~= "bool"
    self["p" .. i] = free and nn.Parameter(input.base.shape, value, { dtype = input.dtype })
      or value
  end
end
function Attend:forward()
  local list = {}
  for i = 1, self.count do list[i] = self["p" .. i] end
  local out = self.call(table.unpack(list))
  return out:reshape { 1, table.unpack(out.shape) } -- the batch is one row
end

-- Runs a training pass whose output gradient is that of conformance's sum; returns output and
-- gradients.
function dropped.pass(case)
  local pipe <close> = gp.pipeline(nn.Sequential { Attend(case) }, { seed = 12 })
  local out = pipe:forward(gp.zeros { 1 })
  local shape = { table.unpack(out.shape, 2) }
  local w = conformance.weights(shape)
  pipe:backward(gp.tensor({ table.unpack(w) }, { dtype = out.dtype }):reshape(out.shape))
  local grads = {}
  for i, p in ipairs(pipe:parameters()) do grads[i] = p.grad:clone() end
  return array.of(out:reshape(shape)), grads
end

-- Returns what is kept (0 or 1 / (1 - p)) in a case whose value operand is the identity; `probs`
-- has the shape of its output.
local function kept_of(out, probs)
  return array.map(function(got, p) return (got == 0 and p > 0) and 0 or 1 / (1 - DROP) end, out,
    probs)
end

local function check_kept(kept, probs)
  local count, all = 0, 0
  for i = 1, #kept do
    if probs[i] > 0 then count, all = count + (kept[i] > 0 and 1 or 0), all + 1 end
  end
  assert.near(1 - DROP, count / all, 4 * math.sqrt(DROP * (1 - DROP) / all))
end

-- Checks results and gradients of a case once it is known what is kept.
local function check_with_kept(case, kept)
  local out, grads = dropped.pass(case)
  case.o = setmetatable({ kept = kept }, { __index = case.o })
  conformance.compare(case.name .. " with dropout", out, conformance.reference(case)[1],
    conformance.bound("attention", case.dtype), case.dtype)
  conformance.check_slopes(case, grads)
end

local function identity(shape)
  return array.build(shape, function(i) return i[#i] == i[#i - 1] and 1.0 or 0.0 end)
end

-- Checks drawn q and k; v is first the identity (to see what is dropped), then drawn. mask: an
-- input, or none.
function dropped.separate(row, groups, o, mask)
  o.dropout = DROP
  local list = { { x { 2, 4, 5, 6 }, x { 2, groups, 6, 6 }, x { 2, groups, 6, 6 }, mask, o = o } }
  local case = conformance.case(row, 1, "f64", list)
  local drawn = case.inputs[3].base
  case.inputs[3].base = identity { 2, groups, 6, 6 }
  local q, k, _, seen = table.unpack(case.inputs)
  local probs = attention.probabilities(case.o, q.base, k.base, seen and inputs.logical(seen))
  local kept = kept_of(dropped.pass(case), probs)
  check_kept(kept, probs)
  case.inputs[3].base = drawn
  check_with_kept(case, kept)
end

-- Checks packed operands in the same way: T = D, so that v can be the identity.
function dropped.packed(row, causal)
  local list = { { x { 2, 6, 36 }, o = { heads = 2, causal = causal, dropout = DROP } } }
  local case = conformance.case(row, 1, "f64", list)
  local drawn = case.inputs[1].base
  case.inputs[1].base = array.build(drawn.shape, function(i, flat)
    if i[3] <= 24 then return drawn[flat] end
    return (i[3] - 25) % 6 + 1 == i[2] and 1.0 or 0.0
  end)
  local probs = attention.probabilities(case.o, attention.parts_of(case.o, case.inputs[1].base))
  local out = dropped.pass(case)
  local heads = array.build({ 2, 2, 6, 6 }, function(i)
    return array.at(out, { i[1], i[3], (i[2] - 1) * 6 + i[4] })
  end)
  local kept = kept_of(heads, probs)
  check_kept(kept, probs)
  case.inputs[1].base = drawn
  check_with_kept(case, kept)
end

return dropped
