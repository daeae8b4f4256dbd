-- tests/spec/cuda/long_lines_spec.lua - lines of more than 4,096 elements on GPUs: they are sorted by
-- radix, or cut into tiles, and no work is quadratic in their length.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"

local on_gpu = gpu.spec(it)
local DEVICE = "cuda:0"
local DTYPES = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8" }

-- Few values, so that many are equal, with zeros of both signs, infinities and NaN among floats.
local function awkward(shape, dtype)
  local x = (gp.randn(shape) * 20):round()
  if dtype == "u8" then return x:abs():to "u8" end
  if dtype == "i64" or dtype == "i32" then return x:to(dtype) end
  local at = gp.arange(0, x:numel() - 1):reshape(shape)
  x = gp.where((at % 97):eq(5), -0.0, x)
  x = gp.where((at % 501):eq(7), 0 / 0, x)
  x = gp.where((at % 503):eq(9), math.huge, x)
  return gp.where((at % 509):eq(11), -math.huge, x):to(dtype)
end

local function check_sort(shape, dim, dtype)
  local x = awkward(shape, dtype)
  for _, descending in ipairs { false, true } do
    local values, positions = x:sort(dim, { descending = descending })
    local there, at = x:to(DEVICE):sort(dim, { descending = descending })
    local what = ("%s, %s"):format(dtype, descending)
    assert.is_true(at:to("cpu"):eq(positions):all():item(), what)
    assert.are.equal(tostring(values), tostring(there:to "cpu"), what)
    local back = there:to "cpu"
    local same = back:eq(values):logical_or(back:ne(back):logical_and(values:ne(values)))
    assert.is_true(same:all():item(), what)
  end
end

describe("A long line on a GPU", function()
  on_gpu("is sorted as on the CPU, stable, with NaN last", function()
    gp.seed(5)
    for _, dtype in ipairs(DTYPES) do check_sort({ 5001 }, 1, dtype) end
  end)

  on_gpu("is sorted beside others, in any dimension", function()
    gp.seed(6)
    for _, dtype in ipairs { "f32", "i64" } do
      check_sort({ 3, 4099 }, 2, dtype)
      check_sort({ 2, 4099, 3 }, 2, dtype)
    end
  end)

  on_gpu("gets the sums by position that a short one gets, in the same order", function()
    gp.seed(7)
    local source = gp.randn { 2, 5003 }
    local positions = (gp.rand { 2, 5003 } * 300):floor():to "i64" + 1
    local zeros = gp.zeros { 2, 300 }
    local got = zeros:to(DEVICE):scatter_add(2, positions:to(DEVICE), source:to(DEVICE)):to "cpu"
    local want = zeros:to "f64":scatter_add(2, positions, source:to "f64")
    assert.is_true((got:to "f64" - want):abs():max():item() < 1e-4)
  end)

  on_gpu("has the gradient of its product where an element is zero", function()
    local x = gp.ones { 2, 5003 }
    for _, zeros in ipairs { {}, { 4100 }, { 7, 4999 } } do
      local at = x:clone()
      for _, i in ipairs(zeros) do at[{ 1, i }] = 0 end
      local leaf = (at * 1.0):to(DEVICE):requires_grad_(true)
      leaf:prod(2):sum():backward()
      local grad = leaf.grad:to "cpu"
      assert.are.equal(#zeros == 0 and 5003 or #zeros == 1 and 1 or 0, grad[1]:sum():item())
      assert.are.equal(5003, grad[2]:sum():item())
    end
  end)

  on_gpu("is summed up as on the CPU", function()
    gp.seed(8)
    local x = gp.rand { 3, 9001 }
    for _, dim in ipairs { 1, 2 } do
      local got = x:to(DEVICE):cumsum(dim):to "cpu"
      local want = x:to "f64":cumsum(dim)
      assert.is_true(((got:to "f64" - want) / (want + 1)):abs():max():item() < 1e-6)
    end
  end)
end)
