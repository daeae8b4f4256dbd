-- tests/spec/nn/layers_spec.lua - each layer agrees with a reference written out in plain Lua.
--
-- The references work on nested tables with doubles and share no code with the runtime.
local gp = require "gpipe"
local nn = gp.nn

local TOLERANCE = 1e-5 -- f32 against double, values of order 1, sums of up to 48 terms

-- ---- comparing -------------------------------------------------------------------------------

local function near(want, have, path)
  path = path or "y"
  if type(want) == "table" then
    assert.are.equal(#want, #have, path)
    for i = 1, #want do near(want[i], have[i], path .. "[" .. i .. "]") end
  else
    assert(math.abs(want - have) <= TOLERANCE * (1 + math.abs(want)),
      ("%s is %.9g, expected %.9g"):format(path, have, want))
  end
end

-- Applies f to each vector of the last dimension.
local function map_rows(x, f)
  if type(x[1]) ~= "table" then return f(x) end
  local out = {}
  for i, row in ipairs(x) do out[i] = map_rows(row, f) end
  return out
end

local function map(x, f)
  if type(x) ~= "table" then return f(x) end
  local out = {}
  for i, element in ipairs(x) do out[i] = map(element, f) end
  return out
end

-- ---- references ------------------------------------------------------------------------------

-- w may be a Linear's weight as a table, b its bias or nil.
local function linear(x, w, b)
  return map_rows(x, function(row)
    local out = {}
    for o = 1, #w do
      local sum = b and b[o] or 0
      for i = 1, #row do sum = sum + row[i] * w[o][i] end
      out[o] = sum
    end
    return out
  end)
end

local function softmax_row(row)
  local top, sum, out = math.max(table.unpack(row)), 0, {}
  for i, v in ipairs(row) do out[i] = math.exp(v - top) sum = sum + out[i] end
  for i in ipairs(row) do out[i] = out[i] / sum end
  return out
end

-- erf by Simpson's rule: exact to 1e-12 for the arguments used here.
local function erf(x)
  local n, sum = 2000, 0
  local h = x / n
  for i = 0, n do
    local weight = (i == 0 or i == n) and 1 or (i % 2 == 1 and 4 or 2)
    sum = sum + weight * math.exp(-(i * h) ^ 2)
  end
  return 2 / math.sqrt(math.pi) * sum * h / 3
end

local function tanh(x) return 1 - 2 / (math.exp(2 * x) + 1) end
local function sigmoid(x) return 1 / (1 + math.exp(-x)) end

local function layer_norm(x, w, b, eps)
  return map_rows(x, function(row)
    local mean, variance, out = 0, 0, {}
    for _, v in ipairs(row) do mean = mean + v / #row end
    for _, v in ipairs(row) do variance = variance + (v - mean) ^ 2 / #row end
    for i, v in ipairs(row) do out[i] = (v - mean) / math.sqrt(variance + eps) * w[i] + b[i] end
    return out
  end)
end

-- Computes one head of causal attention of `size` columns: q, k, v are the columns before its own
-- in each block.
local function attend(out, qkv, size, q, k, v)
  for t = 1, #qkv do
    local scores = {}
    for s = 1, t do
      local dot = 0
      for c = 1, size do dot = dot + qkv[t][q + c] * qkv[s][k + c] end
      scores[s] = dot / math.sqrt(size)
    end
    local share = softmax_row(scores)
    for c = 1, size do
      local sum = 0
      for s = 1, t do sum = sum + share[s] * qkv[s][v + c] end
      out[t][q + c] = sum
    end
  end
end

local function attention(layer, x)
  local qkv = linear(x, layer.qkv.weight:totable(), layer.qkv.bias:totable())
  local out, size = {}, layer.dim // layer.heads
  for b = 1, #qkv do
    out[b] = {}
    for t = 1, #qkv[b] do out[b][t] = {} end
    for h = 0, layer.heads - 1 do
      local key = layer.dim + h * layer.kv_heads // layer.heads * size
      attend(out[b], qkv[b], size, h * size, key, key + layer.kv_heads * size)
    end
  end
  return linear(out, layer.proj.weight:totable(), layer.proj.bias:totable())
end

-- ---- the layers ------------------------------------------------------------------------------

describe("nn.Linear", function()
  it("multiplies by its weight [out, in] and adds its bias", function()
    local layer, x = nn.Linear(7, 5), gp.randn { 3, 2, 7 }
    assert.are.same({ 5, 7 }, layer.weight.shape)
    near(linear(x:totable(), layer.weight:totable(), layer.bias:totable()), layer(x):totable())
  end)

  it("has no bias if the option says so", function()
    local layer, x = nn.Linear(4, 3, { bias = false }), gp.randn { 2, 4 }
    assert.is_nil(layer.bias)
    near(linear(x:totable(), layer.weight:totable()), layer(x):totable())
  end)

  it("computes in f64 if the option says so", function()
    local layer = nn.Linear(4, 3, { dtype = "f64" })
    assert.are.equal("f64", layer(gp.randn({ 2, 4 }, { dtype = "f64" })).dtype)
  end)

  it("takes sizes that come from a division", function()
    assert.are.same({ 4, 3 }, nn.Linear(6 / 2, 8 / 2).weight.shape)
  end)
end)

describe("nn.Embedding", function()
  for _, dtype in ipairs { "i64", "i32", "u8" } do
    it("looks up ids of dtype " .. dtype .. ", counted from 0", function()
      local layer = nn.Embedding(5, 3)
      local y, w = layer(gp.tensor({ { 0, 4 }, { 2, 2 } }, { dtype = dtype })),
        layer.weight:totable()
      assert.are.same({ { w[1], w[5] }, { w[3], w[3] } }, y:totable())
    end)
  end
end)

describe("nn.LayerNorm", function()
  it("normalises the last dimension, scales and shifts", function()
    local layer, x = nn.LayerNorm(6, { eps = 1e-3 }), gp.randn { 2, 3, 6 }
    layer.weight = nn.Parameter({ 6 }, nn.init.normal())
    layer.bias = nn.Parameter({ 6 }, nn.init.normal())
    local want = layer_norm(x:totable(), layer.weight:totable(), layer.bias:totable(), 1e-3)
    near(want, layer(x):totable())
  end)
end)

describe("activations", function()
  local x = gp.tensor { { -3, -1, -0.1 }, { 0, 0.5, 4 } }
  local function gelu_tanh(v)
    return 0.5 * v * (1 + tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ^ 3)))
  end
  local cases = {
    { nn.ReLU(), function(v) return math.max(v, 0) end },
    { nn.SiLU(), function(v) return v * sigmoid(v) end },
    { nn.Tanh(), tanh },
    { nn.Sigmoid(), sigmoid },
    { nn.GELU(), function(v) return 0.5 * v * (1 + erf(v / math.sqrt(2))) end },
    { nn.GELU("tanh"), gelu_tanh },
  }
  for _, case in ipairs(cases) do
    it(tostring(case[1]) .. " matches its formula", function()
      near(map(x:totable(), case[2]), case[1](x):totable())
    end)
  end
