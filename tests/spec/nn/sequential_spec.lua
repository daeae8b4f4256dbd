-- tests/spec/nn/sequential_spec.lua - nn.Sequential: access, names, flattening, running.
local gp = require "gpipe"
local nn = gp.nn

local function names_of(model)
  local names = {}
  for i, entry in ipairs(model:parameters()) do names[i] = entry.name end
  return table.concat(names, " ")
end

local function model_of()
  return nn.Sequential {
    nn.Linear(2, 3),
    { "head", nn.Sequential { nn.ReLU(), { "out", nn.Linear(3, 2, { bias = false }) } } },
  }
end

describe("nn.Sequential", function()
  it("counts, indexes and iterates its layers", function()
    local a, b = nn.ReLU(), nn.Tanh()
    local model = nn.Sequential { a, { "act", b } }
    assert.are.equal(2, #model)
    assert.are.equal(a, model[1])
    assert.are.equal(b, model.act)
    assert.are.equal(b, model:get("act"))
    assert.are.equal(a, model:get(-2))
    assert.are.equal(a, model:get("1"))
    assert.is_nil(model[3])
    local seen = {}
    for i, layer in pairs(model) do seen[i] = layer end
    assert.are.same({ a, b }, seen)
  end)

  it("may be empty, and then returns its input", function()
    local x = gp.ones { 2 }
    assert.are.equal(x, nn.Sequential {}(x))
  end)

  it("names parameters by position or by the given name", function()
    assert.are.equal("1.weight 1.bias head.out.weight", names_of(model_of()))
  end)

  it("replaces and appends layers", function()
    local model = model_of()
    model[1] = nn.Linear(2, 3, { bias = false })
    model.head = nn.Linear(3, 1, { bias = false })
    model[3] = nn.Tanh()
    assert.are.equal("1.weight head.weight", names_of(model))
    assert.are.equal(3, #model)
    assert.are.same({ 5, 1 }, model(gp.ones { 5, 2 }).shape)
  end)

  it("keeps parameter names and layers when it is flattened", function()
    local model = model_of()
    local flat = model:flatten()
    assert.are.equal(3, #flat)
    assert.are.equal(names_of(model), names_of(flat))
    assert.are.equal(model[2][2], flat[3])
    local x = gp.randn { 4, 2 }
    assert.is_true(gp.equal(model(x), flat(x)))
    assert.are.equal(3, #flat:flatten())
  end)

  it("keeps the mode when it is flattened", function()
    assert.is_false(model_of():eval():flatten().training)
  end)

  it("passes several values between layers", function()
    local Split, Join = nn.class("Split"), nn.class("Join")
    function Split.forward(_, x) return x, x * 2 end
    function Join.forward(_, a, b) return a + b end
    assert.are.same({ 3, 6 }, nn.Sequential { Split(), Join() }(gp.tensor { 1, 2 }):totable())
  end)

  it("runs a range of layers as the whole does", function()
    local model = model_of()
    local x = gp.randn { 4, 2 }
    local half = model:run_layers(1, 1, x)
    assert.is_true(gp.equal(model(x), model:run_layers(2, 2, half)))
  end)

  it("can be inherited from", function()
    local Net = nn.class("Net", nn.Sequential)
    function Net:init(n) nn.Sequential.init(self, { nn.Linear(n, n), nn.ReLU() }) end
    local net = Net(2)
    assert.are.equal(2, #net)
    assert.are.equal("1.weight 1.bias", names_of(net))
    assert.are.same({ 1, 2 }, net(gp.ones { 1, 2 }).shape)
  end)
end)

describe("labels", function()
  local core = require "gpipe.core"
  local Spy = nn.class("Spy")
  function Spy:forward(x)
    self.seen = core.label()
    return x
  end

  -- Returns the label under which a spy runs in a model.
  local function label_in(model, spy)
    model(gp.ones { 1, 2 })
    return spy.seen
  end

  it("are paths from the outermost model", function()
    local spy = Spy()
    assert.are.equal("2.body.1 (Spy)", label_in(nn.Sequential {
      nn.ReLU(), nn.Residual(nn.Sequential { spy }),
    }, spy))
  end)

  it("name the same layer differently in another model", function()
    local spy = Spy()
    local model = nn.Sequential { nn.ReLU(), { "mid", nn.Sequential { spy } } }
    assert.are.equal("mid.1 (Spy)", label_in(model:flatten(), spy))
    assert.are.equal("mid.1 (Spy)", label_in(model, spy))
    assert.are.equal("1 (Spy)", label_in(model[2], spy))
    assert.are.equal("Spy", label_in(spy, spy))
  end)

  it("are found for modules in tables", function()
    local Stack = nn.class("Stack")
    function Stack:init(...) self.blocks = { ... } end
    function Stack:forward(x)
      for _, block in ipairs(self.blocks) do x = block(x) end
      return x
    end
    local spy = Spy()
    assert.are.equal("1.blocks.2 (Spy)", label_in(nn.Sequential { Stack(nn.ReLU(), spy) }, spy))
  end)

  it("are gone after an error", function()
    local Bad = nn.class("Bad")
    function Bad.forward() error("no") end
    assert.has_error(function() nn.Sequential { Bad() }(gp.ones { 1 }) end)
    assert.are.equal("", core.label())
  end)

  -- Returns the kilobytes that Lua takes to pipeline, name and run a layer that is nested so
  -- deeply.
  local function kilobytes(depth)
    local model = nn.Sequential { nn.Linear(2, 2, { bias = false }) }
    for _ = 1, depth do model = nn.Sequential { model } end
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    local pipe <close> = gp.pipeline(model, { balance = { 1 } })
    pipe:forward(gp.ones { 1, 2 })
    assert.are.equal(2 * depth + 1 + #".weight", #pipe:parameters()[1].name)
    local taken = collectgarbage "count" - before
    collectgarbage "restart"
    return taken
  end

  it("cost memory in proportion to the model, however deeply it is nested", function()
    local few, many = kilobytes(400), kilobytes(1600)
    assert.is_true(many < 6 * few, ("%.0f KB, then %.0f KB"):format(few, many))
  end)

  it("are limited in depth, and the error names depth and limit", function()
    local model = nn.Sequential {}
    for _ = 1, 10001 do model = nn.Sequential { model } end
    local good, message = pcall(model.parameters, model)
    assert.is_false(good)
    assert.is_truthy(message:find("10001", 1, true) and message:find("10000", 1, true))
    good, message = pcall(model, gp.ones { 1 })
    assert.is_false(good)
    assert.is_truthy(message:find("10001", 1, true) and message:find("10000", 1, true))
  end)

  it("name a layer that another one calls from outside of its own parts", function()
    local Caller = nn.class "Caller"
    function Caller:init() self.block = nn.Sequential { { "deep", nn.Linear(2, 2) } } end
    function Caller:forward(x) return self.block.deep(x) end
    local model = nn.Sequential { { "caller", Caller() } }
    local good, message = pcall(model, gp.ones { 1, 3 })
    assert.is_false(good)
    assert.is_truthy(message:find("caller.block.deep (Linear 2 -> 2)", 1, true), message)
  end)
end)
