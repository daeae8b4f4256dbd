-- tests/spec/models/sequence_spec.lua - Transformers, the Vision Transformer and the Mixer have the
-- right number of parameters, the same bits wherever they are cut, and generate texts.
--
-- Counts of a Transformer come from PyTorch's layers of these sizes; those of ViT-B/16 and
-- Mixer-B/16 are documented by torchvision and timm.
local gp = require "gpipe"
local fails_with = require "tests.support.expect".fails_with
local training = require "tests.support.training"
local models, generate = gp.models, gp.models.generate

local function count(model)
  local sum = 0
  for _, p in ipairs(model:parameters()) do sum = sum + p.param:numel() end
  return sum
end

-- ---- parameters --------------------------------------------------------------------------------

-- PyTorch's encoder layer of width w and f has 4 w^2 + 4 w + 2 w f + f + w + 4 w parameters.
local function encoder_layer(w, f) return 4 * w * w + 9 * w + 2 * w * f + f end
local function decoder_layer(w, f) return encoder_layer(w, f) + 4 * w * w + 6 * w end

-- Title, model, parameters, layers.
local COUNTS = {
  { "vit()", models.vit, nil, 86567656, 16 },
  { "vit of 32 x 32 patches", models.vit, { patch = 32 }, 88224232, 16 },
  { "vit-large", models.vit, { layers = 24, width = 1024, heads = 16 }, 304326632, 28 },
  { "mlp_mixer()", models.mlp_mixer, nil, 59880472, 16 },
  { "transformer_lm", models.transformer_lm, { vocabulary = 1000, layers = 3, width = 64, ff = 80 },
    3 * encoder_layer(64, 80) + 2 * 64000 + 1000, 5 },
  { "transformer_lm, tied, norms in front, learned positions", models.transformer_lm,
    { vocabulary = 1000, layers = 3, width = 64, tied = true, norm_first = true, context = 50,
      positions = "learned" }, 3 * encoder_layer(64, 256) + 64000 + 1000 + 50 * 64 + 128, 6 },
  { "transformer", models.transformer, { vocabulary = 37000 },
    6 * encoder_layer(512, 2048) + 6 * decoder_layer(512, 2048) + 37000 * 513, 15 },
  { "transformer, untied, norms in front", models.transformer, { vocabulary = 100, width = 32,
    ff = 64, encoder_layers = 2, decoder_layers = 1, tied = false, norm_first = true },
    2 * encoder_layer(32, 64) + decoder_layer(32, 64) + 3 * 3200 + 100 + 128, 8 },
}