end)

describe("nn.Softmax", function()
  it("sums to one along the last dimension by default", function()
    local x = gp.randn { 2, 3, 4 }
    near(map_rows(x:totable(), softmax_row), nn.Softmax()(x):totable())
  end)

  it("works along any dimension", function()
    local x = gp.randn { 3, 2 }
    local want = map_rows(x:transpose(1, 2):totable(), softmax_row)
    near(want, nn.Softmax(1)(x):transpose(1, 2):totable())
  end)
end)

describe("nn.CausalSelfAttention", function()
  it("attends to earlier positions and its own, head by head", function()
    local layer, x = nn.CausalSelfAttention(12, 3), gp.randn { 2, 5, 12 }
    near(attention(layer, x:totable()), layer(x):totable())
  end)

  it("holds qkv and proj", function()
    local layer = nn.CausalSelfAttention(8, 2, { bias = false })
    assert.are.same({ 24, 8 }, layer.qkv.weight.shape)
    assert.are.same({ 8, 8 }, layer.proj.weight.shape)
    assert.is_nil(layer.qkv.bias)
  end)

  it("shares keys and values among neighbouring heads", function()
    for _, groups in ipairs { 1, 2, 4 } do
      local layer, x = nn.CausalSelfAttention(12, 4, { kv_heads = groups }), gp.randn { 2, 5, 12 }
      assert.are.same({ 12 + 2 * 3 * groups, 12 }, layer.qkv.weight.shape)
      near(attention(layer, x:totable()), layer(x):totable())
    end
    local shown = tostring(nn.CausalSelfAttention(12, 4, { kv_heads = 2 }))
    assert.is_truthy(shown:find("CausalSelfAttention(12, 4 heads, 2 of keys)", 1, true), shown)
  end)

  it("drops weights only in training mode", function()
    local layer, x = nn.CausalSelfAttention(8, 2, { dropout = 0.9 }), gp.randn { 1, 6, 8 }
    assert.is_false(gp.equal(layer(x), layer(x)))
    layer:eval()
    near(attention(layer, x:totable()), layer(x):totable())
  end)
end)

describe("nn.Dropout", function()
  it("drops about the share p and scales up the others", function()
    local zeros, others = 0, {}
    for _, v in ipairs(nn.Dropout(0.25)(gp.ones { 4000 }):totable()) do
      if v == 0 then zeros = zeros + 1 else others[v] = true end
    end
    assert.near(1000, zeros, 120) -- four deviations of a binomial
    near(1 / 0.75, (next(others)))
    assert.is_nil(next(others, (next(others))))
  end)

  it("passes its input in evaluation mode and for p = 0", function()
    local x = gp.ones { 3 }
    assert.are.equal(x, nn.Dropout(0.9):eval()(x))
    assert.are.equal(x, nn.Dropout(0)(x))
  end)

  it("drops everything for p = 1", function()
    assert.are.same({ 0, 0 }, nn.Dropout(1)(gp.ones { 2 }):totable())
  end)
end)

describe("nn.Residual", function()
  it("adds the body's output to its input", function()
    local layer, x = nn.Residual(nn.Tanh()), gp.randn { 3, 2 }
    near(map(x:totable(), function(v) return v + tanh(v) end), layer(x):totable())
  end)
end)

describe("nn.Flatten", function()
  local x = gp.arange(1, 24):reshape { 2, 3, 2, 2 }
  local cases = {
    { nn.Flatten(), { 2, 12 } }, { nn.Flatten(2, 3), { 2, 6, 2 } }, { nn.Flatten(1), { 24 } },
    { nn.Flatten(-2), { 2, 3, 4 } }, { nn.Flatten(3, 3), { 2, 3, 2, 2 } },
  }
  for _, case in ipairs(cases) do
    it(tostring(case[1]) .. " keeps the order of the elements", function()
      local y = case[1](x)
      assert.are.same(case[2], y.shape)
      assert.is_true(gp.equal(x:reshape { 24 }, y:reshape { 24 }))
    end)
  end

  it("refuses dimensions in the wrong order when it is made", function()
    for _, case in ipairs { { 3, 2 }, { -1, -2 } } do
      local good, message = pcall(nn.Flatten, case[1], case[2])
      assert.is_false(good)
      assert.truthy(message:find(tostring(case[1]), 1, true)
        and message:find(tostring(case[2]), 1, true))
    end
  end)
end)
