-- tests/gpu/models_spec.lua - models as users write them: ids, masks, padding, ties, layers without
-- parameters.
--
-- Each trains to the same bits on one GPU and on several logical ones, and near what the CPU
-- computes.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"
local nn = gp.nn
local on_gpu = gpu.spec(it, pending)

local NEAR_CPU = 1e-4 -- losses and first gradients, by the norm: f32 sums in other orders

-- ---- pieces -------------------------------------------------------------------------------------

-- Makes a layer of one function, with parameters where `own` names their shapes.
local function layer(forward, own)
  local Made = nn.class("Made")
  function Made:init()
    for name, shape in pairs(own or {}) do
      self[name] = nn.Parameter(shape, nn.init.normal(0, 1))
    end
  end
  Made.forward = forward
  return Made()
end

local function ids(rows, columns, n)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    for t = 1, columns do list[i][t] = (i * 7 + t * t * 3) % n end
  end
  return gp.tensor(list, { dtype = "i64" })
end

local function normal(shape, seed) return gp.randn(shape, { seed = seed or 1 }) end

-- Attention that ignores padding: the mask travels from layer to layer. Keys have no bias, because
-- its gradient would be 0 except for rounding.
local Padded = nn.class("Padded")
function Padded:init(width, heads)
  self.width, self.heads = width, heads
  self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width, { bias = false }),
    nn.Linear(width, width)
end
function Padded:forward(x, mask)
  local B, T, d = x.shape[1], x.shape[2], self.width // self.heads
  local function split(t) return t:reshape { B, T, self.heads, d }:permute { 1, 3, 2, 4 } end
  local scores = split(self.q(x)):matmul(split(self.k(x)):transpose(-1, -2)) * (1 / math.sqrt(d))
  scores = gp.where(mask:reshape { B, 1, 1, T }, scores, -1e9)
  local out = scores:softmax(-1):matmul(split(self.v(x)))
  return x + out:permute { 1, 3, 2, 4 }:reshape { B, T, self.width }, mask
end

-- ---- models -------------------------------------------------------------------------------------

local CE, MSE = nn.CrossEntropyLoss(), nn.MSELoss()
local MODELS = {}

MODELS["key padding by where"] = { x = ids(7, 5, 9), y = ids(7, 1, 3):reshape { 7 }, loss = CE,
  make = function()
  local embed = nn.class("Embed")
  function embed:init() self.table = nn.Embedding(9, 8) end
  function embed:forward(x) return self.table(x), x:ne(0) end
  local pool = layer(function(_, x, mask)
    local m = mask:to "f32":reshape { x.shape[1], x.shape[2], 1 }
    return (x * m):sum(2) / (m:sum(2) + 1)
  end)
  return { embed(), Padded(8, 2), Padded(8, 4), pool, nn.Linear(8, 3) }
end }

MODELS["a head tied to the embedding"] = { x = ids(5, 6, 11), y = ids(5, 6, 11), loss = CE,
  make = function()
  local embed, head = nn.Embedding(11, 8), nn.Linear(8, 11, { bias = false })
  head.weight = embed.weight
  return { embed, nn.Residual(nn.Sequential { nn.LayerNorm(8), nn.CausalSelfAttention(8, 2) }),
    nn.LayerNorm(8), head }
end }

MODELS["integers and booleans between stages"] = {
  x = { ids(7, 6, 9):to "i32", ids(7, 6, 8):to "u8", ids(7, 6, 7):gt(3) }, y = normal({ 7, 2 }, 3),
  loss = MSE,
  make = function()
    local table_of = nn.class("TableOf")
    function table_of:init() self.table = nn.Embedding(9, 4) end
    function table_of:forward(x, a) return self.table(a) + x:reshape { x.shape[1], 6, 1 } end
    return {
      layer(function(_, a, b, c) return gp.where(c, a:to "f32", b:to "f32" * 0.5), a end),
      layer(function(self, x, a) return x * self.w + a:to "f32":mean(2, true), a:to "i64" end,
        { w = { 1, 6 } }),
      table_of(), nn.Flatten(), nn.Linear(24, 2),
    }
  end,
}

