-- tests/spec/nn/sequence/transformer_spec.lua - nn.MultiheadAttention and the Transformer's layers:
-- gradients, masks, stacks, cuts, errors. golden_spec.lua compares what they compute with PyTorch.
-- luacheck: ignore 212/self

local gp = require "gpipe"
local check_gradients = require "tests.support.layer_gradients"
local fails_with = require("tests.support.expect").fails_with
local training = require "tests.support.training"

local nn = gp.nn

local function randn(shape) return gp.randn(shape, { dtype = "f64", seed = shape[2] }) end

local CLOSE = 1e-6 -- f32, values of order 1, sums in two orders

local function near(a, b) assert((a - b):abs():max():item() < CLOSE) end

describe("nn.MultiheadAttention", function()
  it("has the gradients of what it computes", function()
    for _, options in ipairs { { rotary = true, causal = true }, { kv_heads = 1, bias = false },
      { kv_heads = 1, rotary = { style = "pairs", base = 100 } } } do
      options.dtype = "f64"
      local layer = nn.MultiheadAttention(4, 2, options)
      check_gradients(layer, { randn { 2, 3, 4 } })
      check_gradients(layer, { randn { 2, 3, 4 }, randn { 2, 5, 4 }, randn { 2, 5, 4 } * 2,
        gp.randn({ 3, 5 }):gt(-0.5) })
    end
  end)

  it("takes a mask of any shape that broadcasts", function()
    local layer, x = nn.MultiheadAttention(8, 2), gp.randn { 3, 5, 8 }
    local seen = gp.arange(1, 5):le(gp.tensor { { 3 }, { 5 }, { 1 } }):reshape { 3, 1, 1, 5 }
    local masked = layer(x, nil, nil, seen)
    for b, length in ipairs { 3, 5, 1 } do
      local row = x:narrow(1, b, 1)
      near(masked:narrow(1, b, 1), layer(row, row:narrow(2, 1, length)))
    end
    local all = layer(x)
    near(all, layer(x, nil, nil, gp.zeros { 5 }))
    near(all, layer(x, nil, nil, gp.zeros { 1, 1 }))
    near(all, layer(x, nil, nil, gp.ones({ 3, 2, 5, 5 }):gt(0)))
  end)

  it("with rotary depends only on distances", function()
    for _, style in ipairs { "halves", "pairs" } do
      local layer, x = nn.MultiheadAttention(8, 2, { rotary = { style = style } }),
        gp.randn { 2, 4, 8 }
      local behind = gp.concat({ gp.zeros { 2, 3, 8 }, x }, 2)
      local hidden = gp.arange(1, 7):gt(3)
      near(layer(x), layer(behind, nil, nil, hidden):narrow(2, 4, 4))
      assert((layer(x) - layer(x:flip(2)):flip(2)):abs():max():item() > 1e-3)
    end
  end)

  it("drops probabilities, only while training", function()
    local layer, x = nn.MultiheadAttention(8, 2, { dropout = 0.5 }), gp.randn { 2, 4, 8 }
    assert.is_false(gp.equal(layer(x), layer(x)))
    layer:eval()
    assert.is_true(gp.equal(layer(x), layer(x)))
  end)
end)

