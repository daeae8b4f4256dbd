-- tests/support/extremes.lua - losses and layers at the limits of a dtype, on any device.

local assert = require "luassert"
local gp = require "gpipe"

local nn = gp.nn

local extremes = {}

-- ---- cross entropy ----------------------------------------------------------------------------

-- A model that returns its only parameter.
local Constant = nn.class "Constant"
function Constant:init(value)
  self.value = nn.Parameter(value.shape, value, { dtype = value.dtype })
end
function Constant:forward(x) return self.value + x * 0 end

-- Returns loss and gradient of the mean cross entropy of logits [R, V] for classes 0, 1, ...
local function losses_of(case, logits)
  local rows = logits.shape[1]
  local options = { devices = { case.device }, precision = case.precision, chunks = 1 }
  options.loss = nn.CrossEntropyLoss { label_smoothing = case.smoothing or 0 }
  local pipe <close> = gp.pipeline(nn.Sequential { Constant(logits) }, options)
  local ids = gp.arange(0, rows - 1, { dtype = "i64" })
  local loss = pipe:step(gp.ones({ rows, 1 }, { dtype = logits.dtype }), ids)
  return loss, pipe:parameters()[1].grad:to("cpu"):clone()
end

local ROWS = 3

-- Lists whole numbers from 0 to 7, so that adding a whole offset is exact.
local function steps(width)
  local list = {}
  for i = 1, ROWS * width do list[i] = (i * i + i // width) % 8 end
  return gp.tensor(list):reshape { ROWS, width }
end

-- Calls f with a case of every width, without and with smoothing.
local function each_case(device, widths, bound, f)
  for _, width in ipairs(widths) do
    for _, smoothing in ipairs { 0, 0.1 } do
      f { device = device, width = width, smoothing = smoothing, bound = bound }
    end
  end
end

local OFFSETS = { 1e3, -1e7 }

-- Checks that an offset common to all logits changes no bit.
local function check_offsets(case)
  local logits = steps(case.width)
  local loss, grad = losses_of(case, logits)
  for _, offset in ipairs(OFFSETS) do
    local other, its = losses_of(case, logits + offset)
    assert.are.equal(loss, other)
    assert(gp.equal(grad, its),
      ("%d classes, offset %g: other gradient"):format(case.width, offset))
  end
end

--- Check that an offset common to all logits changes no bit, for rows of these widths.
function extremes.check_offsets(device, widths)
  each_case(device, widths, nil, check_offsets)
end

--- Check loss and gradient where all logits are one of these values, for rows of these widths.
function extremes.check_all_equal(device, widths, bound, values)
  each_case(device, widths, bound, function(case)
    for _, value in ipairs(values) do extremes.check_equal(case, value) end
  end)
end

--- Check loss and gradient where all logits are one value: log V, and 1 / V off the class.
function extremes.check_equal(case, value)
  local smoothing, width = case.smoothing or 0, case.width
  local loss, grad = losses_of(case, gp.full({ ROWS, width }, value))
  local off = (1 - smoothing) / width / ROWS
  assert.near(math.log(width), loss, case.bound * math.log(width))
  for r, row in ipairs(grad:totable()) do
    for j, g in ipairs(row) do
      assert.near(j == r and off - (1 - smoothing) / ROWS or off, g, case.bound)
    end
  end
end

-- ---- layer norm --------------------------------------------------------------------------------

-- Rows of numbers between -1 and 1: of both signs, mostly of one sign, only some not 0; all alike.
local ROWS_OF = {
  function(i) return i % 2 == 0 and 1 or -1 end,
  function(i) return i % 3 == 2 and -0.25 or 1 end,
  function(i) return (i % 7 - 3) / 4 end,
  function() return 1 end,
}

-- Returns the normalised row, in doubles, which hold its values.
local function normalised(row)
  local mean, variance, out = 0.0, 0.0, {}
  for _, v in ipairs(row) do mean = mean + v / #row end
  for _, v in ipairs(row) do variance = variance + (v - mean) ^ 2 / #row end
  for i, v in ipairs(row) do out[i] = variance > 1e-20 and (v - mean) / math.sqrt(variance) or 0 end
  return out
end

--- Check that layer norm gives the same for rows of numbers up to `largest` as for rows divided by
--- it. Rows whose numbers are all alike are included where sums overflow, because smaller sums are
--- rounded. Gradients are checked where differences do not overflow.
--- case: {device, width, bound, precision, dtype, most}
function extremes.check_normalised(case, largest)
  local list, want = {}, {}
  for r = 1, largest == case.most and 4 or 3 do
    local f = ROWS_OF[r]
    list[r], want[r] = {}, {}
    for i = 1, case.width do list[r][i], want[r][i] = f(i) * largest, f(i) end
    want[r] = normalised(want[r])
  end
  local x = gp.tensor(list, { dtype = case.dtype })
  local layer = nn.LayerNorm(case.width, { dtype = case.dtype })
  local options = { devices = { case.device }, precision = case.precision }
  local pipe <close> = gp.pipeline(nn.Sequential { layer }, options)
  local got = pipe:forward(x):to("cpu")
  for r, row in ipairs(got:totable()) do
    for i, y in ipairs(row) do
      local bound = case.bound * (1 + math.abs(want[r][i]))
      assert.near(want[r][i], y, bound, ("row %d, element %d"):format(r, i))
    end
  end
  if largest == case.most then return end
  pipe:backward(got)
  for _, p in ipairs(pipe:parameters()) do
    local sum = p.grad:sum():item()
    assert(sum - sum == 0, p.name .. ": the gradient is not finite")
  end
end

-- ---- attention ---------------------------------------------------------------------------------

-- Attention on three parameters.
local Attend = nn.class "Attend"
function Attend:init(parts)
  for name, value in pairs(parts) do self[name] = nn.Parameter(value.shape, value) end
end
function Attend:forward(x)
  return gp.attention(self.q, self.k, self.v, { scale = 1 }):reshape { 1, -1 } + x * 0
end

local function attention_gradients(device, parts)
  local pipe <close> = gp.pipeline(nn.Sequential { Attend(parts) }, { devices = { device } })
  local y, grads = pipe:forward(gp.zeros { 1, 1 }), {}
  pipe:backward(gp.randn(y.shape, { seed = 9 }))
  for _, p in ipairs(pipe:parameters()) do grads[p.name:match "%w+$"] = p.grad:to("cpu"):clone() end
  return grads
end

local T, D = 40, 16

-- Makes query i score `score` with key i, and 0 with the others.
local function apart(score)
  local diagonal = gp.arange(1, T):reshape({ T, 1 }):eq(gp.arange(1, T))
  local k = gp.where(diagonal, 1.0, 0.0):reshape { 1, 1, T, T }
  return { q = k * score, k = k, v = gp.randn({ 1, 1, T, T }, { seed = 3 }) * 10 }
end

--- Check that the scores have no gradient where each query attends to only one key.
function extremes.check_saturated(device)
  local grads = attention_gradients(device, apart(1e4))
  for _, name in ipairs { "q", "k" } do
    assert(gp.equal(gp.zeros { 1, 1, T, T }, grads[name]), name .. " has a gradient")
  end
end

--- Check that an offset of all scores, made by a large common part of q and k, changes the
--- gradients of v little. The numbers are whole, so the scores are exact.
function extremes.check_large_scores(device, bound)
  local q = gp.arange(1, T * D):reshape { 1, 1, T, D }
  q = gp.where((q - (q / 3):to("i64"):to("f32") * 3):eq(0), 1.0, 0.0)
  local one, v = gp.ones { 1, 1, T, 1 }, gp.randn({ 1, 1, T, D }, { seed = 3 })
  local function scored(offset)
    local function with(x, more) return gp.concat({ x, more }, 4) end
    return { q = with(q, one), k = with(q, one * offset), v = with(v, one) }
  end
  local want = attention_gradients(device, scored(0)).v
  local got = attention_gradients(device, scored(2 ^ 20)).v
  for i, row in ipairs((got - want):reshape({ T, D + 1 }):totable()) do
    for _, difference in ipairs(row) do assert.near(0, difference, bound, "key " .. i) end
  end
end

return extremes