MODELS["stages without parameters"] = { x = normal { 9, 3, 4 }, y = normal({ 9, 2 }, 4), loss = MSE,
  make = function()
  return { nn.Flatten(), nn.Linear(12, 2), nn.ReLU(), nn.Softmax(2) }
end }

MODELS["no parameters at all"] = { x = normal { 7, 6 }, y = normal({ 7, 6 }, 3), loss = MSE,
  frozen = true,
  make = function() return { nn.Tanh(), nn.ReLU(), nn.Flatten(), nn.Sigmoid() } end }

MODELS["rank 5, permuted"] = { x = normal { 6, 3, 2, 4, 5 }, y = normal({ 6, 2 }, 3), loss = MSE,
  make = function()
  return {
    layer(function(self, x) return (x * self.w):permute { 1, 5, 3, 2, 4 } end,
      { w = { 3, 1, 4, 1 } }),
    layer(function(_, x) return x:transpose(2, 4):contiguous():relu() + x:transpose(2,
      4):exp() * 0.1 end),
    nn.Flatten(), nn.Linear(120, 2),
  }
end }

MODELS["a batch of one, of one number"] = { x = normal { 1 }, y = normal({ 1 }, 2), loss = MSE,
  make = function()
  return { layer(function(_, x) return x:reshape { 1, 1 } end), nn.Linear(1, 6), nn.Tanh(),
    nn.Linear(6, 1),
    layer(function(_, x) return x:reshape { 1 } end) }
end }

MODELS["a vocabulary of one"] = { x = ids(5, 1, 1), y = ids(5, 1, 1), loss = CE, make = function()
  return { nn.Embedding(1, 5), nn.Linear(5, 5), nn.CausalSelfAttention(5, 1), nn.Linear(5, 1) }
end }

MODELS["recurrent layers and a Transformer's"] = {
  x = normal { 7, 5, 3 }, y = normal({ 7, 5, 2 }, 3), loss = MSE,
  make = function()
    local options = { causal = true, kv_heads = 1, rotary = true, dropout = 0.1 }
    return {
      nn.LSTM(3, 4, { layers = 2, bidirectional = true, dropout = 0.1 }),
      nn.TransformerEncoderLayer(8, 2, 12, options),
      layer(function(_, x) return x, x:narrow(2, 1, 3) end),
      nn.TransformerDecoderLayer(8, 2, 12, { norm_first = true, activation = "gelu" }),
      nn.GRU(8, 4), nn.RNN(4, 2),
    }
  end,
}

MODELS["constants and slices"] = { x = normal { 7, 6 }, y = normal({ 7, 2 }, 3), loss = MSE,
  make = function()
  local steps, mask = gp.arange(1, 6):to "f32", gp.tensor { true, false, true, false, true, true }
  return {
    layer(function(_, x) return gp.where(mask, x * steps, x) end), nn.Linear(6, 6),
    layer(function(_, x) return gp.concat({ x:narrow(2, 2, 3), x:narrow(2, 1, 4) * 2 },
      2) + gp.full({ 7 }, 0.5) end),
    nn.Linear(7, 2),
  }
end }

-- ---- each of them -------------------------------------------------------------------------------

local LISTS = { { "cuda:0", "cuda:0" }, { "cuda:0", "cuda:0", "cuda:0" } }
local ON_TWO = { { "cuda:0", "cuda:1" }, { "cuda:1", "cuda:0", "cuda:0", "cuda:1" } }

