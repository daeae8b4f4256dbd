-- tests/spec/pipeline/seven_stages_spec.lua - an LSTM and a GPT of seven layers on seven stages
-- train with the bits of one stage; models may return more than their loss needs; and the memory of
-- plans in halves.
local gp = require "gpipe"
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn

local STAGES = 7

local function lstm()
  gp.seed(5)
  return nn.Sequential {
    nn.Linear(6, 9), nn.LSTM(9, 7), nn.Dropout(0.2),
    nn.LSTM(7, 5, { layers = 2, bidirectional = true }), nn.Tanh(), nn.GRU(10, 8), nn.Linear(8, 3),
  }
end

local MODELS = {
  { "an LSTM", lstm, gp.randn({ 7, 5, 6 }, { seed = 1 }), gp.randn({ 7, 5, 3 }, { seed = 2 }),
    nn.MSELoss() },
  { "a GPT", models.gpt(), models.ids(7, 6), models.ids(7, 6), nn.CrossEntropyLoss() },
}

-- Returns losses and state after three steps on so many stages.
local function train(case, stages, options)
  local balance, devices = {}, {}
  for s = 1, stages do
    balance[s], devices[s] = stages == 1 and STAGES or 1, { "cpu:0", threads = 1 }
  end
  local pipe <close> = gp.pipeline(case[2](), {
    balance = balance, devices = devices, chunks = 3, loss = case[5], precision = options.precision,
    schedule = options.schedule, checkpoint = options.checkpoint,
  })
  pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 0.01 }), { clip_norm = 1 })
  local losses = {}
  for step = 1, 3 do losses[step] = pipe:step(case[3], case[4]) end
  return losses, pipe:state_dict()
end

describe("seven stages", function()
  for _, case in ipairs(MODELS) do
    for _, options in ipairs {
      { schedule = "1f1b" }, { schedule = "gpipe", checkpoint = "always" }, { schedule = "zb_h1" },
      { schedule = "1f1b", precision = "bf16" },
    } do
      it(("train %s with the bits of one: %s, %s"):format(case[1], options.schedule,
        options.precision or "f32"), function()
        local losses, state = train(case, 1, { precision = options.precision })
        local others, cut = train(case, STAGES, options)
        assert.are.same(losses, others)
        assert.is_nil(training.differing(state, cut))
      end)
    end
  end
end)

describe("a further value that a model returns", function()
  local Both = nn.class("Both")
  function Both:init() self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3) end
  function Both:forward(x)
    local h = self.a(x):tanh()
    return self.b(h), (h * h):mean(2)
  end
  local entropy = nn.CrossEntropyLoss()
  local ids = gp.tensor({ 0, 1, 2, 0, 1, 2, 1 }, { dtype = "i64" })

  it("may be part of the loss, with the same bits for every cut", function()
    local function step(balance)
      gp.seed(1)
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 4), nn.ReLU(), Both() }, {
        balance = balance, chunks = 3, loss = function(y, beside, target)
          local sum, count = entropy:terms(y, target)
          return sum + beside:sum() * 0.1, count
        end,
      })
      return pipe:step(models.rows_of(7, 4), ids), training.gradients(pipe)
    end
    local want, gradients = step { 3 }
    for _, balance in ipairs { { 1, 2 }, { 1, 1, 1 } } do
      local loss, others = step(balance)
      assert.equal(want, loss)
      assert.is_nil(training.differing(gradients, others))
    end
  end)
end)

describe("a plan in halves", function()
  for _, precision in ipairs { "f32", "bf16", "f16" } do
    it("allocates all before the first step, and steps allocate nothing: " .. precision, function()
      local x, y = models.ids(7, 6), models.ids(7, 6)
      local loss_scale = precision == "f16" and { initial = 1 } or nil
      local pipe <close> = gp.pipeline(models.gpt()(), {
        balance = { 3, 4 }, devices = training.devices(2, 1), chunks = 3, precision = precision,
        loss = nn.CrossEntropyLoss(), sample = { x, y }, loss_scale = loss_scale,
      })
      local before = gp.memory().cpu
      pipe:step(x, y)
      local first = pipe.stats.peak_bytes
      pipe:step(x, y)
      local after = gp.memory().cpu
      assert.equal(before.live, after.live)
      assert.equal(before.allocations, after.allocations)
      assert.are.same(first, pipe.stats.peak_bytes)
    end)
  end
end)
