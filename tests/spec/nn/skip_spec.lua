-- tests/spec/nn/skip_spec.lua - skip connections: how they are declared and checked, and what
-- happens in a run. Names of tests follow torchgpipe's behaviours.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local fails = require("tests.support.expect").failure
local nn = gp.nn

local x = gp.tensor { { -1, 2 }, { 3, -4 } }

local function class_of(skips, forward)
  local Layer = nn.class("Layer", nil, skips)
  Layer.forward = forward or function(_, input) return input end
  return Layer
end

-- Returns the faults of a model as gp.pipeline reports them.
local function faults(model)
  local text = fails(gp.pipeline, model)
  local list = {}
  for line in text:gmatch "\n  ([^\n]+)" do list[#list + 1] = line end
  assert(text:find(("(%d %s)"):format(#list, #list == 1 and "fault" or "faults"), 1, true), text)
  return list
end

describe("stash and pop", function()
  it("keep a value and give it back once", function()
    local y = nn.Sequential { nn.Stash "a", nn.ReLU(), nn.Pop("a", "add") } (x)
    assert.same({ { -1, 4 }, { 6, -4 } }, y:totable())
  end)

  it("join along the channels, or as a function says", function()
    local joined = nn.Sequential { nn.Stash "a", nn.ReLU(), nn.Pop("a", "concat") } (x)
    assert.same({ { 0, 2, -1, 2 }, { 3, 0, 3, -4 } }, joined:totable())
    local function minus(y, skip) return y - skip end
    local less = nn.Sequential { nn.Stash "a", nn.ReLU(), nn.Pop("a", minus) } (x)
    assert.same({ { 1, 0 }, { 0, 4 } }, less:totable())
  end)

  it("carry nil where a class stashes nil", function()
    local None = class_of({ stash = "a" }, function(self, input)
      self:stash("a", nil)
      return input
    end)
    local seen = "nothing"
    local model = nn.Sequential { None(), nn.Pop("a", function(y, skip)
      seen = skip
      return y
    end) }
    model(x)
    assert.is_nil(seen)
    assert.same(x:totable(), nn.Sequential { None(), nn.Pop "a" } (x):totable())
  end)

  it("begin empty in every run of a model", function()
    local model = nn.Sequential { nn.Stash "a", nn.Pop "a" }
    pcall(model, gp.ones { 1 }, 3)
    assert.same(model(x):totable(), model(x):totable())
    nn.Stash "a"(x)
    assert.truthy(fails(nn.Pop "a", x):find("'a' has not been stashed", 1, true))
  end)

  it("raise where they are declared but not used", function()
    local text = fails(class_of { stash = { "a", "b" } } (), x)
    assert.truthy(text:find("Layer: 'a', 'b' must be stashed in forward but were not", 1, true))
    text = fails(nn.Sequential { nn.Stash "c", class_of { pop = { "c" } } () }, x)
    assert.truthy(text:find("2 (Layer): 'c' must be popped in forward but was not", 1, true))
  end)

  it("raise for names that are not declared", function()
    local stash = class_of({}, function(self, input) self:stash("a", input) end)
    assert.truthy(fails(stash(), x):find("Layer: 'a' is not declared", 1, true))
    local pop = class_of({}, function(self) return self:pop("a") end)
    assert.truthy(fails(pop(), x):find('{pop = {"a"}}', 1, true))
  end)

  it("raise twice in a row, and for a value that is not a tensor", function()
    local twice = class_of({ stash = { "a" } }, function(self, input)
      self:stash("a", input)
      self:stash("a", input)
    end)
    assert.truthy(fails(twice(), x):find("'a' is stashed already", 1, true))
    local number = class_of({ stash = { "a" } }, function(self) self:stash("a", 3) end)
    assert.truthy(fails(number(), x):find("the value of 'a' is 3, expected a tensor or nil", 1, true))
  end)

  it("raise outside of forward", function()
    local Keep = class_of { stash = { "a" } }
    assert.truthy(fails(Keep.stash, Keep(), "a", x):find("inside of forward", 1, true))
  end)

  it("are inherited with a class, and more may be declared", function()
    local Base = class_of { stash = { "a" } }
    local Derived = nn.class("Derived", Base, { pop = { "b" } })
    local list = faults(nn.Sequential { Derived() })
    assert.same({ "1 (Derived): 'b' is popped, but no layer stashes it",
      "1 (Derived): 'a' is stashed, but no layer pops it" }, list)
  end)

  it("show their names", function()
    assert.equal("nn.Stash(a)", tostring(nn.Stash "a"))
    assert.equal("nn.Pop(a, concat)", tostring(nn.Pop("a", "concat")))
  end)

  it("take a string as one name, never as its letters", function()
    local list = faults(nn.Sequential { class_of { stash = "skip" } () })
    assert.same({ "1 (Layer): 'skip' is stashed, but no layer pops it" }, list)
  end)

  it("work in the model's summary", function()
    local model = nn.Sequential { nn.Linear(2, 3), nn.Stash "a", nn.Linear(3, 2),
      nn.Pop("a", "concat") }
    local rows = model:summary({ 4, 2 }, { quiet = true })
    assert.same({ 4, 5 }, rows[4].shape)
  end)
end)

describe("a pipeline verifies skips:", function()
  local Both = class_of { stash = { "a" }, pop = { "a" } }
  local Cross = class_of { stash = { "b" }, pop = { "a" } }
  local Two = class_of { stash = { "a", "b" } }
  local function pipe_of(model) gp.pipeline(model):close() end
  local function stash(name) return nn.Stash(name) end
  local function pop(name) return nn.Pop(name) end

  it("matching ones pass", function()
    pipe_of(nn.Sequential { stash "a", pop "a" })
    pipe_of(nn.Sequential { Two(), pop "b", pop "a" })
  end)

  it("different names in one layer pass", function()
    pipe_of(nn.Sequential { stash "a", Cross(), pop "b" })
  end)

  it("stash and pop of one name in one layer are refused", function()
    assert.same({ "1 (Layer): 'a' is both stashed and popped by it" },
      faults(nn.Sequential { Both() }))
  end)

  it("a stash without a pop is refused", function()
    assert.same({ "1 (Stash a): 'a' is stashed, but no layer pops it" },
      faults(nn.Sequential { stash "a", nn.ReLU() }))
  end)

  it("a pop without a stash, or before it, is refused", function()
    assert.same({ "1 (Pop a, add): 'a' is popped, but no layer stashes it" },
      faults(nn.Sequential { pop "a" }))
    assert.same({ "1 (Pop a, add): 'a' is popped before 2 (Stash a) stashes it" },
      faults(nn.Sequential { pop "a", stash "a" }))
  end)

  it("a second stash, a second pop, or both are refused", function()
    assert.same({
      "2 (Stash a): 'a' is stashed already by 1 (Stash a) (isolate one of them in a namespace)",
    }, faults(nn.Sequential { stash "a", stash "a", pop "a" }))
    assert.same({
      "3 (Pop a, add): 'a' is popped already by 2 (Pop a, add) (isolate one of them in a namespace)",
    }, faults(nn.Sequential { stash "a", pop "a", pop "a" }))
    assert.equal(2, #faults(nn.Sequential { stash "a", pop "a", stash "a", pop "a" }))
  end)

  it("the same pair again passes in a namespace", function()
    local space = nn.namespace()
    pipe_of(nn.Sequential { stash "a", pop "a", stash "a":isolate(space), pop "a":isolate(space) })
  end)

  it("ends in different namespaces do not meet", function()
    local one, other = nn.namespace(), nn.namespace()
    local list = faults(nn.Sequential { stash "a":isolate(one), pop "a":isolate(other),
      nn.Stash("b", { namespace = one }), pop "b" })
    assert.equal(4, #list)
    assert.truthy(list[1]:find("(1 (Stash a) has it in another namespace)", 1, true))
  end)

  it("nested modules are seen", function()
    local inner = nn.Residual(nn.Sequential { nn.ReLU(), stash "deep" })
    assert.same({ "2.body.2 (Stash deep): 'deep' is stashed, but no layer pops it" },
      faults(nn.Sequential { nn.ReLU(), inner }))
  end)

  it("some of a module's names may be isolated", function()
    local space = nn.namespace()
    local first, second = Two(), Two()
    second:isolate(space, { only = { "a" } })
    local list = faults(nn.Sequential { first, second, pop "a", pop "b", pop "a":isolate(space) })
    assert.same({ "2 (Layer): 'b' is stashed already by 1 (Layer) "
    .. "(isolate one of them in a namespace)" }, list)
  end)
end)

describe("a namespace", function()
  it("equals only itself and prints its name", function()
    local a, b = nn.namespace(), nn.namespace()
    assert.are_not.equal(a, b)
    assert.are_not.equal(tostring(a), tostring(b))
  end)

  it("stays the one that was given first", function()
    local inner, outer = nn.namespace(), nn.namespace()
    local function block() return nn.Sequential { nn.Stash "a", nn.Pop "a" } end
    local model = nn.Sequential { block():isolate(inner), block() }
    model:isolate(outer)
    gp.pipeline(model:flatten()):close()
  end)

  local cases = {
    { function() nn.ReLU():isolate(nn.namespace()) end, "isolate: ReLU has no skips" },
    { function() nn.Stash "a":isolate "b" end, 'isolate: the namespace is "b" (string), expected' },
    { function() nn.Stash "abc":isolate(nn.namespace(), { only = { "abd" } }) end,
      "isolate: Stash abc declares no skip 'abd' (did you mean 'abc'?)" },
    { function() nn.Stash(3) end, "nn.Stash: name is 3, expected a name" },
    { function() nn.Pop("a", "sum") end, 'nn.Pop: how is "sum" (string), expected "add", "concat"' },
    { function() nn.class("A", nil, { stash = 3 }) end, "nn.class: option 'stash' is 3" },
    { function() nn.class("A", nil, { stash = { 3 } }) end, "nn.class: stash[1] is 3" },
    { function() nn.class("A", nil, { pop = { "b", "b" } }) end, "nn.class: pop has 'b' twice" },
    { function() nn.class("A", nil, { pops = { "b" } }) end, "unknown option 'pops'" },
    { function() nn.Stash "a"(x, x) end, "Stash a: there are 2 inputs, expected one tensor" },
  }
  for i, case in ipairs(cases) do
    it(("wrong call %d says: %s"):format(i, case[2]), function()
      local text = fails(case[1])
      assert(text:find(case[2], 1, true), text)
    end)
  end
end)
