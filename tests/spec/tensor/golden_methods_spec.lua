-- tests/spec/tensor/golden_methods_spec.lua - methods made of several ops agree with what PyTorch
-- computed (tests/golden/methods.py), eagerly and in a trace.

local gp = require "gpipe"
local golden = require "tests.golden.methods"

local TOLERANCE = 1e-5 -- f32 compared with f32

local function raw(k, count, number)
  local list = {}
  for i = 0, count - 1 do list[i + 1] = number(31 * i * i + 7919 * i + 104729 * k) end
  return list
end

-- numbers() of tests/golden/layers.py.
local function numbers(k, shape, count)
  local list = raw(k, count, function(n) return 2 * (n % 1009 / 1009) - 1 end)
  return gp.tensor(list):reshape(shape)
end

local function ids(k, below)
  return gp.tensor(raw(k, 12, function(n) return n % below end), { dtype = "i64" }):reshape(3, 4)
end

local function inputs()
  local x, y = numbers(1, { 3, 4 }, 12) * 3 + 0.1, numbers(2, { 3, 4 }, 12) * 2 + 0.05
  local t = {
    x = x, y = y, p = x:abs() / 4 + 0.05, v = numbers(4, { 4 }, 4), i = ids(5, 9) - 4,
    j = ids(6, 3) + 1, r = x:round(),
    m = gp.tensor { { 0 }, { 1 }, { 0 } },
  }
  for _, name in ipairs { "x", "y", "p", "v" } do
    t[name] = t[name]:detach()
    t[name].requires_grad = true
  end
  return t
end

local function near(what, want, got)
  assert.are.same(want.shape, got.shape, what)
  local list = got:detach():to("f64"):reshape(got:numel()):totable()
  for i = 1, #want do
    local v = list[(i - 1) * want.every + 1]
    assert(want[i] == v or math.abs(want[i] - v) <= TOLERANCE * (1 + math.abs(want[i])),
      ("%s: element %d is %.9g, expected %.9g"):format(what, i, v, want[i]))
  end
end

local NAMES = { "x", "y", "p", "v", "i", "j", "r", "m" }

local function compiled(text)
  local code = ("local gp, x, y, p, v, i, j, r, m = ... local inf = math.huge return %s"):format(text)
  return assert(load(code, "=" .. text))
end

describe("what PyTorch computes", function()
  for _, case in ipairs(golden) do
    it("is computed by " .. case[1], function()
      local t, arguments, f = inputs(), {}, compiled(case[1])
      for k, name in ipairs(NAMES) do arguments[k] = t[name] end
      local y = f(gp, table.unpack(arguments))
      near("output", case.output, y)
      if y.requires_grad and (case.x or case.y or case.p) then
        (y * numbers(50, y.shape, y:numel())):sum():backward()
        for _, name in ipairs { "x", "y", "p" } do
          if case[name] then near("gradient of " .. name, case[name], t[name].grad) end
        end
      end
      if case.eager or case[1]:find "^gp.logspace" then return end
      for k in ipairs(arguments) do arguments[k] = arguments[k]:detach() end
      local traced = gp.compile(function(...) return f(gp, ...) end, arguments)
      assert.is_true(gp.equal(y:detach(), (traced(table.unpack(arguments)))))
    end)
  end
end)

describe("numbers drawn in place", function()
  it("come from gp.seed's streams, or from a seed of their own", function()
    for _, name in ipairs { "normal_", "uniform_", "bernoulli_", "exponential_" } do
      local t = gp.zeros { 1000 }
      gp.seed(5)
      local a = t[name](t):clone()
      gp.seed(5)
      assert.is_true(gp.equal(a, t[name](t)))
      assert.is_false(gp.equal(a, t[name](t)))
      local b = t[name](t, { seed = 3 }):clone()
      assert.is_true(gp.equal(b, t[name](t, { seed = 3 })))
    end
  end)

  it("have the requested mean and deviation", function()
    local t = gp.zeros({ 20000 }, { dtype = "f64" })
    for _, case in ipairs {
      { t:normal_(3, 2, { seed = 1 }):clone(), 3, 2 },
      { t:uniform_(-1, 5, { seed = 1 }):clone(), 2, 6 / 12 ^ 0.5 },
      { t:bernoulli_(0.2, { seed = 1 }):clone(), 0.2, 0.4 },
      { t:exponential_(4, { seed = 1 }):clone(), 0.25, 0.25 },
    } do
      assert.near(case[2], case[1]:mean():item(), 0.05)
      assert.near(case[3], case[1]:std():item(), 0.05)
    end
    assert.is_true(t:uniform_(2, 3):ge(2):all():item())
  end)

  it("may be positions by their probabilities", function()
    local p = gp.tensor { { 0, 1, 3 }, { 1, 0, 0 } }
    local drawn = p:multinomial(4000, { replacement = true, seed = 1 })
    assert.are.same({ 2, 4000 }, drawn.shape)
    assert.near(0.75, drawn[1]:eq(3):to("f32"):mean():item(), 0.03)
    assert.equal(0, drawn[1]:eq(1):sum():item())
    assert.equal(4000, drawn[2]:eq(1):sum():item())
    local each = gp.tensor { 1, 2, 0, 3 }:multinomial(3)
    assert.are.same({ 1, 2, 4 }, (each:sort()):totable())
    assert.is_false(pcall(p.multinomial, p, 2))
    assert.is_false(pcall(p.multinomial, -p, 1))
  end)
end)

describe("wrong calls of methods", function()
  local t = gp.ones { 2, 3 }
  local one = gp.ones({ 2, 3 }, { dtype = "i64" })
  for _, case in ipairs {
    { "0", function() return one % 0 end }, { "0", function() return one // (one - 1) end },
    { "i64", function() return t % one end }, { "trunc", function() return one:trunc() end },
    { "twice", function() return t:scatter(2, one, t) end },
    { "gather: position 4", function() return t:gather(2, one * 4) end },
    { "scatter_add: position 4", function() return t:scatter_add(2, one * 4, t) end },
    { "index_select: position 4 at row 2", function() return t:index_select(2, { 1, 4 }) end },
    { "5", function() return t:unflatten(2, { 5, -1 }) end },
    { "q is 2", function() return t:quantile(2) end },
    { "3", function() return t:cross(t, 1) end },
    { "finite", function() return (t * math.huge):histc(2) end },
  } do
    it("are refused: " .. case[1], function()
      local good, text = pcall(case[2])
      assert.is_false(good)
      assert.truthy(text:find(case[1], 1, true), text)
    end)
  end

  it("get the advice to use methods instead of functions", function()
    local good, text = pcall(function() return gp.gather end)
    assert.is_false(good)
    assert.truthy(text:find("t:gather", 1, true), text)
  end)
end)