describe("the Transformer's layers", function()
  it("have the gradients of what they compute", function()
    local options = { dropout = 0, dtype = "f64", norm_first = true, activation = "gelu" }
    check_gradients(nn.TransformerEncoderLayer(4, 2, 3, options), { randn { 2, 3, 4 } })
    check_gradients(nn.TransformerDecoderLayer(4, 2, 3, { dropout = 0, dtype = "f64", causal = true,
      kv_heads = 1, rotary = true, activation = "gelu" }), { randn { 2, 3, 4 }, randn { 2, 5, 4 } })
  end)

  it("are stacked in Sequentials that can be flattened and printed", function()
    local model = nn.Sequential {
      nn.TransformerEncoder(2, 8, 2, 16, { norm_first = true, rotary = true }),
      nn.Linear(8, 3),
    }
    local flat = model:flatten()
    assert.equal(4, #flat)
    assert.equal("1.2.self_attn.in_proj_weight", flat:parameters()[13].name)
    local text = tostring(model)
    for _, line in ipairs { "(2): nn.TransformerEncoderLayer(8, 2 heads, 16, norm first) {",
      "(self_attn): nn.MultiheadAttention(8, 2 heads, rotary) {", "(linear2): nn.Linear(16 -> 8)",
      "(3): nn.LayerNorm(8)" } do
      assert.truthy(text:find(line, 1, true), text)
    end
    local rows = model:summary({ 2, 5, 8 }, { quiet = true })
    assert.same({ 2, 5, 8 }, rows[1].shape)
    assert.equal(2 * (4 * 8 * 8 + 4 * 8 + 2 * 8 * 16 + 16 + 8 + 4 * 8) + 2 * 8, rows[1].parameters)
    local decoder = nn.TransformerDecoder(2, 8, 2, 16)
    assert.equal(1, select("#", decoder(gp.ones { 1, 2, 8 }, gp.ones { 1, 3, 8 })))
    assert.equal(2, #decoder)
  end)

  it("refuse wrong calls", function()
    local x = gp.ones { 2, 4, 6 }
    local attention = nn.MultiheadAttention(6, 2)
    for _, case in ipairs {
      { function() nn.MultiheadAttention(6, 4) end,
        "nn.MultiheadAttention: dim is 6 and heads is 4, expected heads to divide dim" },
      { function() nn.MultiheadAttention(8, 4, { kv_heads = 3 }) end,
        "heads is 4 and kv_heads is 3, expected kv_heads to divide heads" },
      { function() nn.MultiheadAttention(6, 2, { rotary = true }) end,
        "nn.MultiheadAttention: the size of a head is 3, expected an even number" },
      { function() nn.MultiheadAttention(8, 2, { rotary = { style = "half" } }) end,
        "nn.MultiheadAttention: rotary: option 'style' is \"half\"" },
      { function() nn.MultiheadAttention(8, 2, { casual = true }) end, "did you mean 'causal'" },
      { function() attention(gp.ones { 4, 6 }) end, "query is 4x6, expected ?x?x6" },
      { function() attention(x, gp.ones { 3, 4, 6 }) end, "key is 3x4x6, expected 2x?x6" },
      { function() attention(x, x, gp.ones { 2, 3, 6 }) end, "value is 2x3x6, expected as many" },
      { function() attention(x, nil, nil, gp.ones { 1, 1, 1, 1, 4 }) end, "mask is 1x1x1x1x4" },
      { function() attention(x, nil, nil, gp.ones { 4, 3 }) end, "mask is 1x1x4x3" },
      { function() attention(x, nil, nil, 3) end, "mask is 3, expected a tensor" },
      { function() nn.TransformerEncoderLayer(6, 2, 0) end,
        "nn.TransformerEncoderLayer: ff is 0, expected a positive integer" },
      { function() nn.TransformerEncoderLayer(6, 2, 4, { activation = "silu" }) end,
        "nn.TransformerEncoderLayer: option 'activation' is \"silu\"" },
      { function() nn.TransformerDecoderLayer(6, 2, 4, { carri = true }) end,
        "nn.TransformerDecoderLayer: unknown option 'carri' (did you mean 'carry'?)" },
      { function() nn.TransformerDecoderLayer(6, 2, 4)(x) end, "memory is nil, expected a tensor" },
      { function() nn.TransformerEncoder(0, 6, 2) end, "nn.TransformerEncoder: count is 0" },
      { function() nn.TransformerDecoder(2, 6, 2, 4, { nrom_first = true }) end,
        "nn.TransformerDecoder: unknown option 'nrom_first'" },
    } do fails_with(case[2], case[1]) end
  end)
end)

-- ---- in pipelines ----------------------------------------------------------------------------

local D, V = 8, 11

-- The two sequences of ids are stacked: [B, 2, T]. The target waits until the encoder has finished.
local Source = nn.class("Source", nil, { stash = { "target" } })
function Source:forward(both)
  self:stash("target", both:select(2, 2))
  return both:select(2, 1)
end

-- Each layer of the decoder gets the memory by a skip of its own.
local Target = nn.class("Target", nil, { stash = { "memory 1", "memory 2" }, pop = { "target" } })
function Target:forward(memory)
  self:stash("memory 1", memory)
  self:stash("memory 2", memory)
  return self:pop "target"
end

local function decoder_layer(i)
  local name = "memory " .. i
  local Decode = nn.class("Decode", nil, { pop = { name } })
  function Decode:init() self.layer = nn.TransformerDecoderLayer(D, 2, 12, { causal = true }) end
  function Decode:forward(x) return self.layer(x, self:pop(name)) end
  return Decode()
end

local function translator()
  gp.seed(5)
  return nn.Sequential {
    Source(), nn.Embedding(V, D), nn.TransformerEncoderLayer(D, 2, 12),
    nn.TransformerEncoderLayer(D, 2, 12), Target(), nn.Embedding(V, D), decoder_layer(1),
    decoder_layer(2), nn.Linear(D, V),
  }
end

-- The memory travels with the values between layers.
local Both = nn.class("Both")
function Both:init() self.embedding = nn.Embedding(V, D) end
function Both:forward(both)
  return self.embedding(both:select(2, 1)), self.embedding(both:select(2, 2))
end

local function carrier()
  gp.seed(6)
  local decoder = nn.TransformerDecoder(2, D, 2, 12, { causal = true, norm_first = true })
  return nn.Sequential { Both(), decoder[1], decoder[2], decoder[3], nn.Linear(D, V) }
end

local function gpt()
  gp.seed(7)
  local options = { causal = true, norm_first = true, activation = "gelu", kv_heads = 1,
    rotary = true }
  return nn.Sequential { nn.Embedding(V, D), nn.TransformerEncoder(3, D, 4, 12, options),
    nn.Linear(D, V) } :flatten()
end

-- Attention with a trained bias for each distance, as in T5.
local Near = nn.class("Near")
function Near:init()
  self.norm, self.qkv = nn.LayerNorm(D), nn.Linear(D, 3 * D)
  self.distance = nn.Embedding(19, 2)
end
function Near:forward(x)
  local rows, length = x.shape[1], x.shape[2]
  local qkv = self.qkv(self.norm(x)):reshape({ rows, length, 6, D // 2 }):permute { 1, 3, 2, 4 }
  local at = gp.arange(0, length - 1, 1, { dtype = "i64" })
  local bias = self.distance(at:reshape { length, 1 } - at + 9):permute { 3, 1, 2 }
  local y = gp.attention(qkv:narrow(2, 1, 2), qkv:narrow(2, 3, 2), qkv:narrow(2, 5, 2),
    { bias = bias, causal = true, dropout = self:is_training() and 0.1 or 0 })
  return x + y:permute({ 1, 3, 2, 4 }):reshape { rows, length, D }
end

local function distances()
  gp.seed(8)
  return nn.Sequential { nn.Embedding(V, D), Near(), Near(), Near(), nn.Linear(D, V) }
end

local function ids(...)
  local list = {}
  for i = 1, 7 * 10 do list[i] = i * i * 5 % V end
  return gp.tensor(list, { dtype = "i64" }):reshape { 7, ... }
end

describe("a model of attention", function()
  for _, case in ipairs {
    { "an encoder-decoder whose memory goes by skips", translator, ids(2, 5),
      { { 9 }, { 5, 4 }, { 3, 4, 2 }, { 1, 2, 1, 1, 1, 1, 2 } } },
    { "a decoder whose memory goes along", carrier, ids(2, 5), { { 5 }, { 2, 3 }, { 1, 1, 3 } } },
    { "a GPT with grouped heads and rotary", gpt, ids(10), { { 6 }, { 2, 4 }, { 2, 2, 2 } } },
    { "attention with a trained bias", distances, ids(10), { { 5 }, { 2, 3 }, { 2, 1, 2 } } },
  } do
    it("gives the same bits however it is cut, with and without recomputation: " .. case[1],
      function()
      local x = case[3]
      local y = x.shape[3] and x:select(2, 2) or x
      local setup = { model = case[2], x = x, y = y, loss = nn.CrossEntropyLoss(), steps = 3 }
      local run = training.check_same(setup, training.combinations {
        balance = case[4], schedule = { "1f1b" }, threads = { 1, 2 },
        checkpoint = { "always", "never" },
      })
      assert.is_true(run.losses[3] < run.losses[1])
    end)
  end
end)
