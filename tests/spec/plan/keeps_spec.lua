-- tests/spec/plan/keeps_spec.lua - no device takes more with checkpoint = "selective" than with
-- "never", whatever the model, the schedule and the number of micro-batches.
local gp = require "gpipe"
local keeps = require "gpipe.pipeline.plan.keeps"
local nn = gp.nn

gp.seed(1)
local ids, images = gp.randint(0, 32, { 4, 12 }), gp.randn { 4, 3, 16, 16 }

local function lstm()
  return nn.Sequential { nn.Embedding(32, 16), nn.LSTM(16, 16), nn.LSTM(16, 16), nn.Linear(16, 32) }
end

local function unet() return gp.models.unet { depth = 2, convs = 1, channels = 8 } end

local function gpt()
  return gp.models.gpt2 { layers = 2, width = 32, heads = 2, context = 12, vocabulary = 32,
    dropout = 0.1 }
end

local MODELS = {
  { "an LSTM", lstm, ids, ids, nn.CrossEntropyLoss() },
  { "a U-Net", unet, images, gp.randn { 4, 1, 16, 16 }, nn.MSELoss() },
  { "a GPT", gpt, ids, ids, nn.CrossEntropyLoss() },
}

local SCHEDULES = { { "gpipe", 2 }, { "1f1b", 2 }, { "zb_h1", 2 }, { "interleaved_1f1b", 4 } }

local function balance(layers, stages)
  local list = {}
  for k = 1, stages do list[k] = layers // stages + (k <= layers % stages and 1 or 0) end
  return list
end

-- Returns the losses of two steps, as text, and the report of the memory.
local function train(case, schedule, chunks, checkpoint)
  gp.seed(3)
  local model = case[2]()
  local pipe <close> = gp.pipeline(model, {
    balance = balance(#model, schedule[2]), devices = 2, chunks = chunks, schedule = schedule[1],
    checkpoint = checkpoint, loss = case[5], seed = 5,
  })
  local losses = {}
  for i = 1, 2 do losses[i] = ("%a"):format(pipe:step(case[3], case[4])) end
  return table.concat(losses, " "), pipe:memory()
end

describe("checkpoint = \"selective\"", function()
  for _, case in ipairs(MODELS) do
    it("takes no more than never does: " .. case[1], function()
      for _, schedule in ipairs(SCHEDULES) do
        for _, chunks in ipairs(schedule[1] == "interleaved_1f1b" and { 2, 4 } or { 1, 2, 4 }) do
          local what = ("%s, %d"):format(schedule[1], chunks)
          local wanted, never = train(case, schedule, chunks, "never")
          local got, memory = train(case, schedule, chunks, "selective")
          assert.equal(wanted, got, what)
          for d, one in ipairs(memory) do
            assert.equal(one.planned, one.measured, what)
            assert.is_true(one.planned <= never[d].planned, what)
          end
        end
      end
    end)
  end

  it("saves memory on the last stage too where I and W run apart", function()
    local _, never = train(MODELS[3], { "zb_h1", 2 }, 4, "never")
    local _, memory = train(MODELS[3], { "zb_h1", 2 }, 4, "selective")
    for d, one in ipairs(memory) do assert.is_true(one.planned < never[d].planned) end
  end)
end)

describe("stages that keep everything", function()
  -- What a plan takes of each device, if a stage takes so much more or less when it is selective.
  local function measurer(of, more)
    return function(flags)
      local needs = {}
      for d, stages in ipairs(of) do
        local sum = 100
        for _, s in ipairs(stages) do sum = sum + (flags[s] and 0 or more[s]) end
        needs[d] = { bytes = sum, grown = 0 }
      end
      return needs
    end
  end

  it("are none where no device takes more", function()
    assert.is_nil(keeps.find(measurer({ { 1 }, { 2 } }, { -5, 0 }), { { 1 }, { 2 } }, 2))
    assert.is_nil(keeps.find(measurer({ { 1, 3 }, { 2, 4 } }, { 5, -1, -6, 0 }),
      { { 1, 3 }, { 2, 4 } }, 4))
  end)

  it("are those that take more", function()
    assert.same({ false, true }, keeps.find(measurer({ { 1 }, { 2 } }, { -5, 1 }),
      { { 1 }, { 2 } }, 2))
    local of = { { 1, 3 }, { 2, 4 } }
    assert.same({ true, false, false, false }, keeps.find(measurer(of, { 9, -1, -6, 0 }), of, 4))
    assert.same({ false, false, true, true }, keeps.find(measurer(of, { -2, -1, 6, 3 }), of, 4))
  end)

  it("are all where nothing else helps", function()
    local function measure(flags)
      local all = flags[1] and flags[2]
      return { { bytes = all and 100 or 120, grown = 0 }, { bytes = all and 100 or 120, grown = 0 } }
    end
    assert.same({ true, true }, keeps.find(measure, { { 1 }, { 2 } }, 2))
  end)

  it("are found by the devices of all copies", function()
    assert.same({ { 1, 2 }, { 1, 2 } }, keeps.stages({ 0, 1, 1, 0 }, 2, 2))
    assert.same({ { 1, 3 }, { 2, 4 } }, keeps.stages({ 0, 1, 0, 1 }, 1, 2))
  end)
end)
