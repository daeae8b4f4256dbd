-- tests/spec/cuda/attention_rounding_spec.lua - the error of attention's gradients in bf16 is
-- rounding and nothing else.
--
-- The same steps run in f64, with a rounding to bf16 where our own kernels keep halves:
-- probabilities before they meet values, outputs (from which the backward pass makes delta =
-- rowsum(do * o)), gradients of scores, and results. Large scores make most queries attend to one
-- key, where a gradient of a score is a small difference: in that case gradients are farthest from
-- f64.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local nn = gp.nn

local on_gpu = gpu.spec(it)

local HEADS, T, WIDTH = 4, 70, 60 -- 60 is no multiple of 8, so our own kernels run
local SCALE = 1 / math.sqrt(WIDTH)
local HIDDEN = -1e30

local function halves(t) return t:to "bf16":to "f64" end
local function draw(seed, size)
  return halves(gp.randn({ 1, HEADS, T, WIDTH }, { seed = seed, dtype = "f64" }) * size)
end
local function norm(t) return math.sqrt((t * t):sum():item()) end

-- Query i sees key i, and about a tenth of the keys before it.
local function draw_mask()
  local rows, drawn = {}, gp.rand({ T, T }, { seed = 9 }):totable()
  for i = 1, T do
    rows[i] = {}
    for j = 1, T do rows[i][j] = i == j or (j < i and drawn[i][j] < 0.1) end
  end
  return gp.tensor({ { rows } }, { dtype = "bool" })
end

local function inputs_of(size)
  return {
    q = draw(1, size), k = draw(2, size), v = draw(3, 1), d_out = draw(4, 1), mask = draw_mask(),
  }
end

-- ---- in f64 ------------------------------------------------------------------------------------

-- Returns the gradients of q, k and v. round: applied to what the kernels keep in halves.
local function model_of(x, round, exact_delta)
  local scores = gp.where(x.mask, x.q:matmul(x.k:transpose(3, 4)) * SCALE,
    gp.full({ 1 }, HIDDEN, { dtype = "f64" }))
  local weights = (scores - scores:max(4, { keepdim = true })):exp()
  local sum = weights:sum(4, { keepdim = true })
  local p, out = weights / sum, round(weights):matmul(x.v) / sum
  local dp = x.d_out:matmul(x.v:transpose(3, 4))
  local delta = exact_delta and (p * dp):sum(4, { keepdim = true })
    or (x.d_out * round(out)):sum(4, { keepdim = true })
  local ds = round(p * (dp - delta))
  return {
    round(ds:matmul(x.k) * SCALE), round(ds:transpose(3, 4):matmul(x.q) * SCALE),
    round(round(p):transpose(3, 4):matmul(x.d_out)),
  }
end

-- ---- in the kernels ----------------------------------------------------------------------------

local Attend = nn.class("Attend")
function Attend:init(x)
  self.mask = x.mask
  for _, name in ipairs { "q", "k", "v" } do
    self[name] = nn.Parameter(x[name].shape, x[name]:to "f32")
  end
end

function Attend:forward(one)
  return gp.attention(self.q * one, self.k * one, self.v * one, { mask = self.mask })
end

local function kernels_of(x)
  local layer = Attend(x)
  local pipe <close> = gp.pipeline(nn.Sequential { layer }, {
    devices = { "cuda:0" }, precision = "bf16",
    loss = function(out, wanted) return (out * wanted:to(out.dtype)):sum(), 1 end,
  })
  pipe:step(gp.ones { 1, 1, 1, 1 }, x.d_out:to "f32")
  local grads = {}
  for i, name in ipairs { "q", "k", "v" } do
    grads[i] = layer[name].grad:to "cpu":to "f64"
  end
  return grads
end

local function distances(got, want)
  local list = {}
  for i, grad in ipairs(got) do list[i] = norm(grad - want[i]) / norm(want[i]) end
  return list
end

describe("gradients of attention in bf16", function()
  on_gpu("are as far from f64 as the same roundings in f64 are", function()
    for _, size in ipairs { 1, 2, 4 } do
      local x = inputs_of(size)
      local want = model_of(x, function(t) return t end, true)
      local ours, model = distances(kernels_of(x), want), distances(model_of(x, halves), want)
      for i = 1, 3 do
        assert.is_true(ours[i] < 1.1 * model[i],
          ("x%d, gradient %d: %.2e from f64, the model %.2e"):format(size, i, ours[i], model[i]))
      end
    end
  end)

  it("lose most by the rounded outputs from which delta is made", function()
    local x = inputs_of(4)
    local want = model_of(x, function(t) return t end, true)
    local rounded = distances(model_of(x, halves), want)
    local exact = distances(model_of(x, halves, true), want)
    assert.is_true(rounded[1] > 2 * exact[1] and rounded[2] > 2 * exact[2])
  end)
end)
