-- tests/spec/plan/auto_best_spec.lua - checkpoint = "auto" is never slower by the cost model than a
-- policy by name that fits, and fits where one of them does.
local gp = require "gpipe"
local nn = gp.nn

local SIMPLE, CAPS = { "never", "selective", "except_last", "always" }, 6

local function images(size)
  return { gp.zeros { 16, 3, size, size }, gp.zeros({ 16 }, { dtype = "i64" }) }
end

local function mlp_with_skips()
  local list = { nn.Sequential { nn.Linear(32, 32), nn.Stash "skip" } }
  for i = 2, 7 do list[i] = nn.Sequential { nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32) } end
  list[8] = nn.Sequential { nn.Pop "skip", nn.Tanh() }
  return nn.Sequential(list)
end

-- A GPT's embedding and head share their weights.
local MODELS = {
  { "a GPT with tied weights", function()
    local ids = gp.zeros({ 16, 32 }, { dtype = "i64" })
    local size = { layers = 4, width = 64, heads = 2, context = 32, vocabulary = 64 }
    return gp.models.gpt2(size), { ids, ids }, nn.CrossEntropyLoss()
  end },
  { "an MLP with a skip", function()
    return mlp_with_skips(), { gp.zeros { 64, 32 }, gp.zeros { 64, 32 } }, nn.MSELoss()
  end },
  { "a ResNet-18", function()
    return gp.models.resnet(18, { classes = 10 }), images(32), nn.CrossEntropyLoss()
  end, few = true },
  { "a small AmoebaNet-D", function()
    return gp.models.amoebanetd { classes = 10, layers = 3, filters = 16 }, images(224),
      nn.CrossEntropyLoss()
  end, few = true },
}

-- name, devices, stages
local SCHEDULES = {
  { "gpipe", 2, 2 }, { "1f1b", 2, 2 }, { { "interleaved_1f1b", stages_per_device = 2 }, 2, 4 },
  { "zb_h1", 2, 2 }, { "dualpipe", 4, 4 },
}

local function evenly(layers, stages)
  local balance = {}
  for s = 1, stages do balance[s] = layers // stages + (s <= layers % stages and 1 or 0) end
  return balance
end

-- Plan a step under a policy and per-device caps: its seconds, bytes of each device, and whether
-- it fits.
local function planned(case, policy, caps)
  local devices = {}
  for d = 1, case.devices do devices[d] = { own = false, memory = caps and caps[d] } end
  local dry = gp.dry_run(case.model, {
    balance = evenly(#case.model, case.stages), devices = devices, chunks = 8,
    schedule = case.schedule, checkpoint = policy, loss = case.loss, sample = case.sample,
  })
  local bytes = {}
  for d, one in ipairs(dry:memory()) do bytes[d] = one.planned end
  return { seconds = dry.core:step_time(dry.core), bytes = bytes, fits = dry.fits }
end

local function is_within(bytes, caps)
  for d, cap in ipairs(caps) do
    if bytes[d] > cap then return false end
  end
  return true
end

-- The caps from the least that a policy takes of each device to all.
local function caps_between(plans, part)
  local caps = {}
  for d, all in ipairs(plans.never.bytes) do
    local least = all
    for _, one in pairs(plans) do least = math.min(least, one.bytes[d]) end
    caps[d] = math.ceil(least + part * (all - least))
  end
  return caps
end

-- The seconds of the fastest policy by name that fits; nil if none does.
local function fastest(plans, caps)
  local best
  for _, one in pairs(plans) do
    if is_within(one.bytes, caps) then best = math.min(best or one.seconds, one.seconds) end
  end
  return best
end

describe("checkpoint = \"auto\", by the cost model,", function()
  for _, entry in ipairs(MODELS) do
    for i, schedule in ipairs(SCHEDULES) do
      if not entry.few or i == 1 then
        local name = type(schedule[1]) == "table" and schedule[1][1] or schedule[1]
        it(("is as fast as every policy that fits: %s, %s"):format(entry[1], name), function()
          local case = { schedule = schedule[1], devices = schedule[2], stages = schedule[3] }
          case.model, case.sample, case.loss = entry[2]()
          local plans, compared = {}, 0
          for _, policy in ipairs(SIMPLE) do plans[policy] = planned(case, policy) end
          for k = 0, CAPS - 1, entry.few and 2 or 1 do
            local caps = caps_between(plans, k / (CAPS - 1))
            local least, auto = fastest(plans, caps), planned(case, "auto", caps)
            if least then
              compared = compared + 1
              assert.is_true(auto.fits, "does not fit at cap " .. k)
              assert.is_true(auto.seconds <= least * (1 + 1e-9),
                ("cap %d: %g against %g s"):format(k, auto.seconds, least))
            end
          end
          assert.is_true(compared > 0)
        end)
      end
    end
  end

  it("and gives the bits of never where it follows a policy by name", function()
    gp.seed(2)
    local x, y = gp.randn { 64, 32 }, gp.randn { 64, 32 }
    local case = { schedule = SCHEDULES[3][1], devices = 2, stages = 4, model = mlp_with_skips(),
      sample = { x, y }, loss = nn.MSELoss() }
    local plans = {}
    for _, policy in ipairs(SIMPLE) do plans[policy] = planned(case, policy) end
    local caps = caps_between(plans, 0.1)
    local function train(policy, some)
      gp.seed(3)
      local devices = {}
      for d = 1, 2 do devices[d] = { "cpu:" .. d - 1, threads = 1, memory = some and some[d] } end
      local pipe <close> = gp.pipeline(mlp_with_skips(), {
        balance = { 2, 2, 2, 2 }, devices = devices, chunks = 8, schedule = case.schedule,
        checkpoint = policy, loss = case.loss, seed = 5,
      })
      local losses, opt = {}, gp.optim.SGD(pipe:parameters(), { lr = 1e-2 })
      for i = 1, 3 do
        losses[i] = ("%a"):format(pipe:step(x, y))
        opt:step()
      end
      return table.concat(losses, " "), pipe:memory()
    end
    local wanted, got, memory = train "never", train("auto", caps)
    assert.equal(wanted, got)
    for d, one in ipairs(memory) do assert.is_true(one.measured <= caps[d]) end
  end)
end)
