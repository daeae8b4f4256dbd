-- tests/spec/sweep/space_spec.lua - the domains from which parameters are drawn.
local gp = require "gpipe"
local draws = require "gpipe.sweep.draws"
local grid = require "gpipe.sweep.sampler.grid"
local random = require "gpipe.sweep.sampler.random"
local space = require "gpipe.sweep.space"
local sweep = gp.sweep

local function refusal(f, ...)
  local good, message = pcall(f, ...)
  assert.is_false(good)
  return message
end

describe("a domain", function()
  local DOMAINS = {
    uniform = sweep.uniform(-1, 3), log = sweep.log(1e-5, 1e-2), int = sweep.int(-2, 7),
    int_log = sweep.int_log(1, 1024), choice = sweep.choice { 64, "a", true, false, 0.5 },
  }
  for name, domain in pairs(DOMAINS) do
    it(name .. " contains all that is drawn from it, up to its ends", function()
      for _, u in ipairs { 0, 1e-9, 0.25, 0.5, 0.999999, 1 - 2 ^ -53 } do
        assert.is_true(domain:contains(domain:draw(u)), tostring(u))
      end
    end)
    it(name .. " gives the value back at its coordinate", function()
      if domain:is_choice() then return end
      for i = 0, 20 do
        local value = domain:draw(i / 20.001)
        local again = domain:at(domain:coordinate(value))
        assert.are.equal(math.type(value), math.type(again))
        assert.is_true(math.abs(value - again) <= 1e-12 * math.abs(value))
      end
    end)
  end

  it("of integers gives each the same share", function()
    local counts, stream = {}, draws.new(1, 1, "x")
    for _ = 1, 6000 do
      local value = sweep.int(1, 6):draw(stream:uniform())
      counts[value] = (counts[value] or 0) + 1
    end
    for value = 1, 6 do assert.is_true(math.abs(counts[value] - 1000) < 120, counts[value]) end
  end)

  it("of logarithms gives each decade the same share", function()
    local low, stream = 0, draws.new(1, 1, "x")
    for _ = 1, 3000 do
      if sweep.log(1e-6, 1):draw(stream:uniform()) < 1e-3 then low = low + 1 end
    end
    assert.is_true(math.abs(low - 1500) < 150, low)
  end)

  it("is refused where nothing can be drawn", function()
    for _, case in ipairs {
      { sweep.uniform, 1, 1, names = { "low", "1" } }, { sweep.log, 0, 1, names = { "low", "> 0" } },
      { sweep.log, -1, 1, names = { "-1" } }, { sweep.int, 1.5, 3, names = { "low", "1.5" } },
      { sweep.uniform, 0 / 0, 1, names = { "low", "nan" } },
      { sweep.uniform, 0, math.huge, names = { "high" } }, { sweep.int, 3, 1, names = { "3", "1" } },
      { sweep.choice, {}, names = { "empty" } }, { sweep.choice, { {} }, names = { "choice 1" } },
      { sweep.choice, { 1, 2, 1 }, names = { "1", "twice" } },
      { sweep.choice, { 1, x = 2 }, names = { "'x'" } },
    } do
      local message = refusal(table.unpack(case, 1, 3))
      for _, name in ipairs(case.names) do
        assert.is_truthy(message:find(name, 1, true), message)
      end
    end
  end)
end)

describe("a space", function()
  it("evaluates functions after the values they ask for, whatever the names", function()
    local of = space.new {
      a = function(v) return sweep.choice { v.b + 1 } end,
      b = function(v) return v.c == 1 and 10 or nil end, c = sweep.choice { 1 },
    }
    local values = of:evaluate(function(_, from) return from:draw(0) end)
    assert.same({ a = 11, b = 10, c = 1 }, values)
  end)

  it("refuses a circle, an unknown name and a result that is not a domain, by name", function()
    local function first(_, from) return from:draw(0) end
    local circle = space.new { a = function(v) return v.b end, b = function(v) return v.a end }
    assert.is_truthy(refusal(circle.evaluate, circle, first):find("space%.[ab]"))
    local unknown = space.new { width = 1, b = function(v) return v.widht end }
    assert.is_truthy(refusal(unknown.evaluate, unknown, first):find("did you mean 'width'?", 1, true))
    local wrong = space.new { b = function() return {} end }
    assert.is_truthy(refusal(wrong.evaluate, wrong, first):find("space.b", 1, true))
  end)

  it("is the same for the same words, and says what differs", function()
    local function words(t) return space.new(t):words() end
    local a = words { x = sweep.uniform(0, 1), f = function(v) return v.x end }
    assert.is_nil(space.difference(a, words { x = sweep.uniform(0, 1),
      f = function(w) return w.x end }))
    assert.is_truthy(space.difference(words { x = sweep.uniform(0, 1),
      f = function(v) return v.y end }, a):find "^f is a function")
    assert.is_truthy(space.difference(words { x = sweep.int(0, 1) }, words { x = sweep.int(0, 2) })
      :find("x is int 0..1, it was int 0..2", 1, true))
  end)

  it("is refused without names or domains", function()
    for _, case in ipairs { { nil }, { {} }, { { sweep.int(1, 2) } }, { { x = {} } },
      { sweep.int(1, 2) } } do
      assert.is_truthy(refusal(space.new, case[1]):find("space", 1, true))
    end
  end)
end)

describe("random search", function()
  it("draws values that depend only on seed, trial and name", function()
    local a = random.new(space.new { x = sweep.uniform(0, 1), y = sweep.uniform(0, 1) }, { seed = 7 })
    local b = random.new(space.new { y = sweep.uniform(0, 1), z = sweep.int(1, 9) }, { seed = 7 })
    local five = a:suggest(5)
    a:suggest(1)
    assert.are.equal(five.x, a:suggest(5).x)
    assert.are.equal(five.y, b:suggest(5).y)
    assert.are_not.equal(five.x, five.y)
    assert.are_not.equal(five.x, a:suggest(6).x)
  end)
end)

describe("the grid", function()
  it("has every combination once, in the order of names, the last one fastest", function()
    local entries = grid.entries(space.new { a = sweep.choice { "u", "v" }, b = sweep.int(1, 3),
      c = 9 }, 5)
    local shown = {}
    for i, e in ipairs(entries) do shown[i] = e.a .. e.b end
    assert.are.equal("u1 u2 u3 v1 v2 v3", table.concat(shown, " "))
  end)

  it("walks branches that have different parameters", function()
    local entries = grid.entries(space.new { a = sweep.choice { 1, 2, 3 },
      b = function(v) if v.a > 1 then return sweep.int(1, v.a) end end }, 5)
    local shown = {}
    for i, e in ipairs(entries) do shown[i] = e.a .. tostring(e.b or "-") end
    assert.are.equal("1- 21 22 31 32 33", table.concat(shown, " "))
  end)

  it("cuts ranges into points with both ends", function()
    local entries = grid.entries(space.new { x = sweep.log(1e-4, 1e-2) }, 3)
    assert.are.equal(3, #entries)
    assert.is_true(math.abs(entries[2].x - 1e-3) < 1e-12)
    assert.are.equal(1e-4, entries[1].x)
    assert.are.equal(1e-2, entries[3].x)
    assert.are.equal(4, #grid.entries(space.new { n = sweep.int_log(1, 4) }, 5))
  end)
end)
