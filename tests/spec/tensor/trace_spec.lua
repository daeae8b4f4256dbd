-- tests/spec/tensor/trace_spec.lua - tensors while a layer is traced, parameters, memory.

local gp = require "gpipe"
local core = require "gpipe.core"
local expect = require "tests.support.expect"
local fails_with = expect.fails_with

local function matrix() return gp.tensor { { 1, 2, 3 }, { 4, 5, 6 } } end

-- Runs f on symbolic inputs of the given shapes; returns what f made as types.
local function traced(f, ...)
  local inputs = {}
  for i, shape in ipairs { ... } do inputs[i] = { shape = shape } end
  return core.trace_cost(f, inputs).outputs
end

describe("tracing", function()
  it("types every method without values", function()
    local types = traced(function(x, y)
      assert.equal("eval", core.tracing())
      assert.same({ 2, 3 }, x.shape)
      assert.equal(2, #x)
      return x + 1, 2 * x, x:matmul(y), x:sum(1), x:mean(), x:softmax(1), x:transpose():reshape(-1),
        x:select(2, 1), x[1], x:max(2), x:to("f64"), gp.concat { x, x }, gp.where(x:gt(0), x, 0),
        x:argmax()
    end, { 2, 3 }, { 3, 4 })
    local shapes = { {2, 3}, {2, 3}, {2, 4}, {3}, {}, {2, 3}, {6}, {2}, {3}, {2}, {2, 3}, {4, 3},
      {2, 3}, {} }
    for i, shape in ipairs(shapes) do assert.same(shape, types[i].shape) end
    assert.is_nil(core.tracing())
  end)

  it("refuses methods that need a value", function()
    local wanted = "data-dependent control flow cannot be pipelined"
    for _, use in ipairs {
      function(x) return x:item() end,
      function(x) return x:totable() end,
      function(x) return x[1] end,
      function(x) return gp.equal(x, x) end,
    } do
      fails_with(wanted, traced, use, { 1 })
    end
    for _, compare in ipairs {
      function(x) return x < x end, function(x) return x <= 1 end,
      function(x) return x > x and x or 0 end,
    } do
      fails_with(wanted, traced, compare, { 1 })
    end
    fails_with("only an nn.Buffer can be written", traced, function(x) x:copy_(1) end, { 1 })
    fails_with("expected copy_ on an nn.Buffer", traced, function(x) x[1] = 1 end, { 2 })
    assert.is_nil(core.tracing())
  end)

  it("prints a value as its type", function()
    traced(function(x)
      assert.equal("[f32 2x3, traced: the values are not known yet]", tostring(x))
      return x
    end, { 2, 3 })
  end)

  it("refuses values of a trace that has ended", function()
    local kept
    traced(function(x) kept = x return x end, { 2 })
    fails_with("a value of a trace that has ended was kept", function() return kept + 1 end)
    fails_with("a value of a trace", traced, function(x) return x + kept end, { 2 })
  end)

  it("names the open module, also after an error", function()
    local function call(x)
      local _outer <close> = core.enter("3", "Sequential")
      local _inner <close> = core.enter("gate", "Gate 4")
      assert.equal("3.gate (Gate 4)", core.label())
      return x:item()
    end
    fails_with("3.gate (Gate 4): item: the value is not known", traced, call, { 1 })
    assert.equal("", core.label())
    fails_with("3.gate (Gate 4): item: the tensor has 2 elements", call, gp.ones { 2 })
    assert.equal("", core.label())
  end)

  it("records parameters, and writes only to buffers", function()
    local spec = { shape = { 3 }, kind = "constant", a = 2, seed = 1, number = 0 }
    local weight = core.parameter(spec)
    spec.buffer = true
    local buffer = core.parameter(spec)
    traced(function(x)
      assert.truthy(tostring(weight + 1):find("traced", 1, true))
      assert.equal(buffer, buffer:copy_(x:sum(1)))
      assert.has_error(function() weight:copy_(x:sum(1)) end)
      return x * weight
    end, { 2, 3 })
    assert.same({ 2, 2, 2 }, buffer:totable())
  end)
end)

describe("parameters", function()
  local function parameter(extra)
    local spec = { shape = { 2, 2 }, kind = "normal", a = 0, b = 1, seed = 4, number = 2 }
    for k, v in pairs(extra or {}) do spec[k] = v end
    return core.parameter(spec)
  end

  it("depend only on seed and number", function()
    assert.is_true(gp.equal(parameter(), parameter()))
    assert.is_false(gp.equal(parameter(), parameter { number = 3 }))
  end)

  it("act as tensors and share memory with their value", function()
    local p = parameter { kind = "constant", a = 3 }
    assert.same({ { 6, 6 }, { 6, 6 } }, (p * 2):totable())
    p:value()[1] = 0
    p[2][1] = 1
    assert.same({ { 0, 0 }, { 1, 3 } }, p:totable())
    assert.is_nil(p.grad)
    assert.truthy(tostring(p):find("[f32 2x2 parameter]", 1, true))
  end)

  it("can be frozen", function()
    local p = parameter { frozen = true }
    assert.is_true(p:is_frozen())
    assert.equal(p, p:set_frozen(false))
    assert.is_false(p:is_frozen())
    fails_with("no parameter", gp.ones({ 1 }).is_frozen, gp.ones { 1 })
  end)
end)

describe("memory", function()
  it("is freed by free, close and the collector", function()
    collectgarbage()
    local before = gp.memory().cpu.live
    local t = gp.zeros { 1000 }
    assert.is_true(gp.memory().cpu.live >= before + 4000)
    t:free()
    t:free()
    do
      local _u <close> = gp.zeros { 1000 }
    end
    gp.zeros { 1000 }
    collectgarbage()
    assert.equal(before, gp.memory().cpu.live)
    fails_with("the tensor was freed", function() return t.shape end)
    fails_with("the tensor was freed", t.sum, t)
    assert.equal("[freed tensor]", tostring(t))
  end)

  it("outlives its tensor through views", function()
    local view = matrix()[2]
    collectgarbage()
    assert.same({ 4, 5, 6 }, view:totable())
  end)

  it("is collected in time, in both modes of the collector", function()
    for _, mode in ipairs { "generational", "incremental" } do
      collectgarbage(mode)
      for _ = 1, 200 do gp.zeros { 4 << 20 } end -- 200 times 16 MB
      assert.is_true(gp.memory().cpu.live < 600 << 20, mode)
    end
  end)

  it("that cannot be allocated gives an error and leaks nothing", function()
    local function work()
      local t = gp.tensor { { 1, 2 }, { 3, 4 } }
      local u = gp.concat { t:softmax(1), t:matmul(t) + 1 }
      return traced(function(x) return (x + u):sum() end, { 4, 2 })
    end
    work()
    collectgarbage()
    local before, n, done = gp.memory().cpu.live, 0, false
    while not done and n < 1000 do
      n = n + 1
      core.memory_fail_at(n)
      done = pcall(work) and n > 100
      core.memory_fail_at(0)
      assert.equal("", core.label())
    end
    collectgarbage()
    assert.equal(before, gp.memory().cpu.live)
  end)
end)

describe("the documentation", function()
  it("names every method, with an example that is true", function()
    local documented, env = {}, { gp = gp, nn = gp.nn, math = math }
    for name, entry in pairs(require("gpipe.shell.comments").of_tensors()) do
      documented[name] = true
      local text = table.concat(entry.comment, "\n")
      local example = assert(text:match("`([^`]*%f[%w][gn][pn]%.[^`]+)`"), name)
      assert.is_true(assert(load("return " .. example:gsub("\n%-%-%-", " "), name, "t", env))(), name)
    end
    for name in pairs(core.methods) do assert.truthy(documented[name], name) end
  end)
end)
