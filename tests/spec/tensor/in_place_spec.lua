-- tests/spec/tensor/in_place_spec.lua - methods that write: add_, clamp_, fill_, masked_fill_.

local gp = require "gpipe"
local core = require "gpipe.core"
local expect = require "tests.support.expect"

local nn = gp.nn
local fails_with = expect.fails_with

describe("methods that end in _", function()
  it("write what the method without it gives, and return the tensor", function()
    local x = gp.tensor { 0.5, -1.25, 3 }
    for _, row in ipairs(core.contracts()) do
      if row.in_place then
        local others = {}
        for i = 2, #row.operands do others[i - 1] = 2 end
        local t, name = x:clone(), row.name
        local want = t[name](t, table.unpack(others))
        assert.equal(t, t[name .. "_"](t, table.unpack(others)), name)
        assert.is_true(gp.equal(want, t), name)
      end
    end
  end)

  it("take attributes, dtypes and operands that broadcast", function()
    assert.same({ -1, 1 }, gp.tensor({ -3, 2 }):clamp_({ min = -1, max = 1 }):totable())
    assert.same({ 1, 2 }, gp.tensor({ 3, 2 }):clamp_(nil, 2):sub_(gp.tensor { 1, 0 }):totable())
    assert.same({ 0, 2 }, gp.tensor({ 1, 2 }):softplus_(1, 0.5):sub_(gp.tensor { 1, 0 }):totable())
    assert.same({ { 3, 4 }, { 3, 4 } },
      gp.ones({ 2, 2 }):add_(gp.tensor { 2, 3 }):totable())
    assert.same({ 4, 6 }, gp.tensor({ 2, 3 }, { dtype = "i64" }):mul_(2):totable())
    assert.same({ 0.5, 1 }, gp.tensor({ 1, 2 }, { dtype = "bf16" }):div_(2):totable())
  end)

  it("write into views, also where these overlap", function()
    local t = gp.arange(1, 6):reshape { 2, 3 }
    t:transpose():narrow(1, 2, 2):mul_(10)
    assert.same({ { 1, 20, 30 }, { 4, 50, 60 } }, t:totable())
    local u = gp.arange(1, 5)
    u:narrow(1, 2, 4):add_(u:narrow(1, 1, 4))
    assert.same({ 1, 3, 5, 7, 9 }, u:totable())
  end)

  it("fill with one number", function()
    assert.same({ 3, 3 }, gp.ones({ 2 }, { dtype = "i32" }):fill_(3):totable())
    assert.same({ 2, 2 }, gp.ones({ 2 }):fill_(gp.tensor(2)):totable())
    for _, dtype in ipairs { "f32", "f16", "i64", "u8" } do
      assert.same({ 0, 0 }, gp.ones({ 2 }, { dtype = dtype }):zero_():totable())
    end
    assert.same({ false }, gp.ones({ 1 }, { dtype = "bool" }):zero_():totable())
    fails_with("fill_: value is a table, expected a number", function() gp.ones({ 2 }):fill_ { 1 } end)
    fails_with("fill_: value is", function() gp.ones({ 2 }):fill_(gp.ones { 2 }) end)
  end)

  it("fill where a mask is true", function()
    local t, mask = gp.arange(1, 4):reshape { 2, 2 }, gp.tensor { true, false }
    assert.same({ { 9, 2 }, { 9, 4 } }, t:masked_fill(mask, 9):totable())
    assert.same({ { 1, 2 }, { 3, 4 } }, t:totable())
    assert.same({ { -math.huge, 2 }, { -math.huge, 4 } },
      t:masked_fill_(mask, -math.huge):totable())
    assert.same({ { 7, 2 }, { 7, 4 } }, t:masked_fill_(mask, gp.tensor(7)):totable())
    assert.same({ 5, 1 }, gp.ones({ 2 }, { dtype = "i64" }):masked_fill(mask, 5):totable())
    fails_with("masked_fill: mask is", function() t:masked_fill(t, 1) end)
    fails_with("masked_fill: value is a table", function() t:masked_fill(mask, {}) end)
    fails_with("masked_fill_: the result is 2x2x2, expected 2x2", function()
      t:masked_fill_(gp.ones({ 2, 1, 1 }):gt(0), 0)
    end)
  end)

  it("refuse results of another shape or dtype, and write nothing then", function()
    local t = gp.ones { 3 }
    fails_with("add_: the result is 2x3, expected 3", function() t:add_(gp.ones { 2, 3 }) end)
    fails_with("f32 and f64 differ", function() t:add_(gp.ones({ 3 }, { dtype = "f64" })) end)
    fails_with("exp: input is i64", function() gp.ones({ 2 }, { dtype = "i64" }):exp_() end)
    assert.same({ 1, 1, 1 }, t:totable())
  end)

  it("leave alone what a gradient goes through", function()
    local w, one = nn.Parameter({ 2 }, 1), gp.ones { 2 }
    fails_with("add_: a gradient may be asked for", function() one:add_(w) end)
    fails_with("mul_: a gradient may be asked for", function() w:mul_(2) end)
    fails_with("came from ops whose gradient", function() (w * 2):zero_() end)
    gp.no_grad(function() w:mul_(2):add_(one) end)
    assert.same({ 3, 3 }, w:totable())
    assert.same({ 1, 1 }, one:totable())
  end)
end)

describe("while a layer is traced", function()
  local function run(forward)
    local Layer = nn.class "Layer"
    function Layer:init() self.seen, self.w = nn.Buffer({ 2 }, 1), nn.Parameter({ 2 }, 1) end
    Layer.forward = forward
    local model = nn.Sequential { Layer() }
    local pipe <close> = gp.pipeline(model)
    pipe:forward(gp.ones { 1, 2 })
    return pipe:state_dict()["1.seen"]:totable()
  end

  it("Buffers are written, as with copy_", function()
    assert.same({ 6, 6 }, run(function(self, x)
      self.seen:add_(x:sum(1)):mul_(3)
      return x
    end))
    assert.same({ 0, 0 }, run(function(self, x) return self.seen:zero_() and x end))
  end)

  it("values and parameters are not", function()
    for _, forward in ipairs {
      function(_, x) return x:add_(1) end,
      function(self, x) return x + self.w:mul_(2) end,
      function(_, x) return x:masked_fill_(x:gt(0), 1) end,
      function(_, x) return x:zero_() end,
    } do
      fails_with("_: only an nn.Buffer can be written", function() run(forward) end)
    end
  end)
end)