local function check(made, lists)
  made.model = function()
    gp.seed(7)
    return nn.Sequential(made.make())
  end
  local layers = #made.model()
  local function run(devices)
    return training.run(made,
      { balance = synchronous.cut(layers, #devices), devices = devices, chunks = 3 })
  end
  local one, cpu = run { "cuda:0" }, run { "cpu:0" }
  for _, devices in ipairs(lists) do assert.is_nil(training.difference(one, run(devices))) end
  assert.is_true(synchronous.distance({ losses = one.losses, state = one.first },
    { losses = cpu.losses, state = cpu.first }) < NEAR_CPU)
end

describe("on GPUs, one or several logical ones,", function()
  for title, made in pairs(MODELS) do
    on_gpu("trains to the same bits, near the CPU's: " .. title, function() check(made, LISTS) end)
    on_gpu("trains to the same bits on two GPUs: " .. title, function() check(made, ON_TWO) end, 2)
  end
end)

-- ---- several outputs ----------------------------------------------------------------------------

local heads, rows, seeds = models.heads()

local function pass(devices)
  local pipe <close> = gp.pipeline(heads(), { chunks = 3, devices = devices, seed = 2,
    balance = synchronous.cut(4, #devices) })
  local got = { pipe:forward(rows) }
  pipe:backward(seeds)
  for name, grad in pairs(training.gradients(pipe)) do got[name] = grad end
  return got
end

describe("a model of several outputs", function()
  on_gpu("has the same bits on one GPU and on two logical ones, gradients too", function()
    local one, two = pass { "cuda:0" }, pass { "cuda:0", "cuda:0" }
    assert.is_nil(training.differing(one, two))
  end)

  on_gpu("crosses between GPUs and the host", function()
    local host = pass { "cpu:0" }
    for _, devices in ipairs { { "cpu:0", "cuda:0" }, { "cuda:0", "cpu:0" } } do
      assert.is_true(training.distance(pass(devices), host, 1e-5, 1e-6) <= 1)
    end
  end)
end)

-- ---- compiled functions -------------------------------------------------------------------------

describe("a compiled function", function()
  on_gpu("runs on a GPU, near what the host computes", function()
    local function fn(a, b) return (a:matmul(b) + 1):gelu(), a:sum() end
    local a, b = normal({ 5, 7 }, 1), normal({ 7, 3 }, 2)
    local compiled <close> = gp.compile(fn, { a, b }, { device = "cuda:0" })
    assert.is_true(training.distance({ compiled(a, b) }, { fn(a, b) }, 1e-5, 1e-6) <= 1)
  end)
end)

-- ---- methods that compute with constants --------------------------------------------------------

describe("a tensor on a GPU", function()
  local METHODS = {
    pad = function(x) return x:pad({ 1, 2 }, "constant", 3) end,
    reflect = function(x) return x:pad({ 1, 2, -1, 1 }, "reflect") end,
    flip = function(x) return x:flip { 1, 2 } end,
    tril = function(x) return x:tril(1) end,
    triu = function(x) return x:triu() end,
    diagonal = function(x) return x:diag(1) end,
    spread = function(x) return x[1]:diag(-1) end,
    roll = function(x) return x:roll(1, 2) end,
    sort = function(x) return (x:sort(2)) end,
    cumsum = function(x) return x:cumsum(1) end,
    split = function(x) return x:split(2, 2)[2] end,
    remainder = function(x) return x % 0.7 end,
    cumprod = function(x) return x:cumprod(2) end,
    cummax = function(x) return (x:cummax(2)) end,
    quantile = function(x) return x:quantile({ 0.3, 0.8 }, 1) end,
    diag_embed = function(x) return x:diag_embed(1) end,
    index_select = function(x) return x:index_select(2, { 5, 1 }) end,
    index_add = function(x) return x:index_add(1, { 1, 1, 4, 2 }, x) end,
    index_fill = function(x) return x:index_fill(2, { 2 }, 7) end,
    multinomial = function(x) return x:abs():multinomial(3, { seed = 1 }) end,
    unique = function(x) return (x:round():unique()) end,
    histc = function(x) return x:histc(3) end,
    normal_ = function(x) return x:clone():normal_(1, 2, { seed = 1 }) end,
    aligned = function(x)
      local up = nn.Upsample { scale = 2, mode = "bilinear", align_corners = true }
      return up(x:reshape(1, 1, 4, 5))
    end,
    resized = function(x) return nn.Upsample { scale = 1.7 }(x:reshape(1, 1, 4, 5)) end,
    weighed = function(x)
      local classes = gp.tensor({ 0, 4, 2, 1 }, { dtype = "i64" }):to(x.device)
      return nn.CrossEntropyLoss { weight = { 1, 2, 3, 4, 5 } }(x, classes)
    end,
  }
  for name, method in pairs(METHODS) do
    on_gpu("has the method that the host's has: " .. name, function()
      local x = normal { 4, 5 }
      local got = method(x:to "cuda:0")
      assert.equal("cuda:0", got.device)
      assert.is_true(training.distance({ got }, { method(x) }, 1e-6, 1e-7) <= 1)
    end)
  end
end)
