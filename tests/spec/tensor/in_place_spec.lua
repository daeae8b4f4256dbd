-- tests/spec/tensor/in_place_spec.lua - methods that write: add_, clamp_, fill_, masked_fill_.

local gp = require "gpipe"
local core = require "gpipe.core"
local expect = require "tests.support.expect"

local nn = gp.nn
local fails_with = expect.fails_with

describe("methods that end in _", function()
  it("write the result of the method without it, and return the tensor", function()
    local x = gp.tensor { 0.5, -1.25, 3 }
    for _, row in ipairs(core.contracts()) do
      if row.in_place then
        local others = {}
        for i = 2, #row.operands do others[i - 1] = 2 end
        if row.name == "clamp" then others = { 0 } end
        local t, name = x:clone(), row.name
        local want = t[name](t, table.unpack(others))
        assert.equal(t, t[name .. "_"](t, table.unpack(others)), name)
        assert.is_true(gp.equal(want, t), name)
      end
    end
  end)

  it("take attributes, dtypes and operands that broadcast", function()
    assert.same({ -1, 1 }, gp.tensor({ -3, 2 }):clamp_({ min = -1, max = 1 }):totable())
    fails_with("clamp: neither min nor max is given", function() gp.ones({ 2 }):clamp() end)
    fails_with("clamp: neither min nor max is given", function() gp.ones({ 2 }):clamp_ {} end)
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
    fails_with("masked_fill: the mask is f32, expected bool", function() t:masked_fill(t, 1) end)
    fails_with("masked_fill: mask is 3", function() t:masked_fill(3, 1) end)
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

  it("write parameters only where no gradient is recorded", function()
    local w, one = nn.Parameter({ 2 }, 1), gp.ones { 2 }
    gp.no_grad(function() w:mul_(2):add_(one) end)
    assert.same({ 3, 3 }, w:totable())
    assert.same({ 1, 1 }, one:totable())
  end)
end)

describe("while gradients are recorded,", function()
  local function leaf(list)
    local t = gp.tensor(list, { dtype = "f64" })
    t.requires_grad = true
    return t
  end

  -- Returns the gradients of x = {1, 2, 3} for the sum of what f returns.
  local function slopes(f)
    local x = leaf { 1, 2, 3 }
    f(x):sum():backward()
    return x.grad:totable()
  end

  local function zeros(...) return gp.zeros({ ... }, { dtype = "f64" }) end

  it("a computed value becomes part of a plain tensor", function()
    local ways = {
      ["t[i] = v"] = function(s, v) s[1] = v end,
      ["t[{..}] = v"] = function(s, v) s[{ 2, { 1, 3 } }] = v end,
      ["t[{..}] = v, one by one"] = function(s, v)
        for i = 1, 3 do s[{ 1, i }] = v[{ i }] end
      end,
      ["t[mask] = v"] = function(s, v)
        s[gp.tensor { { false, false, false }, { true, true, true } }] = v
      end,
      ["t[positions] = v"] = function(s, v)
        s[gp.tensor({ 2 }, { dtype = "i64" })] = v:reshape { 1, 3 }
      end,
      ["copy_"] = function(s, v) s:copy_(v:expand { 2, 3 } * 0.5) end,
      ["add_"] = function(s, v) s:add_(v:expand { 2, 3 } * 0.5) end,
    }
    for name, write in pairs(ways) do
      assert.same({ 3, 3, 3 }, slopes(function(x)
        local s = zeros(2, 3)
        write(s, x * 2)
        return s:sum() + x:sum()
      end), name)
    end
  end)

  it("overwritten elements lose their gradient, and the others keep it", function()
    assert.same({ 0, 4, 6 }, slopes(function(x)
      local c = x:clone()
      c[1] = 0
      return c * c
    end))
    assert.same({ 0, 0, 0 }, slopes(function(x)
      local c = x * 2
      c:zero_()
      return c + x * 0
    end))
    assert.same({ 2, 0, 2 }, slopes(function(x)
      local c = x * 2
      c:masked_fill_(x:eq(2), 5)
      return c
    end))
  end)

  it("chains of writes have the gradient of their result", function()
    assert.same({ 15, 27, 39 }, slopes(function(x) -- (2 x + 1) 3 x
      return (x * 2):add_(1):mul_(3):relu_() * x
    end))
    assert.same({ 14, 128, 546 }, slopes(function(x)
      local out, h = zeros(4, 3), x * 1
      for t = 1, 4 do
        h = h * x
        out[t] = h
      end
      return out
    end))
  end)

  it("a write keeps the values that an earlier op needs", function()
    local e = math.exp(1)
    local got = slopes(function(x)
      local y = x:exp()
      local z = y * y -- needs y before the write
      y:add_(1)
      return y + z
    end)
    assert.is_true(math.abs(got[1] - (e + 2 * e * e)) < 1e-9)
  end)

  it("a write is refused where views of the memory would keep the old value", function()
    local x, s = leaf { 1, 2, 3 }, zeros(2, 3)
    local row = s[2]
    fails_with("other tensors are views of this memory", function() s[1] = x * 2 end)
    fails_with("other tensors are views of this memory", function() row:copy_(x * 2) end)
    assert.same({ 0, 0, 0 }, row:totable())
    row = nil -- luacheck: ignore 311
    s[1] = x * 2
    assert.same({ { 2, 4, 6 }, { 0, 0, 0 } }, s:totable())
  end)

  it("a write is refused for a tensor that requires a gradient itself", function()
    local x = leaf { 1, 2, 3 }
    fails_with("add_: the tensor requires a gradient", function() x:add_(1) end)
    fails_with("the tensor requires a gradient", function() x[1] = 0 end)
  end)

  it("a write is not recorded under gp.no_grad", function()
    local x = leaf { 1, 2, 3 }
    local y = x * 2
    gp.no_grad(function() y:add_(x) end)
    assert.same({ 3, 6, 9 }, y:totable())
    y:sum():backward()
    assert.same({ 2, 2, 2 }, x.grad:totable())
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

  it("buffers can be written, as with copy_", function()
    assert.same({ 6, 6 }, run(function(self, x)
      self.seen:add_(x:sum(1)):mul_(3)
      return x
    end))
    assert.same({ 0, 0 }, run(function(self, x) return self.seen:zero_() and x end))
  end)

  it("values and parameters cannot be written", function()
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
