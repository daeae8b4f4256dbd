-- tests/spec/ops/attention_spec.lua - gp.attention as users' layers call it: heads, padding,
-- pipelines.
--
-- The op table tests what it computes (table/attention.lua); this spec tests what scripts rely on
-- in addition.

local gp = require "gpipe"
local expect = require "tests.support.expect"
local gpu = require "tests.support.gpu"

local nn = gp.nn
local on_gpu = gpu.spec(it)
local B, T, C, HEADS, GROUPS = 3, 6, 16, 4, 2

-- Self-attention over rows [B, T, C] with a padding mask [B, T] that comes with the batch.
local Padded = nn.class("Padded")
function Padded:init(o)
  self.q, self.proj = nn.Linear(C, C), nn.Linear(C, C)
  self.k, self.v = nn.Linear(C, C * GROUPS // HEADS), nn.Linear(C, C * GROUPS // HEADS)
  self.options = function(mask) return { mask = mask, causal = o.causal, dropout = o.dropout } end
end

local function split(x, heads)
  local b, t, c = table.unpack(x.shape)
  return x:reshape({ b, t, heads, c // heads }):permute { 1, 3, 2, 4 }
end

function Padded:forward(x, seen)
  local b, t = table.unpack(x.shape)
  local mask = seen:reshape { b, 1, 1, t }
  local q, k, v = split(self.q(x), HEADS), split(self.k(x), GROUPS), split(self.v(x), GROUPS)
  local y = gp.attention(q, k, v, self.options(mask))
  return self.proj(y:permute({ 1, 3, 2, 4 }):reshape { b, t, C }), seen
end

-- Returns the first of two values.
local First = nn.class("First")
function First.forward(_, x, _) return x end

local LENGTHS = { 6, 3, 0 } -- the last row has no key at all

local function batch()
  local lengths = gp.tensor(LENGTHS):reshape { B, 1 }
  return gp.randn({ B, T, C }, { seed = 4 }), gp.arange(1, T):reshape({ 1, T }):le(lengths)
end

local function run(o, opts)
  gp.seed(9)
  local model = nn.Sequential { Padded(o), Padded(o), First() }
  opts.chunks, opts.seed, opts.loss = 2, 3, nn.MSELoss()
  local pipe <close> = gp.pipeline(model, opts)
  local x, seen = batch()
  local loss, grads = pipe:step({ x, seen }, gp.ones { B, T, C }), {}
  for i, p in ipairs(pipe:parameters()) do grads[i] = p.grad:to("cpu"):clone() end
  return loss, grads
end

local function check_same(o, ...)
  local loss, grads = run(o, (...))
  for _, opts in ipairs { select(2, ...) } do
    local other, list = run(o, opts)
    assert.are.equal(loss, other)
    for i, grad in ipairs(grads) do assert(gp.equal(grad, list[i]), "gradient " .. i) end
  end
  return loss, grads
end

describe("gp.attention", function()
  it("gives the same bits on one stage and on three, kept or recomputed", function()
    for _, o in ipairs { { causal = true }, { dropout = 0.4 } } do
      local loss = check_same(o, { devices = { "cpu:0" } },
        { balance = { 1, 1, 1 }, devices = { "cpu:0", "cpu:0", "cpu:0" }, checkpoint = "always" })
      assert(loss == loss and loss < math.huge)
    end
  end)

  on_gpu("gives the CPU's values on GPUs, within tolerances", function()
    local want = run({ causal = true }, { devices = { "cpu:0" } })
    for _, o in ipairs { { causal = true }, { dropout = 0.4 } } do
      local loss = check_same(o, { devices = { "cuda:0" } },
        { balance = { 1, 2 }, devices = { "cuda:0", "cuda:0" }, checkpoint = "always" })
      if o.causal then assert.near(want, loss, 1e-5) end
    end
  end)

  it("does not read hidden keys", function()
    local q, k, v = gp.randn { 1, 2, 3, 4 }, gp.randn { 1, 2, 5, 4 }, gp.randn { 1, 2, 5, 4 }
    local mask = gp.tensor({ true, true, false, true, false }):reshape { 1, 1, 1, 5 }
    local y = gp.attention(q, k, v, { mask = mask })
    local shown = gp.where(mask:reshape { 1, 1, 5, 1 }, v, 1e6)
    assert(gp.equal(y, gp.attention(q, k, shown, { mask = mask })))
    local bias = gp.where(mask, gp.zeros { 1, 1, 1, 5 }, -1e30)
    assert(gp.equal(y, gp.attention(q, k, v, { mask = bias })))
  end)

  local function takes_single(device)
    for _, dtype in ipairs { "bf16", "f16" } do
      local x = gp.randn({ 1, 2, 9, 8 }, { dtype = dtype }):to(device)
      local bias = gp.randn({ 1, 1, 9, 9 }, { dtype = dtype })
      local same, single = bias:to(device), bias:to("f32"):to(device)
      assert(gp.equal(gp.attention(x, x, x, { mask = same }),
        gp.attention(x, x, x, { mask = single })))
    end
  end

  it("takes f32 masks of numbers beside halves", function() takes_single("cpu") end)
  on_gpu("takes f32 masks of numbers beside halves on GPUs", function() takes_single("cuda:0") end)

  it("gives zeros to queries without a visible key", function()
    local x, none = gp.randn { 2, 1, 3, 4 }, gp.zeros({ 1, 1, 1, 3 }, { dtype = "bool" })
    assert(gp.equal(gp.zeros { 2, 1, 3, 4 }, gp.attention(x, x, x, { mask = none })))
    assert(gp.equal(gp.zeros { 2, 1, 3, 4 },
      gp.attention(x, x, x, { mask = gp.full({ 1, 1, 1, 3 }, -math.huge) })))
  end)

  it("refuses unknown options and invalid masks by name", function()
    local x = gp.randn { 1, 1, 2, 2 }
    expect.fails_with("gp.attention: unknown option 'casual' (did you mean 'causal'?)",
      gp.attention, x, x, x,
      { casual = true })
    expect.fails_with("gp.attention: option 'mask' is true, expected a tensor", gp.attention, x, x,
      x, { mask = true })
    expect.fails_with("gp.attention: option 'scale' is 0, expected a number > 0", gp.attention, x,
      x, x, { scale = 0 })
  end)
end)

describe("gp.attention with values of another width or with a bias", function()
  local OPTIONS = { dtype = "f64" }
  local q, k, v = gp.randn({ 2, 4, 3, 2 }, OPTIONS), gp.randn({ 2, 2, 5, 2 }, OPTIONS),
    gp.randn({ 2, 2, 5, 2 }, OPTIONS)
  local seen = gp.tensor { { 1, 0, 1, 1, 1 }, { 0, 0, 0, 0, 0 }, { 1, 1, 0, 1, 0 } }:gt(0)
    :reshape { 1, 1, 3, 5 }
  local numbers = gp.where(seen, gp.randn({ 1, 1, 3, 5 }, OPTIONS), -math.huge)

  it("computes what the fused op computes", function()
    local more = gp.concat({ v, v * 2, v:exp() }, 4)
    for _, o in ipairs { {}, { causal = true }, { mask = seen }, { mask = numbers, scale = 2 },
      { mask = seen, causal = true } } do
      local want = gp.attention(q, k, v, o)
      local wide = gp.attention(q, k, more, o)
      assert.same({ 2, 4, 3, 6 }, wide.shape)
      assert.is_true((wide:narrow(4, 1, 2) - want):abs():max():item() < 1e-12)
      o.bias = gp.zeros({ 3, 5 }, OPTIONS)
      assert.is_true((gp.attention(q, k, v, o) - want):abs():max():item() < 1e-12)
    end
  end)

  it("has the gradients of all, of the bias too", function()
    for _, o in ipairs { {}, { mask = seen, causal = true }, { mask = numbers } } do
      local good, report = gp.gradcheck(function(a, b, c, bias)
        return gp.attention(a, b, c, { mask = o.mask, causal = o.causal, bias = bias })
      end, { q, k, gp.concat({ v, v:exp() }, 4), gp.randn({ 4, 3, 5 }, OPTIONS) })
      assert(good, report)
    end
  end)

  it("refuses shapes that do not fit", function()
    local bias = gp.zeros({ 3, 5 }, OPTIONS)
    for _, case in ipairs {
      { q, k:narrow(4, 1, 1), v, bias, "key is 2x2x5x1, expected 2xG (a divisor of 4)x?x2" },
      { q, k, v:narrow(3, 1, 4), bias, "value is 2x2x4x2, expected 2x2x5x?" },
      { q:select(1, 1), k, v, bias, "query is 4x3x2, expected ?x?x?x?" },
      { q, k, v, gp.zeros({ 3, 2, 4, 3, 5 }, OPTIONS), "bias and mask is 3x2x4x3x5" },
    } do
      expect.fails_with(case[5], gp.attention, case[1], case[2], case[3], { bias = case[4] })
    end
  end)
end)
