-- tests/spec/tensor/long_lists_spec.lua - functions of a list of tensors take a long one, and
-- refuse impossible sizes before they allocate anything.

local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with

describe("a list of more tensors than Lua's stack holds", function()
  for _, count in ipairs { 100001, 1000001 } do
    it(("is joined and stacked: %d of them"):format(count), function()
      local list, one, two = {}, gp.ones { 1 }, gp.full({ 1 }, 2)
      for i = 1, count do list[i] = i == count and two or one end
      local joined = gp.concat(list, 1)
      assert.same({ count }, joined.shape)
      assert.equal(2, joined[count])
      assert.equal(count + 1, joined:sum():item())
      assert.same({ count, 1 }, gp.stack(list, 1).shape)
    end)
  end

  it("keeps its order over several ops, and its gradients", function()
    local list, leaves = {}, {}
    for i = 1, 300 do
      leaves[i] = gp.full({ 1 }, i)
      leaves[i].requires_grad = true
      list[i] = leaves[i] * i
    end
    local joined = gp.concat(list, 1)
    local weighted = joined * gp.arange(1, 300)
    weighted:sum():backward()
    for _, i in ipairs { 1, 17, 300 } do
      assert.equal(i * i, joined[{ i }]:item())
      assert.equal(i * i, leaves[i].grad[1])
    end
  end)

  it("is refused with the element that is not a tensor", function()
    local list = { gp.ones { 1 }, gp.ones { 1 }, 7 }
    fails_with("concat: element 3 is 7, expected a tensor", function() gp.concat(list, 1) end)
  end)
end)

describe("tile", function()
  it("makes many copies at once", function()
    local t = gp.arange(1, 20):reshape { 4, 5 }:tile { 1, 1 << 18 }
    assert.same({ 4, 5 << 18 }, t.shape)
    assert.equal(5, t[{ 1, 5 << 18 }])
  end)

  it("refuses sizes that cannot be counted or allocated, before it allocates anything", function()
    local one = gp.ones { 4, 5 }
    fails_with("tile: count 2 is 1099511627776", function() one:tile { 1 << 40, 1 << 40 } end)
    fails_with("memory", function() gp.ones({ 1 }):tile { 1 << 50 } end)
    fails_with("tile: count 1 is -1", function() one:tile { -1, 1 } end)
    assert.same({ 0, 5 }, one:tile({ 0, 1 }).shape)
  end)
end)
