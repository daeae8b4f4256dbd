-- tests/spec/plan/planner_norms_spec.lua - gp.plan with sync_batch_norm: how often replicas wait for
-- each other is what the runtime plans, and the simulated step contains it.

local case_of = require "gpipe.plan.case"
local gp = require "gpipe"
local norms = require "gpipe.plan.norms"
local nn = gp.nn

-- name, model, shape of a row
local MODELS = {
  { "norms behind linear layers", function()
    return nn.Sequential { nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8),
      nn.BatchNorm1d(8), nn.Linear(8, 4) }
  end, { 8 } },
  { "a norm that reads the input", function()
    return nn.Sequential { nn.BatchNorm1d(8), nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(),
      nn.Linear(8, 4) }
  end, { 8 } },
  { "nested layers", function()
    return nn.Sequential { nn.Linear(8, 8), nn.Sequential { nn.BatchNorm1d(8), nn.Linear(8, 6),
      nn.BatchNorm1d(6) }, nn.Sequential { nn.Linear(6, 6), nn.BatchNorm1d(6) }, nn.Linear(6, 4) }
  end, { 8 } },
  { "images", function()
    return nn.Sequential { nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3),
      nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 4 * 4, 4) }
  end, { 3, 8, 8 } },
}

local function cuts_of(layers)
  local list = {}
  for first = 1, layers - 2 do list[#list + 1] = { first, 1, layers - first - 1 } end
  return list
end

-- What norms.add puts into the costs of a case with two replicas and this cut.
local function foreseen(model, balance)
  local costs, ranges, at, on = {}, {}, 0, {}
  for s, count in ipairs(balance) do
    ranges[s], at, on[s] = { at + 1, at + count }, at + count, { 1, 2 }
  end
  local device = { name = "sim:0", link = { latency = 1e-3, bandwidth = 1e9 } }
  norms.add({ norms = norms.of(model), devices = { device, device } },
    { shape = { replicas = 2 }, on = on }, costs, ranges)
  return costs.gathers
end

describe("the gathers of sync_batch_norm", function()
  for _, case in ipairs(MODELS) do
    it("are foreseen as the runtime plans them: " .. case[1], function()
      local shape = table.move(case[3], 1, #case[3], 2, { 16 })
      for _, balance in ipairs(cuts_of(#case[2]())) do
        for _, checkpoint in ipairs { "never", "always", "selective" } do
          for _, schedule in ipairs { "1f1b", "zb_h1" } do
            local planned = gp.dry_run(case[2](), {
              balance = balance, schedule = schedule, devices = 6, chunks = 4, replicas = 2,
              sync_batch_norm = true, checkpoint = checkpoint, loss = nn.MSELoss(),
              sample = { gp.zeros(shape), gp.zeros { 16, 4 } },
            }):costs().gathers
            local made = foreseen(case[2](), balance)
            assert.same(planned.F, made.F)
            assert.same(planned.B, made.B)
            assert.same(planned.I, made.I)
            assert.same({ 0, 0, 0 }, planned.W)
          end
        end
      end
    end)
  end
end)

describe("gp.plan with replicas", function()
  it("lets each device exchange gradients and values behind its own last action", function()
    local rate = require "gpipe.plan.rate"
    local request = require "gpipe.plan.request"
    local candidates = require "gpipe.plan.candidates"
        local layers, list = {}, {}
    for i = 1, 2 do layers[i] = nn.Linear(64, 64) end
    for d = 1, 4 do
      list[d] = { "sim:" .. d - 1, memory = "1GiB", flops = 1e12, bandwidth = 1e11,
        link = { latency = 1e-5, bandwidth = 1e9 } }
    end
    local problem = request.read(nn.Sequential(layers), { gp.zeros { 16, 64 }, gp.zeros { 16, 64 } },
      { devices = list, loss = nn.MSELoss(), optimizer = "SGD", chunks = 4 })
    local shape = assert(candidates.shape({ "gpipe", replicas = 2 }, 4, 4))
    shape.asked = 4
    local case = case_of(problem, shape, candidates.lowered(shape, "never"), "never")
    local ran = rate.run(problem, case, { 1, 1 })
    local exchange = 2e-5 + 2 * (64 * 64 + 64) * 4 / 2 / 1e9 -- bytes there and back, half of each
    local finish, last = ran.simulation.finish, 0
    for d = 1, 4 do last = math.max(last, finish[d] + exchange) end
    assert.equal(last, ran.seconds)
    assert.equal(math.max(table.unpack(finish)), ran.simulation.makespan)
  end)
end)

describe("gp.plan with sync_batch_norm", function()
  local LATENCY = 1e-3

  local function plan(sync, schedule)
    local list = {}
    for d = 1, 2 do
      list[d] = { "sim:" .. d - 1, memory = "1GiB", flops = 1e12, bandwidth = 1e11,
        link = { latency = LATENCY, bandwidth = 1e9 } }
    end
    return assert(gp.plan(MODELS[1][2](), { gp.zeros { 16, 8 }, gp.zeros { 16, 4 } }, {
      devices = list, loss = nn.MSELoss(), optimizer = "SGD", chunks = 4, checkpoint = "never",
      schedules = { schedule or { "1f1b", replicas = 2 } }, sync_batch_norm = sync,
    }))
  end

  it("simulates a step that waits at every norm, forward and back", function()
    local without, with = plan(false), plan(true)
    local waits = (with.best.seconds - without.best.seconds) / (LATENCY + (512 + 8 * 8) / 1e9)
    assert.is_true(math.abs(waits - 4 * 2 * 2) < 1e-3) -- micro-batches, norms, ways
    assert.equal(2, with.best.replicas)
  end)

  it("plans the parts, byte for byte, and hands the option to gp.pipeline", function()
    local row = plan(true)
    local dry = gp.dry_run(MODELS[1][2](), {
      balance = row.best.balance, schedule = "1f1b", devices = { { own = true }, { own = true } },
      chunks = 4, replicas = 2, sync_batch_norm = true, checkpoint = "never", loss = nn.MSELoss(),
      sample = { gp.zeros { 16, 8 }, gp.zeros { 16, 4 } },
    })
    local edges = 0
    for d, one in ipairs(dry:memory()) do
      edges = edges + (one.areas.edges or 0)
      assert.equal(one.areas.edges, row.best.parts[d].edges)
    end
    assert.is_true(row.best.exact and edges > 0)
    assert.is_true(row:options().sync_batch_norm)
    assert.is_nil(plan(false):options().sync_batch_norm)
  end)

  it("costs nothing where there is one replica", function()
    assert.equal(plan(false, "1f1b").best.seconds, plan(true, "1f1b").best.seconds)
    assert.is_nil(plan(true, "1f1b"):options().sync_batch_norm)
  end)
end)