describe("parameters of", function()
  for _, case in ipairs(COUNTS) do
    it(case[1], function()
      local model = case[2](case[3])
      assert.equal(case[4], count(model))
      assert.equal(case[5], #model)
    end)
  end
end)

-- ---- the same bits -----------------------------------------------------------------------------

local function train(make, x, y, options)
  gp.seed(1)
  local o = { chunks = 2, loss = gp.nn.CrossEntropyLoss(), seed = 3 }
  for key, value in pairs(options) do o[key] = value end
  local pipe <close> = gp.pipeline(make(), o)
  local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  local result = {}
  for step = 1, 2 do
    result["loss " .. step] = gp.tensor(pipe:step(x, y), { dtype = "f64" })
    result["norm " .. step] = gp.tensor(gp.optim.clip_grad_norm(pipe:parameters(), 1),
      { dtype = "f64" })
    opt:step()
  end
  for name, value in pairs(training.gradients(pipe)) do result["gradient of " .. name] = value end
  for name, value in pairs(pipe:state_dict()) do result[name] = value end
  return result
end

local function ids(shape, below, seed)
  return (gp.rand(shape, { seed = seed }) * below):floor():to "i64"
end

local small = { layers = 2, width = 16, heads = 2 }
local function with(more)
  local o = {}
  for key, value in pairs(small) do o[key] = value end
  for key, value in pairs(more) do o[key] = value end
  return o
end

-- Title, model, input, target.
local MODELS = {
  { "transformer_lm", function() return models.transformer_lm(with { vocabulary = 30 }) end,
    ids({ 4, 7 }, 30, 1), ids({ 4, 7 }, 30, 2) },
  { "transformer_lm with a shared table",
    function()
      return models.transformer_lm(with { vocabulary = 30, tied = true, norm_first = true,
        activation = "gelu", positions = "learned" })
    end, ids({ 4, 7 }, 30, 1), ids({ 4, 7 }, 30, 2) },
  { "transformer with one table in three places",
    function()
      return models.transformer { vocabulary = 30, width = 16, heads = 2, ff = 32,
        encoder_layers = 1, decoder_layers = 2 }
    end, { ids({ 4, 5 }, 30, 1), ids({ 4, 7 }, 30, 3) }, ids({ 4, 7 }, 30, 2) },
  { "transformer, norms in front",
    function()
      return models.transformer { vocabulary = 30, width = 16, heads = 2, ff = 32, tied = false,
        encoder_layers = 1, decoder_layers = 1, norm_first = true }
    end, { ids({ 4, 5 }, 30, 1), ids({ 4, 7 }, 30, 3) }, ids({ 4, 7 }, 30, 2) },
  { "transformer whose sources are padded",
    function()
      return models.transformer { vocabulary = 30, width = 16, heads = 2, ff = 32, padding = 3,
        encoder_layers = 2, decoder_layers = 2, norm_first = true }
    end, { ids({ 4, 5 }, 30, 1), ids({ 4, 7 }, 30, 3) }, ids({ 4, 7 }, 30, 2) },
  { "vit", function() return models.vit(with { image = 8, patch = 4, classes = 5, dropout = 0.1 }) end,
    gp.randn({ 4, 3, 8, 8 }, { seed = 1 }), ids({ 4 }, 5, 2) },
  { "mlp_mixer",
    function()
      return models.mlp_mixer { image = 8, patch = 4, layers = 2, width = 16, token_ff = 8, ff = 32,
        classes = 5 }
    end, gp.randn({ 4, 3, 8, 8 }, { seed = 1 }), ids({ 4 }, 5, 2) },
}

describe("a transformer with padding", function()
  for _, norm_first in ipairs { false, true } do
    it("gives the scores of the sources without it, norm_first " .. tostring(norm_first), function()
      gp.seed(1)
      local model = models.transformer { vocabulary = 30, width = 16, heads = 2, ff = 32,
        padding = 0, encoder_layers = 2, decoder_layers = 2, norm_first = norm_first }
      model:eval()
      local target = ids({ 2, 4 }, 30, 2)
      local source = gp.tensor({ { 5, 6, 7, 0, 0 }, { 8, 9, 10, 11, 12 } }, { dtype = "i64" })
      local both = model(source, target)
      local alone = model(gp.tensor({ { 5, 6, 7 } }, { dtype = "i64" }), target[{ { 1, 1 } }])
      assert.is_true((both[1] - alone[1]):abs():max():item() < 1e-5)
      local plain = models.transformer { vocabulary = 30, width = 16, heads = 2, ff = 32,
        encoder_layers = 2, decoder_layers = 2, norm_first = norm_first }
      assert.equal(#plain:parameters(), #model:parameters())
    end)
  end
end)

describe("the bits of a cut model are those of the whole one:", function()
  for _, case in ipairs(MODELS) do
    it(case[1], function()
      local whole = train(case[2], case[3], case[4], {})
      local layers = #case[2]()
      local ones = {}
      for i = 1, layers do ones[i] = 1 end -- every cut there is
      for _, options in ipairs { { balance = ones }, { balance = { 2, layers - 2 },
        checkpoint = "always", schedule = "gpipe" } } do
        assert.is_nil(training.differing(whole, train(case[2], case[3], case[4], options)))
      end
    end)
  end
end)

-- ---- what each position attends to -------------------------------------------------------------

describe("a language model", function()
  it("sees no later id", function()
    for _, make in ipairs { MODELS[1][2], MODELS[2][2],
      function() return models.gpt2(with { vocabulary = 30, context = 8 }) end } do
      local model = make():eval()
      local whole = model(ids({ 1, 7 }, 30, 1))
      local part = model(ids({ 1, 7 }, 30, 1):narrow(2, 1, 4):contiguous())
      assert.is_true((whole:narrow(2, 1, 4) - part):abs():max():item() < 1e-5)
    end
  end)

  it("refuses more ids than its context", function()
    local model = models.transformer_lm(with { vocabulary = 30, context = 4 })
    fails_with("expected ?xT with T from 1 to 4", model, ids({ 1, 5 }, 30, 1))
  end)
end)

describe("a wrong option is refused by", function()
  local cases = {
    { "transformer_lm", models.transformer_lm, nil, "missing option 'vocabulary'" },
    { "transformer", models.transformer, { vocabulary = 5, layer = 1 }, "unknown option 'layer'" },
    { "vit", models.vit, { patch = 15 }, "image is 224 and patch is 15" },
    { "mlp_mixer", models.mlp_mixer, { widht = 1 }, "did you mean 'width'?" },
  }
  for _, case in ipairs(cases) do
    it(case[1], function() fails_with(case[4], case[2], case[3]) end)
  end
  it("vit, for images of another size", function()
    local model = models.vit(with { image = 8, patch = 4 })
    fails_with("the images are 1x3x8x12, expected ?x3x8x8", model, gp.zeros { 1, 3, 8, 12 })
  end)
end)

-- ---- generating ----------------------------------------------------------------------------------

describe("gp.models.generate", function()
  local function make()
    gp.seed(6)
    local model = models.gpt2(with { vocabulary = 30, context = 8 })
    for _, p in ipairs(model:parameters()) do p.value:mul_(10) end -- so that scores differ
    return model
  end
  local start = ids({ 3, 4 }, 30, 5)
  local drawn = { length = 12, temperature = 0.7, top_k = 9, top_p = 0.95, seed = 2 }

  it("gives the same ids by the same seed wherever the model is cut", function()
    local whole = generate(make(), start, drawn)
    assert.same({ 3, 16 }, whole.shape)
    assert.is_true(gp.equal(start, whole:narrow(2, 1, 4):contiguous()))
    for _, balance in ipairs { { 4 }, { 2, 2 }, { 1, 1, 1, 1 } } do
      local pipe <close> = gp.pipeline(make(), { balance = balance })
      assert.is_true(gp.equal(whole, generate(pipe, start, drawn)))
      assert.equal("train", pipe.mode)
    end
    assert.is_false(gp.equal(whole, generate(make(), start,
      { length = 12, temperature = 0.7, top_k = 9, top_p = 0.95, seed = 3 })))
    gp.seed(9)
    local first = generate(make(), start, { length = 3 })
    assert.is_true(gp.equal(first, generate(make(), start, { length = 3 }))) -- make() seeds
  end)

  it("takes the most likely id at temperature 0, with top_k 1 and with a tiny top_p", function()
    local model = make():eval()
    local greedy = generate(model, start, { length = 6, temperature = 0 })
    for _, o in ipairs { { top_k = 1 }, { top_p = 1e-9 }, { temperature = 1e-6 } } do
      o.length, o.seed = 6, 3
      assert.is_true(gp.equal(greedy, generate(model, start, o)))
    end
    local next_id = model(start):select(2, 4):argmax(2) - 1
    assert.is_true(gp.equal(next_id, greedy:select(2, 5):contiguous()))
  end)

  it("slides its window over texts longer than the context", function()
    local model = make():eval()
    local long = ids({ 20 }, 30, 8)
    local greedy = generate(model, long, { length = 1, temperature = 0 })
    local window = long:narrow(1, 13, 8):contiguous():reshape { 1, 8 }
    assert.equal((model(window):select(2, 8):argmax(2) - 1):item(), greedy[21])
    assert.is_true(gp.equal(greedy:narrow(1, 1, 20):contiguous(), long))
  end)

  -- A causal model with a table of 40 positions under a name; `field` is what it says of them.
  local function own(name, field)
    local Own = gp.nn.class("Own")
    function Own:init()
      self.context = field
      self.words = gp.nn.Embedding(30, 8)
      if name then self[name] = gp.nn.Embedding(40, 8) else self.table = gp.nn.Embedding(40, 8) end
      self.out = gp.nn.Linear(8, 30)
    end
    function Own:forward(x)
      local places = self[name or "table"](gp.arange(0, x.shape[2] - 1, 1, { dtype = "i64" }))
      return self.out(self.words(x) + places)
    end
    return gp.nn.Sequential { Own() }
  end

  it("finds the context of a user's model, or asks for it", function()
    local long = ids({ 1, 38 }, 30, 5)
    local function length_of(model, opts)
      opts = opts or {}
      opts.length = 6
      return generate(model, long, opts).shape[2]
    end
    for _, name in ipairs { "pos", "wpe", "position_embeddings" } do
      assert.equal(44, length_of(own(name)))
      local pipe <close> = gp.pipeline(own(name), {})
      assert.equal(44, length_of(pipe))
    end
    assert.equal(44, length_of(own(nil, 40)))
    assert.equal(44, length_of(own(), { context = 40 }))
    local short = generate(own(), long, { length = 2 }) -- pads to no more than it must
    assert.equal(40, short.shape[2])
    local pipe <close> = gp.pipeline(own(), {})
    for _, model in ipairs { own(), pipe } do
      local good, text = pcall(length_of, model)
      assert.is_false(good)
      assert.truthy(text:find("the model failed for 41 ids, and tells of no context; expected option "
        .. "context, the most ids that it takes", 1, true), text)
    end
  end)

  it("says what a model returned instead of scores", function()
    local pooled = gp.nn.Sequential { gp.nn.Embedding(30, 8), gp.nn.Lambda(function(x)
      return x:mean(2)
    end) }
    local good, text = pcall(generate, pooled, ids({ 2, 3 }, 30, 5), { length = 2, context = 8 })
    assert.is_false(good)
    assert.truthy(text:find("the model gave [2, 8] for ids [2, 8], expected scores [B, T, V]", 1, true),
      text)
  end)

  it("ends when every row has stopped, and pads rows that stopped before", function()
    local model = make()
    local free = generate(model, start, { length = 10, temperature = 0 })
    local stop = free[1][6] -- the second id of the first row
    local ended = generate(model, start, { length = 10, temperature = 0, stop = stop }):totable()
    for b, row in ipairs(ended) do
      local at
      for i = 5, #row do
        if at then assert.equal(stop, row[i]) else assert.equal(free[b][i], row[i]) end
        at = at or row[i] == stop and i or nil
      end
    end
    local one = generate(model, start:select(1, 1):contiguous(),
      { length = 10, temperature = 0, stop = stop })
    assert.is_true(one.shape[1] <= 6)
    assert.equal(stop, one[one.shape[1]])
  end)

  it("leaves the model in its mode and no gradients behind", function()
    local model = make()
    generate(model, start, { length = 1 })
    assert.is_true(model:is_training())
    assert.is_false(generate(model:eval(), start, { length = 1 }).requires_grad)
    assert.is_false(model:is_training())
    assert.is_true(gp.equal(start, generate(model, start, { length = 0 })))
  end)

  it("refuses other ids and options", function()
    local model = make()
    fails_with("ids is f32 2, expected an i64 tensor", generate, model, gp.ones { 2 })
    fails_with("ids is nil, expected an i64 tensor", generate, model)
    fails_with("model is 3, expected a module or a pipeline", generate, 3, start)
    fails_with("did you mean 'temperature'?", generate, model, start, { temperatur = 1 })
    fails_with("option 'top_p' is 0, expected", generate, model, start, { top_p = 0 })
  end)
end)
