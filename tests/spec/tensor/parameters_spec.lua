-- tests/spec/tensor/parameters_spec.lua - every method of tensors, on a parameter, a buffer and a
-- value inside a traced forward, gives what it gives eagerly, or an error that says why not.

local gp = require "gpipe"
local core = require "gpipe.core"

local nn = gp.nn

local START = gp.tensor { { 4, 1, 0.5 }, { 1, 3, 0.25 }, { 0.5, 0.25, 2 } }
local IDS = gp.tensor({ { 1, 2, 3 }, { 2, 3, 1 }, { 3, 1, 2 } }, { dtype = "i64" })
local LIST = gp.tensor({ 2, 1, 3 }, { dtype = "i64" })
local MASK = IDS:gt(1)

-- Arguments for methods: each method gets the first of these that it takes eagerly.
local ARGUMENTS = {
  {}, { 1 }, { 2 }, { 1, 2 }, { { 1, 2 } }, { START }, { 0.5, 2 }, { 1, LIST }, { 1, IDS }, { MASK },
  { MASK, 2 }, { 1, IDS, START }, { 1, LIST, START }, { 1, 1, 2 }, { 1, LIST, 2 }, { { 9 } },
  { { 3, 3 } }, { { 1, 1, 1, 1 } }, { START, START }, { START[1] }, { 1, START }, { "f64" },
  { 1, { 3, 1 } }, { { 3, 3, 3 } }, { { { 1, 2 }, 2 } }, { IDS },
  { IDS, 1 }, { START[1], START[1] }, { START, START[1] }, { START[1], 1, 2 }, { MASK, START },
  { 1, IDS, START, "sum" }, { { { 1, 3 }, { 2, 1 } }, 5 }, { { 3, 3 }, 2 },
}

-- Texts of errors about what no forward can do.
local REFUSED = {
  "only an nn.Buffer can be written", "data-dependent control flow", "nothing is drawn in place",
}

-- Methods about the object rather than its values, or not for matrices.
local OTHER = {
  addbmm = true, baddbmm = true, bitwise_and = true, bitwise_left_shift = true,
  bitwise_not = true, bitwise_or = true, bitwise_right_shift = true, bitwise_xor = true, bmm = true,
  free = true, backward = true, bincount = true,
  dot = true, is_buffer = true, is_frozen = true, item = true, mv = true, outer = true,
  requires_grad_ = true,
  set_frozen = true, value = true, vdot = true,
}

-- Computes one number from all that a method returned, in which every element has a different
-- weight.
local function weigh(y)
  if type(y) == "number" then return y end
  if type(y) == "table" then
    local sum = 0
    for _, part in ipairs(y) do sum = weigh(part) + sum end
    return sum
  end
  if type(y) ~= "userdata" then return 0 end
  y = y:to("f32"):reshape(-1)
  return (y * gp.arange(1, y.shape[1])):sum()
end

local function arguments_of(method)
  for _, args in ipairs(ARGUMENTS) do
    local good, y = pcall(method, START:clone(), table.unpack(args))
    if good then return args, y end
  end
end

local HELD = {
  parameter = function() return nn.Parameter({ 3, 3 }, 0) end,
  buffer = function() return nn.Buffer({ 3, 3 }, 0) end,
  value = function() end,
}

-- Returns a pipeline's output where its one layer calls the method on what it holds, or on its
-- input.
local function in_pipeline(kind, method, args)
  local Layer = nn.class "Layer"
  function Layer:init() self.held = HELD[kind]() end
  function Layer:forward(x)
    return x * 0 + weigh(method(self.held or x, table.unpack(args)))
  end
  local layer = Layer()
  if layer.held then layer:load_state_dict { held = START } end
  local pipe <close> = gp.pipeline(nn.Sequential { layer }, { balance = { 1 } })
  return pipe:forward(START)
end

local function is_refusal(text)
  for _, words in ipairs(REFUSED) do
    if text:find(words, 1, true) then return true end
  end
  return text:find "the output does not depend on the input" ~= nil
end

describe("while a layer is traced, methods give what they give eagerly:", function()
  for name, method in pairs(core.methods) do
    local args, y = arguments_of(method)
    if not OTHER[name] then
      it(name, function()
        assert.is_truthy(args, "no arguments in this file are taken")
        for kind in pairs(HELD) do
          local good, got = pcall(in_pipeline, kind, method, args)
          if good then
            local near = got:allclose(START * 0 + weigh(y), { rtol = 1e-5, equal_nan = true })
            assert.is_true(near, kind)
          else
            assert.is_true(is_refusal(got), kind .. ": " .. got)
          end
        end
      end)
    end
  end
end)

describe("detach in a forward", function()
  it("stops the gradient, and nothing else", function()
    local Rounded = nn.class "Rounded"
    function Rounded:init()
      self.w = nn.Parameter({ 3 }, 1)
      self.v = nn.Parameter({ 3 }, 2)
    end
    function Rounded:forward(x)
      local y = x * self.w
      return y + (y:round() - y):detach() + self.v:detach() * x + (self.v * 0.5) * x
    end
    local x, model = gp.randn({ 4, 3 }, { seed = 1 }), Rounded()
    local loss = nn.MSELoss()(model(x), x)
    loss:backward()
    local w, v = model.w.grad, model.v.grad
    local pipe <close> = gp.pipeline(nn.Sequential { Rounded(), nn.Identity() }, {
      balance = { 1, 1 }, devices = { "cpu:0", "cpu:0" }, chunks = 2, loss = nn.MSELoss(),
    })
    assert.is_true(math.abs(pipe:step(x, x) - loss:item()) < 1e-5)
    local held, near = pipe:parameters(), { rtol = 1e-5, atol = 1e-6 }
    assert.is_true(held[1].grad:allclose(w, near) and held[2].grad:allclose(v, near))
  end)
end)

describe("a parameter in a forward", function()
  it("can be masked, padded and used by the _like constructors", function()
    local Masked = nn.class "Masked"
    function Masked:init() self.w = nn.Parameter({ 3, 3 }, 1) end
    function Masked:forward(x)
      local like = gp.zeros_like(self.w) + gp.full_like(self.w, 2) * gp.ones_like(self.w)
      return x:matmul(self.w:tril() + like + 0 * gp.randn_like(self.w))
    end
    local pipe <close> = gp.pipeline(nn.Sequential { Masked() }, { balance = { 1 } })
    local got = pipe:forward(gp.ones { 1, 3 })
    assert.are.same({ { 9, 8, 7 } }, got:totable())
  end)

  it("weights the positive targets of a loss", function()
    local Scored = nn.class "Scored"
    function Scored:init() self.w = nn.Parameter({ 3 }, 2) end
    function Scored:forward(x)
      return x * 0 + nn.BCEWithLogitsLoss { pos_weight = self.w }(x, MASK:to "f32")
    end
    local pipe <close> = gp.pipeline(nn.Sequential { Scored() }, { balance = { 1 } })
    local want = nn.BCEWithLogitsLoss { pos_weight = { 2, 2, 2 } }(START, MASK:to "f32")
    assert.is_true(pipe:forward(START):allclose(START * 0 + want))
  end)
end)
