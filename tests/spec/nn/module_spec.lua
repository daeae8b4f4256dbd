-- tests/spec/nn/module_spec.lua - module classes: what assignments register, names, modes,
-- inheritance.
local gp = require "gpipe"
local nn = gp.nn

local function names_of(entries)
  local names = {}
  for i, entry in ipairs(entries) do names[i] = entry.name end
  return table.concat(names, " ")
end

local Gate = nn.class("Gate")
function Gate:init(n)
  self.w = nn.Parameter({ n }, nn.init.constant(2))
  self.fc = nn.Linear(n, n)
  self.b = nn.Parameter({}, 0)
end
function Gate:forward(x) return self.fc(x) * self.w + self.b end

describe("nn.class", function()
  it("makes instances by calling the class, which runs init", function()
    local gate = Gate(3)
    assert.are.equal(3, gate.w:numel())
    assert.is_true(nn.is_module(gate))
    assert.is_false(nn.is_module(Gate))
  end)

  it("finds parameters and modules in the order of their first assignment", function()
    assert.are.equal("w fc.weight fc.bias b", names_of(Gate(2):parameters()))
  end)

  it("keeps the place of an attribute that is assigned again", function()
    local gate = Gate(2)
    gate.w = nn.Parameter({ 5 }, 0)
    local first = gate:parameters()[1]
    assert.are.equal("w", first.name)
    assert.are.equal(5, first.value:numel())
  end)

  it("forgets an attribute that is set to nil", function()
    local gate = Gate(2)
    gate.fc = nil
    assert.are.equal("w b", names_of(gate:parameters()))
  end)

  it("looks into plain tables, even ones that hold themselves", function()
    local Stack = nn.class("Stack")
    function Stack:init()
      self.blocks = { nn.Linear(1, 1, { bias = false }), nn.Linear(1, 1, { bias = false }) }
      self.blocks.last = nn.Parameter({ 1 }, 0)
      self.blocks.all = self.blocks
    end
    assert.are.equal("blocks.1.weight blocks.2.weight blocks.last", names_of(Stack():parameters()))
  end)

  it("leaves attributes that were never set nil", function()
    local gate = Gate(2)
    assert.is_nil(gate.flag)
    assert.is_nil(gate.paramters)
  end)

  it("inherits init, methods and metamethods", function()
    local Half = nn.class("Half", Gate)
    function Half:forward(x) return Gate.forward(self, x) / 2 end
    local half = Half(2)
    assert.is_true(half:is(Gate) and half:is(nn.Module))
    assert.is_false(Gate(2):is(Half))
    local x = gp.ones { 1, 2 }
    assert.is_true(gp.equal(half(x), Gate.forward(half, x) / 2))
  end)

  it("lets a class define metamethods of its instances", function()
    local Named = nn.class("Named")
    function Named.__tostring() return "me" end
    assert.are.equal("me", tostring(Named()))
  end)

  it("lists a shared parameter once, under its first name", function()
    local Tied = nn.class("Tied")
    function Tied:init()
      self.embed = nn.Embedding(4, 3)
      self.head = nn.Linear(3, 4, { bias = false })
      self.head.weight = self.embed.weight
    end
    assert.are.equal("embed.weight", names_of(Tied():parameters()))
  end)
end)

