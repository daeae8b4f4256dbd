-- tests/spec/ops/along_spec.lua - methods along a dimension compute what PyTorch computes
-- (tests/golden/index.py defines the tensors), and refuse wrong arguments.

local gp = require "gpipe"
local array = require "tests.support.array"
local golden = require "tests.golden.index"

local TOLERANCE = 1e-8 -- f64 compared with numbers of nine digits

local function elements(k, n)
  local list = {}
  for i = 0, n - 1 do list[i + 1] = (31 * i * i + 7919 * i + 104729 * k) % 1009 / 1009 end
  return list
end

local function make()
  local function leaf(list, shape)
    local t = gp.tensor(list, { dtype = "f64" }):reshape(shape):clone()
    t.requires_grad = true
    return t
  end
  local zeros, positions = elements(0, 15), {}
  zeros[2], zeros[7], zeros[9] = 0.0, 0.0, 0.0
  for j = 0, 2 do
    for i = j, j + 3 do positions[#positions + 1] = i * i % 5 + 1 end
  end
  return {
    t = leaf(elements(0, 15), { 3, 5 }), t0 = leaf(zeros, { 3, 5 }),
    s = leaf(elements(1, 12), { 3, 4 }),
    p = gp.tensor(positions, { dtype = "i64" }):reshape { 3, 4 },
  }
end

local function near(what, want, have)
  local got = array.of(have)
  assert.are.equal(#want, #got, what)
  for i = 1, #want do
    assert(math.abs(want[i] - got[i]) <= TOLERANCE * (1 + math.abs(want[i])),
      ("%s: element %d is %.9g, expected %.9g"):format(what, i, got[i], want[i]))
  end
end

describe("as in PyTorch", function()
  for _, case in ipairs(golden) do
    it(case.call .. " has the same values and gradients", function()
      local env = make()
      local y = (assert(load("return " .. case.call, case.call, "t", env))())
      near("y", case.y, y);
      (y * y):sum():backward()
      for _, name in ipairs { "t", "t0", "s" } do
        if case[name] then near("gradient of " .. name, case[name], env[name].grad) end
      end
    end)
  end
end)

describe("methods along a dimension", function()
  it("give positions as sort does", function()
    local t = gp.tensor { 3, 1, 2, 1 }
    assert.are.same({ 2, 4, 3, 1 }, t:argsort():totable())
    assert.are.same({ 1, 3, 2, 4 }, t:argsort(1, { descending = true }):totable())
    local _, positions = t:topk(3, 1, { largest = false })
    assert.are.same({ 2, 4, 3 }, positions:totable())
  end)

  it("take scalars and NaN as PyTorch does", function()
    assert.are.equal(4, (gp.tensor(4):sort()):item())
    local middle = gp.tensor({ 1, 0 / 0, 2 }):median():item()
    assert(middle ~= middle)
  end)

  for _, case in ipairs {
    { "topk", { 4 }, "topk: k is 4, expected at most 3" },
    { "topk", { -1 }, "topk: k is -1" },
    { "topk", { 1, 2 }, "topk: dim is 2" },
    { "sort", { 1, { descend = true } }, "descending" },
    { "median", { 3 }, "median: dim is 3" },
    { "gather", { 1, 5 }, "gather: the positions are 5" },
    { "scatter_add", { 1, gp.tensor({ 1 }, { dtype = "i64" }), 5 }, "the source is 5" },
  } do
    it(("%s refuses: %s"):format(case[1], case[3]), function()
      local t = gp.tensor { 3, 1, 2 }
      local ok, text = pcall(t[case[1]], t, table.unpack(case[2]))
      assert.is_false(ok)
      assert.is_truthy(tostring(text):find(case[3], 1, true), tostring(text))
    end)
  end
end)
