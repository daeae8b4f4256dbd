-- tests/spec/models/gpt2_spec.lua - GPT-2 agrees with transformers' GPT2LMHeadModel, wherever it is
-- cut.
--
-- tests/golden/gpt2.py makes the tiny model and the figures.
local gp = require "gpipe"
local fails_with = require "tests.support.expect".fails_with
local names = require "gpipe.models.gpt2.names"
local training = require "tests.support.training"
local golden = dofile "tests/golden/gpt2.lua"
local gpt2, optim = gp.models.gpt2, gp.optim

local FOLDER = "tests/golden/gpt2"
local CLOSE = 1e-4 -- distance from PyTorch: f32 sums in another order
local ids = gp.tensor(golden.ids, { dtype = "i64" }):reshape { 4, 10 }
local targets = gp.tensor(golden.targets, { dtype = "i64" }):reshape { 4, 10 }

local function count(model)
  local sum = 0
  for _, p in ipairs(model:parameters()) do sum = sum + p.param:numel() end
  return sum
end

describe("gp.models.gpt2", function()
  for _, case in ipairs { { "small", 124439808, 14 }, { "medium", 354823168, 26 },
    { "large", 774030080, 38 }, { "xl", 1557611200, 50 } } do
    it(("has %d parameters as %s"):format(case[2], case[1]), function()
      local model = gpt2(case[1])
      assert.equal(case[2], count(model))
      assert.equal(case[3], #model)
    end)
  end

  it("starts with the weights of the paper", function()
    gp.seed(1)
    local model = gpt2 { layers = 8, width = 64, heads = 2, context = 64, vocabulary = 300 }
    local wanted = { ["embedding.wte.weight"] = 0.02, ["embedding.wpe.weight"] = 0.02,
      ["h_3.attn.qkv.weight"] = 0.02, ["h_3.fc.weight"] = 0.02, ["h_3.attn.proj.weight"] = 0.005,
      ["h_3.proj.weight"] = 0.005, ["h_3.fc.bias"] = 0, ["h_3.ln_1.bias"] = 0 }
    local state = model:state_dict()
    for name, std in pairs(wanted) do
      local value = state[name]
      assert.is_true(math.abs((value * value):mean():item() ^ 0.5 - std) <= 0.05 * std, name)
    end
    assert.equal(1, state["h_3.ln_1.weight"]:mean():item())
  end)

  it("is refused by size, heads and options", function()
    fails_with('size is "tiny", expected "small"', gpt2, "tiny")
    fails_with("width is 10 and heads is 4", gpt2, { width = 10, heads = 4 })
    fails_with("unknown option 'layer' (did you mean 'layers'?)", gpt2, { layer = 1 })
    fails_with("unknown option 'layer' (did you mean 'layers'?)", gpt2, "small", { layer = 1 })
    fails_with("there is no 'laod' (did you mean 'load'?)", function() return gpt2.laod end)
    local model = gpt2 { layers = 1, width = 4, heads = 2, context = 4, vocabulary = 5 }
    fails_with("the ids are 1x5, expected ?xT with T from 1 to 4", model,
      gp.zeros({ 1, 5 }, { dtype = "i64" }))
  end)
end)

-- ---- compared with PyTorch ---------------------------------------------------------------------

local function near(want, have, what)
  assert.is_true(math.abs(want - have) <= CLOSE * (1 + math.abs(want)),
    ("%s: %.9g, expected %.9g"):format(what, have, want))
end

-- Samples a tensor, evenly spaced, in the order [in, out] of the files. Positions in `but` are left
-- out.
local function sampled(entry, tensor, values, but)
  if entry.transposed then tensor = tensor:transpose(1, 2):contiguous() end
  local flat = tensor:contiguous():reshape { tensor:numel() }
  local step = math.max(1, flat:numel() // 8)
  for i, want in ipairs(values) do
    local at = (i - 1) * step + 1
    if not but or at < but[1] or at > but[2] then near(want, flat[at], entry.file) end
  end
end

-- Softmax ignores a number added to all scores of a query, so the gradient of the keys' bias is 0
-- except for rounding, and Adam takes full steps along the sign of that.
local function without_gradient(entry)
  return entry.file:find "c_attn%.bias$" and { 21, 40 } or nil
end

local function pipeline(options)
  local model, config = assert(gpt2.load(FOLDER))
  local o = { loss = gp.nn.CrossEntropyLoss(), seed = 3 }
  for key, value in pairs(options) do o[key] = value end
  return gp.pipeline(model, o), names.list(config)
end

local function gradients_of(pipe)
  local found = {}
  for _, p in ipairs(pipe:parameters()) do found[p.name] = p.grad end
  return found
end

describe("a model from Hugging Face", function()
  it("gives PyTorch's logits, loss and gradients", function()
    local model = assert(gpt2.load(FOLDER)):eval()
    local logits = model(ids):narrow(1, 1, 1):contiguous():reshape { #golden.logits }:totable()
    for i, want in ipairs(golden.logits) do near(want, logits[i], "logit " .. i) end
    local pipe <close>, list = pipeline { chunks = 2 }
    near(golden.loss, pipe:step(ids, targets), "loss")
    local found = gradients_of(pipe)
    for _, entry in ipairs(list) do
      local want = golden.gradients[entry.file]
      near(want.norm, found[entry.own]:norm():item(), entry.file)
      sampled(entry, found[entry.own], want.values)
    end
  end)

  it("takes PyTorch's ten steps of AdamW, with the same bits over 1, 2 and 4 stages", function()
    local function run(options)
      local pipe <close>, list = pipeline(options)
      local opt = optim.AdamW(pipe:parameters(), { lr = 1e-3, weight_decay = 0.1 })
      local losses = {}
      for step = 1, 10 do
        losses[step] = pipe:step(ids, targets)
        opt:step()
      end
      return { losses = losses, state = pipe:state_dict(), list = list }
    end
    local whole = run { chunks = 2 }
    for step, want in ipairs(golden.losses) do near(want, whole.losses[step], "loss " .. step) end
    for _, entry in ipairs(whole.list) do
      sampled(entry, whole.state[entry.own], golden.trained[entry.file], without_gradient(entry))
    end
    for _, balance in ipairs { { 2, 2 }, { 1, 1, 1, 1 } } do
      local cut = run { chunks = 2, balance = balance }
      assert.same(whole.losses, cut.losses)
      assert.is_nil(training.differing(whole.state, cut.state))
    end
  end)
end)

-- ---- tied weights --------------------------------------------------------------------------------

describe("the table that embedding and head share over stages", function()
  local function trained(options, clip)
    gp.seed(4)
    local model = gpt2 { layers = 2, width = 8, heads = 2, context = 10, vocabulary = 61,
      dropout = 0.1 }
    local o = { loss = gp.nn.CrossEntropyLoss(), seed = 3, chunks = 2 }
    for key, value in pairs(options) do o[key] = value end
    local pipe <close> = gp.pipeline(model, o)
    local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
    local result, norms = {}, {}
    for step = 1, 3 do
      result["loss " .. step] = gp.tensor(pipe:step(ids, targets), { dtype = "f64" })
      if step == 1 then
        for name, value in pairs(training.gradients(pipe)) do result["gradient " .. name] = value end
      end
      norms[step] = optim.clip_grad_norm(pipe:parameters(), clip)
      opt:step()
    end
    local state = pipe:state_dict()
    for name, value in pairs(state) do result[name] = value end
    return result, norms, state, #pipe:parameters()
  end

  it("is one parameter with one gradient, one norm and one copy in state_dict", function()
    local whole, norms, state, count_whole = trained({}, 0.5)
    assert.is_nil(state["head.out.weight"])
    local squares = 0
    for name, value in pairs(whole) do
      if name:find "^gradient " then squares = squares + (value * value):sum():item() end
    end
    near(squares ^ 0.5, norms[1], "norm")
    for _, options in ipairs { { balance = { 2, 2 } }, { balance = { 1, 1, 1, 1 } },
      { balance = { 1, 3 }, schedule = "gpipe", checkpoint = "always" },
      { balance = { 1, 1, 1, 1 }, schedule = "zb_h1" } } do
      local cut, cut_norms, cut_state, count_cut = trained(options, 0.5)
      assert.equal(count_whole, count_cut)
      assert.same(norms, cut_norms)
      assert.is_nil(cut_state["head.out.weight"])
      assert.is_nil(training.differing(whole, cut))
    end
  end)

  it("counts once where the pipeline clips, wherever its updates are", function()
    local function run(options)
      local pipe <close> = pipeline(options)
      local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
      pipe:use(opt, { clip_norm = 0.1 })
      for _ = 1, 3 do pipe:step(ids, targets) end
      local kept = {}
      for name, value in pairs(opt:state_dict()) do
        if getmetatable(value) == "gpipe.Tensor" then kept[name] = value end
      end
      return pipe:state_dict(), kept
    end
    local whole, state = run { chunks = 2 }
    for _, balance in ipairs { { 2, 2 }, { 1, 1, 1, 1 } } do
      local cut, cut_state = run { chunks = 2, balance = balance }
      assert.is_nil(training.differing(whole, cut))
      assert.is_nil(training.differing(state, cut_state))
    end
    assert.is_truthy(next(state))
    for name in pairs(state) do assert.is_nil(name:find("head.out", 1, true)) end
  end)

  it("stays one when a cut model's state goes into another cut", function()
    local _, _, state = trained({ balance = { 1, 1, 1, 1 } }, 1)
    local model = gpt2 { layers = 2, width = 8, heads = 2, context = 10, vocabulary = 61 }
    local pipe <close> = gp.pipeline(model, { balance = { 2, 2 } })
    pipe:load_state_dict(state)
    assert.is_nil(training.differing(state, pipe:state_dict()))
    assert.is_true(gp.equal(state["embedding.wte.weight"], model.head.out.weight:value()))
  end)
end)
