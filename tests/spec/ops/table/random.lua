-- tests/spec/ops/table/random.lua - what forward draws is new in every step and has the right
-- distribution.

local assert = require "luassert"
local gp = require "gpipe"
local core = require "gpipe.core"
local array = require "tests.support.array"
local drawn = require "tests.support.drawn"
local expect = require "tests.support.expect"

local DRAWS = { rand = gp.rand, randn = gp.randn }
local MEAN, VARIANCE = { rand = 1 / 2, randn = 0 }, { rand = 1 / 12, randn = 1 }
local FOURTH = { rand = 1 / 80, randn = 3 } -- central moment: the variance of variances

local function draws_of(name, dtype, o, options)
  local function draw(shape) return DRAWS[name](shape, { dtype = dtype }) end
  local shape = { rows = o.rows, columns = o.columns, steps = o.steps, dtype = dtype }
  return drawn.values(draw, shape, options or {})
end

-- Checks that the moments are within four deviations of their expectation for so many samples.
local function check_moments(name, dtype)
  local list = array.of(draws_of(name, dtype, { rows = 40, columns = 250 })[1])
  local n, mean, variance = 10000, 0.0, 0.0
  for i = 1, n do mean = mean + list[i] / n end
  for i = 1, n do variance = variance + (list[i] - MEAN[name]) ^ 2 / n end
  assert.near(MEAN[name], mean, 4 * math.sqrt(VARIANCE[name] / n))
  assert.near(VARIANCE[name], variance, 4 * math.sqrt((FOURTH[name] - VARIANCE[name] ^ 2) / n))
end

-- Checks that no two rows of any step are the same.
local function check_differ(name)
  local seen = {}
  local o = { rows = 6, columns = 8, steps = 3 }
  for _, values in ipairs(draws_of(name, "f32", o, { chunks = 3 })) do
    for row = 1, 6 do
      local text = table.concat(values[row]:totable(), " ")
      assert(not seen[text], "two rows are the same")
      seen[text] = true
    end
  end
end

-- Checks that the split of the batch does not matter: rows are numbered through it, and it may
-- separate pairs of normals.
local function check_split(name, dtype)
  local o = { rows = 11, columns = 7, steps = 2 }
  local whole = draws_of(name, dtype, o, { chunks = 1 })
  for _, chunks in ipairs { 2, 4, 11 } do
    local parts = draws_of(name, dtype, o, { chunks = chunks })
    for step = 1, 2 do assert(gp.equal(whole[step], parts[step]), chunks .. " chunks") end
  end
end

local function check_refused(name)
  local function draw(opts)
    local function drawing(shape) return DRAWS[name](shape, opts) end
    return function() drawn.values(drawing, { rows = 2, columns = 2 }, {}) end
  end
  local who = "gp." .. name
  expect.fails_with(who .. ": dtype is i64", draw { dtype = "i64" })
  expect.fails_with(who .. [[: device is "cpu" in forward]], draw { device = "cpu" })
end

local function also(name)
  local list = {
    { "draws anew in every step and for every micro-batch", function() check_differ(name) end },
    { "refuses what makes no sense in forward", function() check_refused(name) end },
    { "is a constant where it has a seed of its own", function()
      local function draw(shape) return DRAWS[name](shape, { seed = 4 }) end
      local values = drawn.values(draw, { rows = 3, columns = 5, steps = 2 }, {})
      for _, t in ipairs(values) do assert(gp.equal(DRAWS[name]({ 3, 5 }, { seed = 4 }), t)) end
    end },
    { "has the shapes that it is asked for, none and empty ones too", function()
      for _, shape in ipairs { {}, { 0, 3 }, { 2, 3, 4 } } do
        local function draw(x) return x, DRAWS[name](shape) end
        assert.same(shape, core.trace_cost(draw, { { shape = { 1 } } }).outputs[2].shape)
      end
    end },
  }
  for _, dtype in ipairs { "f32", "f64" } do
    list[#list + 1] = { "has mean and variance in " .. dtype, function()
      check_moments(name, dtype)
    end }
    list[#list + 1] = { "does not depend on how the batch is split in " .. dtype, function()
      check_split(name, dtype)
    end }
  end
  return list
end

return {
  { op = "rand", gradient = false, cases = {}, also = also "rand" },
  { op = "randn", gradient = false, cases = {}, also = also "randn" },
}
