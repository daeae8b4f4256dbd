-- tests/spec/replicas/planner_spec.lua - gp.plan with replicas: what it tries, and that a pipeline
-- runs its result.

local gp = require "gpipe"
local nn = gp.nn

local function model()
  gp.seed(1)
  local layers = {}
  for i = 1, 4 do layers[2 * i - 1], layers[2 * i] = nn.Linear(16, 16), nn.Tanh() end
  return nn.Sequential(layers)
end

local X, Y = gp.randn({ 32, 16 }, { seed = 1 }), gp.randn({ 32, 16 }, { seed = 2 })

local function options(more)
  local all = { devices = 4, replicas = true, loss = nn.MSELoss(), repeats = 1 }
  for key, value in pairs(more or {}) do all[key] = value end
  return all
end

describe("gp.plan with replicas", function()
  it("tries every schedule alone and for two and four replicas", function()
    local plan = assert(gp.plan(model(), { X, Y }, options { schedules = { "1f1b" } }))
    local seen = {}
    for _, row in ipairs(plan.rows) do
      if row.devices == 4 then seen[row.replicas] = true end
    end
    assert.same({ [1] = true, [2] = true, [4] = true }, seen)
  end)

  it("makes a plan that a pipeline runs as it is", function()
    local plan = assert(gp.plan(model(), { X, Y }, options {
      schedules = { { "1f1b", replicas = 2 } }, chunks = 4,
    }))
    assert.equal(2, plan.best.replicas)
    assert.equal("1f1b replicas=2", plan.best.label)
    local opts = plan:options()
    assert.equal("1f1b", opts.schedule)
    assert.equal(2, opts.replicas)
    assert.equal(4, opts.chunks)
    local built = model()
    local pipe <close> = gp.pipeline(built, plan)
    assert.equal(2, pipe.replicas)
    assert.truthy(pipe:step(X, Y) > 0)
  end)

  it("refuses option replicas beside a plan", function()
    local plan = assert(gp.plan(model(), { X, Y }, options { schedules = { "1f1b" } }))
    local good, message = pcall(gp.pipeline, model(), { plan = plan, replicas = 2 })
    assert.is_false(good)
    assert.matches("option 'replicas' stands beside a plan", message)
  end)

  it("leaves out micro-batches that make no block of the tree", function()
    local plan = gp.plan(model(), { X, Y }, options {
      schedules = { { "1f1b", replicas = 2 } }, chunks = { 3, 4 },
    })
    for _, row in ipairs(assert(plan).rows) do assert.equal(4, row.chunks) end
  end)

  it("tries asynchronous schedules, and a pipeline runs such a plan", function()
    local layers = {}
    for i = 1, 8 do layers[i] = { forward = 1e-3, input = 1e-3, weight = 1e-3 } end
    local plan = assert(gp.plan(model(), { X, Y }, options {
      schedules = { { "pipedream_2bw", replicas = 2 } }, chunks = 4,
      profile = gp.profile { layers = layers }, batch = 32,
    }))
    assert.equal("pipedream_2bw replicas=2", plan.best.label)
    local pipe <close> = gp.pipeline(model(), plan)
    assert.equal(2, pipe.replicas)
    pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
    assert.equal(1, #pipe:step(X, Y) + #pipe:flush())
  end)

  -- The best row of a schedule, for four layers of 1 ms for each of three passes.
  local function rated(schedule, count, link)
    local layer = { forward = 1e-3, input = 1e-3, weight = 1e-3, parameter_bytes = 1 << 20 }
    local profile = gp.profile { layers = { layer, layer, layer, layer } }
    local devices = {}
    for d = 1, count do
      devices[d] = { "sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e12 }
    end
    return assert(gp.plan(profile, nil, {
      devices = devices, batch = 8, chunks = 4, link = link, schedules = { schedule },
    })).best
  end

  it("rates a step of a stream, however many mini-batches its rows show", function()
    local one = rated("1f1b", 1).seconds
    for _, batches in ipairs { 1, 3, 8 } do
      assert.near(one, rated({ "pipedream_2bw", batches = batches }, 1).seconds, 1e-9)
    end
  end)

  it("lets replicas of a stream exchange gradients before every update", function()
    local wanted = { "pipedream_2bw", replicas = 2 }
    local fast = rated(wanted, 2, { latency = 0, bandwidth = 1e12 })
    local slow = rated(wanted, 2, { latency = 0, bandwidth = 1e8 })
    -- Half of 4 MiB goes each way; the values go meanwhile. Of three mini-batches the first two
    -- have a forward pass of 4 ms behind them, which hides that much of their gradients' way.
    local short, long, forward = (4 << 20) / 2 / 1e12, (4 << 20) / 2 / 1e8, 4e-3
    assert.near((2 * (long - forward) + long - short) / 3, slow.seconds - fast.seconds, 1e-9)
    assert.equal(4 << 20, slow.parts[1].parameters)
    assert.equal(4 << 20, slow.parts[1].versions)
  end)

  it("counts moments once and the exchange of gradients over a slow link", function()
    local layer = { forward = 1e-3, input = 1e-3, weight = 1e-3, parameter_bytes = 1 << 20 }
    local profile = gp.profile { layers = { layer, layer, layer, layer } }
    local device = { "sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e12 }
    local function seconds(link)
      local plan = assert(gp.plan(profile, nil, {
        devices = { device, device }, batch = 8, chunks = 4, link = link,
        schedules = { { "1f1b", replicas = 2 } },
      }))
      return plan.best.seconds, plan.best.parts[1].optimizer
    end
    local fast, moments = seconds { latency = 0, bandwidth = 1e12 }
    local slow = seconds { latency = 0, bandwidth = 1e8 }
    assert.equal(2 * (4 << 20) / 2, moments) -- two of AdamW, half of the parameters
    -- half of 4 MiB goes each way
    assert.near((4 << 20) / 1e8 - (4 << 20) / 1e12, slow - fast, 1e-9)
  end)
end)
