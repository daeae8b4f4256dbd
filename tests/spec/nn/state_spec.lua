-- tests/spec/nn/state_spec.lua - state dictionaries: what they copy, what they refuse.
local gp = require "gpipe"
local nn = gp.nn

local Counter = nn.class("Counter")
function Counter:init()
  self.scale = nn.Parameter({ 2 }, 3)
  self.seen = nn.Buffer({ 1 })
end
function Counter:forward(x) return x * self.scale end

local function model_of(n) return nn.Sequential { nn.Linear(n or 2, 2), { "count", Counter() } } end

-- Sets every element of every parameter and buffer to 7.
local function sevens(state)
  for _, tensor in pairs(state) do tensor:copy_(7) end
  return state
end

local function fault_of(state, opts)
  local ok, text = pcall(function() model_of():load_state_dict(state, opts) end)
  return not ok and text:match("load_state_dict.*") or nil
end

describe("state_dict", function()
  it("holds parameters and buffers by name", function()
    local names = {}
    for name in pairs(model_of():state_dict()) do names[#names + 1] = name end
    table.sort(names)
    assert.are.same({ "1.bias", "1.weight", "count.scale", "count.seen" }, names)
  end)

  it("copies values", function()
    local model = model_of()
    sevens(model:state_dict())
    assert.are.same({ 3, 3 }, model.count.scale:totable())
  end)

  it("makes one model equal to another when loaded", function()
    local a, b = model_of(), model_of()
    local x = gp.randn { 3, 2 }
    assert.is_false(gp.equal(a(x), b(x)))
    assert.are.equal(b, b:load_state_dict(a:state_dict()))
    assert.is_true(gp.equal(a(x), b(x)))
  end)
end)

describe("load_state_dict", function()
  it("names every fault at once and changes nothing", function()
    local state = sevens(model_of():state_dict())
    state["1.bias"], state["old"], state["count.seen"] = nil, gp.ones { 1 }, gp.ones { 4 }
    state["count.scale"] = gp.ones({ 2 }, { dtype = "f64" })
    local model = model_of()
    local before = model:state_dict()
    local ok, text = pcall(model.load_state_dict, model, state)
    assert.is_false(ok)
    assert.are.equal([[load_state_dict: the state does not fit the model (4 faults)
  missing: 1.bias (f32 2)
  wrong: count.scale is f64 2, expected f32 2
  wrong: count.seen is f32 4, expected f32 1
  unexpected: old]], text:match("load_state_dict.*"))
    assert.is_true(gp.equal(before["1.weight"], model[1].weight:value()))
  end)

  it("skips missing and unexpected names when it is not strict", function()
    local model = model_of()
    model:load_state_dict({ ["count.scale"] = gp.ones { 2 }, old = gp.ones { 1 } },
      { strict = false })
    assert.are.same({ 1, 1 }, model.count.scale:totable())
  end)

  it("refuses wrong shapes even when it is not strict", function()
    assert.is_truthy(fault_of({ ["count.scale"] = gp.ones { 3 } }, { strict = false })
      :find("wrong: count.scale is f32 3, expected f32 2", 1, true))
  end)

  it("refuses tables that are not states", function()
    assert.is_truthy(fault_of(nil):find("the state is nil, expected a table of tensors", 1, true))
    local state = model_of():state_dict()
    state["1.bias"] = 3
    assert.is_truthy(fault_of(state):find("wrong: 1.bias is 3, expected a tensor", 1, true))
  end)
end)

describe("a state from a file", function()
  local path
  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  it("is loaded by models, pipelines and optimizers together with its metadata", function()
    local model = model_of()
    assert(gp.save(path, sevens(model:state_dict()), { epoch = "3", strict = "no" }))
    model:load_state_dict(assert(gp.load(path)))
    assert.are.equal(7, model:parameters()[1].value:totable()[1][1])
    local pipe <close> = gp.pipeline(model_of())
    pipe:load_state_dict(assert(gp.load(path)))
    assert.are.equal(7, pipe:parameters()[1].value:totable()[1][1])
    local opt = gp.optim.SGD(pipe:parameters(), { lr = 1, momentum = 0.9 })
    assert(gp.save(path, opt:state_dict(), { epoch = "3" }))
    opt:load_state_dict(assert(gp.load(path)))
  end)

  it("still takes options, and refuses those that it does not know", function()
    local state = model_of():state_dict()
    assert.is_nil(fault_of(state, { strict = true }))
    assert.is_truthy(fault_of(state, { epoch = "3" }))
  end)
end)
