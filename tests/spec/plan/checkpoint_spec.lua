-- tests/spec/plan/checkpoint_spec.lua - what is kept and what runs again changes memory and time, and
-- no bit.
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local MODES = { "never", "selective", "except_last", "always", "auto", "offload" }
local LAYER_MODES = { "keep", "selective", "recompute", "offload" }

local function blocks()
  gp.seed(3)
  local list = {}
  for i = 1, 5 do
    list[i] = nn.Sequential {
      nn.LayerNorm(32), nn.Linear(32, 96), nn.GELU(), nn.Dropout(0.1), nn.Linear(96, 32),
    }
  end
  list[6] = nn.Linear(32, 10)
  return nn.Sequential(list)
end

local function gpt()
  gp.seed(3)
  return gp.models.gpt2 {
    layers = 3, width = 32, heads = 2, context = 16, vocabulary = 50, dropout = 0.1,
  }
end

local function images()
  gp.seed(3)
  return nn.Sequential {
    nn.Conv2d(3, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(), nn.Stash "skip",
    nn.Conv2d(8, 8, 3, { padding = 1 }), nn.ReLU(), nn.Pop("skip", "add"), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(8 * 16, 10),
  }
end

gp.seed(1)
local ids = gp.randint(0, 50, { 6, 16 })
local CASES = {
  { "blocks", blocks, gp.randn { 6, 32 }, gp.randint(0, 10, { 6 }) },
  { "a GPT with tied weights", gpt, ids, ids },
  { "convolutions with a skip", images, gp.randn { 6, 3, 8, 8 }, gp.randint(0, 10, { 6 }) },
}

local function layers_of(count, shift)
  local list = {}
  for i = 1, count do list[i] = LAYER_MODES[(i * shift + shift) % #LAYER_MODES + 1] end
  return list
end

local function balance(layers, stages)
  local list = {}
  for k = 1, stages do list[k] = layers // stages + (k <= layers % stages and 1 or 0) end
  return list
end

-- Returns what three steps leave behind: losses and parameters, as text.
local function train(case, opts)
  local model = case[2]()
  opts.loss, opts.balance = nn.CrossEntropyLoss(), balance(#model, opts.devices)
  local pipe <close> = gp.pipeline(model, opts)
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  gp.seed(5)
  local parts = {}
  for i = 1, 3 do
    parts[i] = ("%a"):format(pipe:step(case[3], case[4]))
    opt:step()
  end
  for _, entry in ipairs(model:parameters()) do parts[#parts + 1] = entry.param:bytes() end
  return table.concat(parts, "\n")
end

-- Bytes that a plan of one stage would take.
local function bytes_of(case, chunks, checkpoint)
  local model = case[2]()
  return gp.dry_run(model, {
    balance = { #model }, devices = 1, chunks = chunks, schedule = "gpipe",
    checkpoint = checkpoint, loss = nn.CrossEntropyLoss(), sample = { case[3], case[4] },
  }):bytes()[1]
end

describe("option checkpoint", function()
  for _, case in ipairs(CASES) do
    for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1" } do
      it(("gives the same bits whatever it says: %s, %s"):format(case[1], schedule), function()
        local count = #case[2]()
        for _, how in ipairs { { 1, 1 }, { 2, 3 } } do
          local function run(checkpoint)
            return train(case, {
              devices = how[1], chunks = how[2], schedule = schedule, checkpoint = checkpoint,
            })
          end
          local wanted = run "never"
          for _, mode in ipairs(MODES) do assert.is_true(run(mode) == wanted, mode) end
          for shift = 1, 3, 2 do
            assert.is_true(run(layers_of(count, shift)) == wanted, "layers " .. shift)
          end
        end
      end)
    end
  end

  it("saves memory with one micro-batch too", function()
    local classes = gp.zeros({ 512 }, { dtype = "i64" })
    local case = { "large blocks", blocks, gp.ones { 512, 32 }, classes }
    local never = bytes_of(case, 1, "never")
    assert.is_true(bytes_of(case, 1, "always") < 0.7 * never)
    assert.is_true(bytes_of(case, 1, "selective") < 0.85 * never)
    local list = {}
    for i = 1, 6 do list[i] = "recompute" end
    assert.is_true(bytes_of(case, 1, list) < 0.7 * never)
  end)

  it("takes no more than recomputing all of a stage at once did", function()
    for _, case in ipairs(CASES) do
      assert.is_true(bytes_of(case, 3, "always") <= bytes_of(case, 3, "except_last"))
      assert.is_true(bytes_of(case, 3, "except_last") <= bytes_of(case, 3, "never"))
    end
  end)

  -- What a pipeline and a dry run keep of a micro-batch, as text.
  local function kept(checkpoint, opts)
    local case, text = CASES[1], {}
    local given = {
      balance = { 2, 4 }, chunks = 3, devices = { "cpu:0", "cpu:1" },
      loss = nn.CrossEntropyLoss(), checkpoint = checkpoint, sample = { case[3], case[4] },
    }
    for key, value in pairs(opts or {}) do given[key] = value end
    local pipe <close> = gp.pipeline(case[2](), given)
    pipe:step(case[3], case[4])
    for d, one in ipairs(pipe:memory()) do text[d] = one.planned end
    given.devices = 2
    return table.concat(text, " ") .. "; " .. table.concat(gp.dry_run(case[2](), given):bytes(), " ")
  end

  it("is said stage by stage, or by a function of layer, stage and micro-batch", function()
    local list = { "recompute", "recompute", "keep", "keep", "keep", "keep" }
    assert.equal(kept(list), kept { stage = { "recompute", "keep" } })
    local calls = {}
    assert.equal(kept(list), kept(function(layer, stage, micro)
      calls[#calls + 1] = ("%d %d %d"):format(layer, stage, micro)
      return stage == 0 and "recompute" or "keep"
    end))
    assert.equal("1 0 0,1 0 1,1 0 2,2 0 0", table.concat(calls, ",", 1, 4))
    list[2] = "selective"
    assert.equal(kept(list), kept(function(layer) return list[layer] end))
  end)

  it("says what is wrong with what it says of stages, and with a function's answer", function()
    local fails_with = require("tests.support.expect").fails_with
    fails_with("says something for 1 stages and there are 2", kept, { stage = { "keep" } })
    fails_with([[for each stage, not "never" (string) for stage 1]], kept,
      { stage = { "keep", "never" } })
    fails_with("no 1 beside 'stage'", kept, { "keep", stage = { "keep", "keep" } })
    fails_with([[returned "kep" (string) for layer 3 (stage 1, micro-batch 0), expected one of ]]
      .. [["keep"]], kept, function(layer) return layer == 3 and "kep" or "keep" end)
    fails_with([[in micro-batch 0 and "recompute" (string) in micro-batch 2, expected the same]],
      kept, function(_, _, micro) return micro == 2 and "recompute" or "keep" end)
  end)

  it("is said layer by layer", function()
    local model = blocks()
    local list = layers_of(6, 1)
    local pipe <close> = gp.pipeline(model, { checkpoint = list, loss = nn.CrossEntropyLoss() })
    assert.is_truthy(tostring(pipe):find(
      "checkpoint by layer (1 keep, 1 selective, 2 recompute, 2 offload)", 1, true))
  end)
end)