describe("a module", function()
  it("has buffers beside its parameters", function()
    local Counter = nn.class("Counter")
    function Counter:init() self.seen = nn.Buffer({ 2 }) end
    local counter = Counter()
    assert.are.equal("", names_of(counter:parameters()))
    assert.are.equal("seen", names_of(counter:buffers()))
    assert.are.same({ 0, 0 }, counter.seen:totable())
  end)

  it("iterates over itself and what it holds", function()
    local found = {}
    for name, module in nn.Sequential { Gate(1) }:modules() do
      assert.is_true(nn.is_module(module))
      found[#found + 1] = name
    end
    assert.are.same({ "", "1", "1.fc" }, found)
  end)

  it("is in training mode until eval, which reaches everything below", function()
    local model = nn.Sequential { nn.Residual(nn.Dropout(0.5)) }
    assert.is_true(model.training)
    assert.is_false(model:eval()[1].body.training)
    assert.is_true(model:train()[1].body:is_training())
  end)

  it("filters parameters by pattern", function()
    local model = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 2) }
    assert.are.equal("1.bias 2.bias", names_of(model:parameters("bias$")))
  end)

  it("freezes and unfreezes by pattern", function()
    local model = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 2) }
    model:freeze("^1%.")
    assert.is_true(model[1].weight:is_frozen() and model[1].bias:is_frozen())
    assert.is_false(model[2].weight:is_frozen())
    model:unfreeze()
    assert.is_false(model[1].weight:is_frozen())
  end)

  it("declares a frozen parameter", function()
    assert.is_true(nn.Parameter({ 1 }, 0, { frozen = true }):is_frozen())
  end)

  it("finds modules and parameters by path", function()
    local model = nn.Sequential { nn.ReLU(), { "head", nn.Sequential { nn.Linear(2, 2) } } }
    assert.are.equal(model[2][1].weight, model:get "head.1.weight")
    assert.are.equal(model.head, model:get "head")
    assert.are.equal(model, model:get "")
    assert.is_nil(model:get "head.2.weight")
    local gate = Gate(2)
    assert.are.equal(gate.fc, gate:get "fc")
    assert.is_false(pcall(gate.get, gate, 1))
  end)

  it("calls a function with each child before its parent, each once", function()
    local shared = nn.Linear(2, 2)
    local model = nn.Sequential { nn.Residual(shared), nn.Concat(2, { shared, nn.ReLU() }) }
    local names = {}
    assert.are.equal(model, model:apply(function(_, name) names[#names + 1] = name end))
    assert.are.same({ "1.body", "1", "2.2", "2", "" }, names)
    assert.is_false(pcall(model.apply, model, 3))
    local held = {}
    for name in model:children() do held[#held + 1] = name end
    assert.are.same({ "1", "2" }, held)
  end)

  it("answers names of torch.nn with gpipe's names", function()
    for name, word in pairs { functional = "modules are functions", ModuleList = "a plain table",
      SyncBatchNorm = "deferred_batch_norm", pack_padded_sequence = "lengths" } do
      local good, text = pcall(function() return nn[name] end)
      assert.is_false(good)
      assert.is_truthy(text:find(word, 1, true), text)
    end
    local good, text = pcall(function() return nn.ReLU().get_submodule end)
    assert.is_false(good)
    assert.is_truthy(text:find("model:get", 1, true))
  end)

  it("prints as its declaration", function()
    local model = nn.Sequential {
      nn.Linear(784, 256), { "act", nn.ReLU() }, nn.Residual(nn.Dropout(0.1)), Gate(2),
    }
    assert.are.equal([[
nn.Sequential {
  [input -> (1) -> (act) -> (3) -> (4) -> output]
  (1): nn.Linear(784 -> 256)  200,960 parameters
  (act): nn.ReLU
  (3): nn.Residual {
    (body): nn.Dropout(0.1)
  }
  (4): Gate {
    (fc): nn.Linear(2 -> 2)  6 parameters
  }  3 parameters of its own
}  200,969 parameters]], tostring(model))
    local tied = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 2, { bias = false }) }
    tied[2].weight = tied[1].weight
    assert.is_truthy(tostring(tied):find("}  6 parameters", 1, true), "a shared one counts once")
  end)

  it("prints at any depth, in time and length in proportion to its size", function()
    local model = nn.Sequential { nn.Linear(2, 2) }
    for _ = 1, 9000 do model = nn.Sequential { model } end
    local text = tostring(model)
    assert.is_true(#text < 10000)
    assert.is_truthy(text:find("{ ... }  6 parameters", 1, true))
  end)
end)

describe("model:summary", function()
  local core = require "gpipe.core"

  -- A stand-in for the real function: it runs the layers on zeros.
  local function trace_cost(fn, inputs)
    local values, outputs = {}, {}
    for i, input in ipairs(inputs) do
      values[i] = gp.zeros(input.shape, { dtype = input.dtype })
    end
    for i, output in ipairs { fn(table.unpack(values)) } do
      outputs[i] = { shape = output.shape, dtype = output.dtype }
    end
    return { outputs = outputs, flop = 6 }
  end

  it("shows the output of each layer, and FLOP per sample", function()
    local real = core.trace_cost
    core.trace_cost = real or trace_cost
    finally(function() core.trace_cost = real end)
    local model = nn.Sequential { nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 3) }
    local rows = model:summary({ 2, 5 }, { quiet = true })
    assert.are.same({ 2, 5, 4 }, rows[1].shape)
    assert.are.same({ 2, 20 }, rows[2].shape)
    assert.are.same({ 2, 3 }, rows[3].shape)
    assert.are.equal(real and 2 * 20 * 3 + 3 or 3, rows[3].flop)
  end)

  it("has a row for each layer of the outermost Sequential", function()
    local model = nn.Sequential { nn.Linear(4, 3), nn.Sequential { nn.ReLU(), Gate(3) } }
    local rows = model:summary({ 2, 4 }, { quiet = true })
    assert.are.equal(2, #rows)
    assert.are.same({ "1", "Linear 4 -> 3", 15 }, { rows[1].name, rows[1].layer,
      rows[1].parameters })
    assert.are.equal(16, rows[2].parameters)
  end)

  it("counts shared parameters once", function()
    local a, b = nn.Linear(3, 3, { bias = false }), nn.Linear(3, 3, { bias = false })
    b.weight = a.weight
    local rows = nn.Sequential { a, b }:summary({ 1, 3 }, { quiet = true })
    assert.are.same({ 9, 0 }, { rows[1].parameters, rows[2].parameters })
  end)
end)
