-- tests/spec/plan/planner_spec.lua - gp.plan: cuts under memory against all cuts, plans that fit
-- when the runtime plans them, figures that bound each other, and what is said where nothing fits.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local even = require "gpipe.pipeline.plan.partition.even"
local minimax = require("gpipe.pipeline.plan.partition").minimax
local partition = require "gpipe.plan.partition"
local nn = gp.nn

local MIB = 2.0 ^ 20

-- ---- cuts under memory --------------------------------------------------------------------------

-- The cheapest of all cuts of a task; nil where none fits.
local function best_of(task)
  local best
  local function try(stage, first, most)
    if best and most >= best then return end
    local last = stage == task.stages and task.layers or first
    for j = last, task.layers - (task.stages - stage) do
      local seconds = task.cost(first, j, stage)
      if seconds and stage == task.stages then
        local all = math.max(most, seconds)
        best = best and math.min(best, all) or all
      elseif seconds then
        try(stage + 1, j + 1, math.max(most, seconds))
      end
    end
  end
  try(1, 1, 0)
  return best
end

local function sum_of(list, i, j)
  local sum = 0
  for k = i, j do sum = sum + list[k] end
  return sum
end

-- Random layers with bytes, edges and micro-batches under way, on devices with random memory.
local function random_task()
  local layers = math.random(1, 9)
  local stages = math.random(1, layers)
  local seconds, bytes, live, room, edge = {}, {}, {}, {}, {}
  for i = 1, layers do seconds[i], bytes[i] = math.random(0, 9), math.random(0, 9) end
  for s = 1, stages do live[s], room[s] = math.random(1, 4), math.random(5, 60) end
  for i = 0, layers do edge[i] = math.random(0, 6) end
  return {
    who = "test", layers = layers, stages = stages,
    least = function(i, j) return sum_of(seconds, i, j) end,
    cost = function(i, j, s)
      local own = live[s] * sum_of(bytes, i, j)
      if own + edge[i - 1] > room[s] then return nil, own > room[s] end
      return math.max(sum_of(seconds, i, j), edge[i - 1])
    end,
  }
end

describe("a cut under memory", function()
  it("is as cheap as the cheapest of all cuts, and there is one if any fits", function()
    math.randomseed(11)
    for _ = 1, 1500 do
      local task = random_task()
      local balance, largest = partition.solve(task)
      assert.are.equal(best_of(task), largest)
      assert.are.equal(largest ~= nil, balance ~= nil)
    end
  end)

  it("that is even has the same largest stage as the minimax cut", function()
    math.randomseed(12)
    for _ = 1, 2000 do
      local costs = {}
      for i = 1, math.random(1, 14) do costs[i] = math.random(0, 9) end
      local stages = math.random(1, #costs)
      local balance, largest = even.cut("test", costs, stages)
      local _, wanted = minimax("test", costs, stages)
      local at, most = 0, 0
      for _, count in ipairs(balance) do
        assert.is_true(count >= 1)
        most, at = math.max(most, sum_of(costs, at + 1, at + count)), at + count
      end
      assert.are.same({ #costs, wanted, wanted }, { at, largest, most })
    end
  end)

  it("that is even spreads small layers before a large one", function()
    assert.are.equal("3,3,3,2,1",
      table.concat(even.cut("test", { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9 }, 5), ","))
  end)
end)

-- ---- plans of profiles --------------------------------------------------------------------------

local function device(name, memory, more)
  local d = { name, memory = memory, flops = 1e12, bandwidth = 1e11 }
  for key, value in pairs(more or {}) do d[key] = value end
  return d
end

local function devices(count, memory, more)
  local list = {}
  for i = 1, count do list[i] = device("sim:" .. i - 1, memory, more) end
  return list
end

-- Layers that are all alike.
local function alike(count, fields)
  local layers = {}
  for i = 1, count do
    layers[i] = {}
    for key, value in pairs(fields) do layers[i][key] = value end
  end
  return gp.profile { layers = layers }
end

local LAYER = { forward = 1, input = 1, weight = 1, recompute = 1, saved_bytes = 1000,
  output_bytes = 100, parameter_bytes = 400 }

-- The stage of each layer.
local function stages_of(balance)
  local of = {}
  for stage, count in ipairs(balance) do
    for _ = 1, count do of[#of + 1] = stage - 1 end
  end
  return of
end

describe("gp.plan of a profile", function()
  it("takes the time of 1F1B on even stages: (m + p - 1) times forward and backward", function()
    local plan = assert(gp.plan(alike(8, LAYER), nil, {
      devices = devices(4, "1MiB"), batch = 8, chunks = 8, schedules = { "1f1b" },
      checkpoint = "never",
    }))
    assert.are.same({ 2, 2, 2, 2 }, plan.best.balance)
    assert.are.near(2 * 3 * (8 + 4 - 1), plan.best.seconds, 1e-9)
    assert.are.near(3 / 11, plan.best.bubble, 1e-9)
    assert.are.equal(0, plan.best.recompute)
    assert.are.near(2 * 3 * 8, plan.lower_bound, 1e-9)
  end)

  it("bounds one micro-batch by its way there and back, beside which weight gradients are made",
    function()
      local plan = assert(gp.plan(alike(4, LAYER), nil, {
        devices = devices(2, "1MiB"), batch = 1, schedules = { "zb_h1", "1f1b" },
      }))
      assert.are.equal("zb_h1", plan.best.label)
      assert.are.near(4 * 2, plan.lower_bound, 1e-9)
      assert.are.near(4 * 2 + 2, plan.best.seconds, 1e-9) -- W of the first stage comes last
    end)

  it("lists plans from the fastest on, none below the bound, none above the memory", function()
    local plan = assert(gp.plan(alike(12, LAYER), nil, { devices = devices(4, 60000), batch = 32 }))
    assert.are.equal(plan.rows[1], plan.best)
    for i, row in ipairs(plan.rows) do
      assert.is_true(row.seconds >= plan.lower_bound * (1 - 1e-9))
      assert.is_true(i == 1 or row.seconds >= plan.rows[i - 1].seconds * (1 - 1e-9))
      for _, bytes in ipairs(row.peak) do assert.is_true(bytes <= 60000) end
    end
  end)

  it("keeps what recomputation would save when there is room, and recomputes when not", function()
    local function policy(memory)
      local plan = assert(gp.plan(alike(8, LAYER), nil, {
        devices = devices(2, memory), batch = 16, chunks = 16, schedules = { "gpipe" },
        optimizer = "SGD",
      }))
      return plan.best.checkpoint, plan.best.recompute
    end
    assert.are.same({ "never", 0 }, { policy "1MiB" })
    local word, seconds = policy(20000)
    assert.are_not.equal("never", word)
    assert.is_true(seconds > 0)
  end)

  it("gives a device with half the speed about half the layers", function()
    local model = nn.Sequential {}
    for i = 1, 12 do model[i] = nn.Linear(128, 128) end
    local plan = assert(gp.plan(model, { gp.zeros { 64, 128 } }, {
      devices = { device("sim:0", "1GiB"), device("sim:1", "1GiB", { flops = 5e11,
        bandwidth = 5e10 }) },
      chunks = 8, schedules = { "1f1b" }, checkpoint = "never",
    }))
    assert.is_true(plan.best.balance[1] >= 8 and plan.best.balance[2] >= 3)
  end)

  it("says of each schedule and policy that does not fit what is largest", function()
    local plan = assert(gp.plan(alike(8, LAYER), nil, {
      devices = devices(2, 20000), batch = 16, chunks = 16, schedules = { "gpipe" },
      optimizer = "SGD",
    }))
    assert.are.equal("gpipe, checkpoint never", plan.rejected[1].what)
    assert.matches("needed on sim:%d, which has 19.5 KiB; the largest part, .* is kept values",
      plan.rejected[1].why)
    assert.matches("gpipe, checkpoint never: ", tostring(plan))
  end)

  it("returns nil, what is largest and what would fit where nothing does", function()
    local profile = alike(8, LAYER)
    local plan, message, code = gp.plan(profile, nil, { devices = devices(1, 9000), batch = 8 })
    assert.are.same({ "nil", "memory" }, { type(plan), code })
    assert.matches("no plan fits 1 device: .* needed on sim:0, which has 8.8 KiB", message)
    local count = tonumber(message:match "It would fit with (%d+) devices like these")
    assert.is_truthy(gp.plan(profile, nil, { devices = devices(count, 9000), batch = 8 }))
    local memory = message:match "with about ([%d.]+) KiB of memory on each device"
    assert.is_truthy(gp.plan(profile, nil, { devices = devices(1, memory .. "KiB"), batch = 8 }))
  end)

  it("keeps layers together and pinned as asked", function()
    local plan = assert(gp.plan(alike(6, LAYER), nil, {
      devices = devices(2, "1MiB"), batch = 4, schedules = { "1f1b" }, together = { { 1, 5 } },
    }))
    assert.are.same({ 5, 1 }, plan.best.balance)
    plan = assert(gp.plan(alike(6, LAYER), nil, {
      devices = devices(2, "1MiB"), batch = 4, schedules = { "1f1b" }, pinned = { [2] = 1 },
    }))
    for _, row in ipairs(plan.rows) do
      if row.devices == 2 then assert.are.same({ 1, 5 }, row.balance) end
    end
  end)

  it("leaves out schedules that cannot keep layers together or pinned, and says so", function()
    local cases = {
      { together = { { 1, 4 } } }, { together = { { 2, 8 } } }, { pinned = { [4] = 0 } },
      { pinned = { [4] = 0, [9] = 1 } }, { pinned = { [9] = 3 } }, { together = { { 1, 9 } } },
    }
    for _, conditions in ipairs(cases) do
      local plan = assert(gp.plan(alike(9, LAYER), nil, { devices = devices(2, "1MiB"), batch = 4,
        together = conditions.together, pinned = conditions.pinned }))
      for _, row in ipairs(plan.rows) do
        local of = stages_of(row.balance)
        for _, group in ipairs(conditions.together or {}) do
          local first, last = group[1], group[2]
          assert.equal(of[first], of[last])
        end
        for layer, stage in pairs(conditions.pinned or {}) do assert.equal(stage, of[layer]) end
      end
    end
    local plan = assert(gp.plan(alike(9, LAYER), nil,
      { devices = devices(2, "1MiB"), batch = 4, together = { { 1, 4 } } }))
    assert.truthy(tostring(plan):find("interleaved_1f1b stages_per_device=4: no cut of 9 layers "
      .. "into 8 stages keeps the layers together", 1, true))
  end)

  it("plans PipeDream's replicas: one large layer is shared by the devices", function()
    local profile = gp.profile { layers = {
      { forward = 1, weight = 1 }, { forward = 6, weight = 6 }, { forward = 1, weight = 1 },
    } }
    local plan = assert(gp.plan(profile, nil, {
      devices = devices(4, "1MiB"), batch = 8, chunks = 8, replicas = true,
    }))
    local layers, used = 0, 0
    for _, stage in ipairs(plan.replicated.stages) do
      layers, used = layers + stage.layers, used + stage.devices
    end
    assert.are.equal(3, layers)
    assert.is_true(used <= 4)
    assert.are.near(4, plan.replicated.seconds, 1e-9) -- 16 seconds of work on four devices
  end)

  it("comes within 10 % of GPipe's Table 2 for a Transformer with 32 micro-batches", function()
    local one = { forward = 1, input = 1, weight = 1, recompute = 1, saved_bytes = 10,
      output_bytes = 1, parameter_bytes = 4 }
    local function speed(count)
      local plan = assert(gp.plan(alike(48, one), nil, {
        devices = devices(count, "1GiB"), batch = 32, chunks = 32, schedules = { "gpipe" },
        checkpoint = "always",
      }))
      return 1 / plan.rows[1].seconds, plan
    end
    for _, row in ipairs { { 2, 1.8 }, { 4, 3.4 }, { 8, 6.3 } } do
      local k, published = row[1], row[2]
      local formula = k * 32 / (32 + k - 1)
      local ratio = speed(k) * (48 * 4 * 32)
      assert.is_true(math.abs(ratio / formula - 1) < 0.1)
      -- the paper's figures are relative to two devices and one micro-batch, which is as one device
      assert.is_true(math.abs(ratio / published - 1) < 0.12)
    end
  end)
end)

-- ---- plans of models ----------------------------------------------------------------------------

local function gpt(layers, width)
  return gp.models.gpt2 { layers = layers, width = width, heads = 4, context = 32,
    vocabulary = 200, dropout = 0 }
end

local function ids(rows) return gp.zeros({ rows, 32 }, { dtype = "i64" }) end

describe("gp.plan of a model", function()
  it("fits when the runtime plans it: the bytes of its dry plan are within the memory", function()
    local model = gpt(6, 64)
    for _, memory in ipairs { 6 * MIB, 4 * MIB, 3 * MIB } do
      local plan = assert(gp.plan(model, { ids(16), ids(16) }, {
        devices = devices(4, memory), loss = nn.CrossEntropyLoss(), optimizer = "Adam",
      }))
      local o, best = plan:options(), plan.best
      o.devices, o.sample = {}, { ids(16), ids(16) }
      for d = 1, best.devices do o.devices[d] = { own = true } end
      local at, report = 0, gp.dry_run(model, o):memory()
      local held, seen = {}, {}
      for s, count in ipairs(best.balance) do
        local made = gp.schedule.resolve(best.schedule, best.devices, best.chunks)
        local d = made.placement[s - 1] + 1
        for i = at + 1, at + count do
          for _, entry in ipairs(model[i]:parameters()) do
            local count_here = seen[entry.param] and 0 or entry.param:numel()
            held[d], seen[entry.param] = (held[d] or 0) + 8 * count_here, true -- moments
          end
        end
        at = at + count
      end
      for d, one in ipairs(report) do
        assert.is_true(one.planned + held[d] <= memory)
        assert.are.equal(best.peak[d], one.planned + held[d])
      end
    end
  end)

  it("says of what the bytes are that the runtime plans", function()
    for _, checkpoint in ipairs { "never", "always" } do
      local plan = assert(gp.plan(gpt(8, 128), { ids(16), ids(16) }, {
        devices = devices(2, "1GiB"), chunks = 8, schedules = { "1f1b" }, checkpoint = checkpoint,
        loss = nn.CrossEntropyLoss(),
      }))
      for d, parts in ipairs(plan.best.parts) do
        local sum = 0
        for _, bytes in pairs(parts) do sum = sum + bytes end
        assert.are.equal(plan.best.peak[d], sum)
      end
    end
  end)

  local function blocks()
    local list = { nn.Embedding(50, 24), nn.BatchNorm1d(32) }
    for i = 3, 7 do list[i] = nn.TransformerEncoderLayer(24, 2, 48, { causal = true }) end
    list[8] = nn.Linear(24, 50)
    return nn.Sequential(list)
  end

  it("foresees the peak of CPU devices to the byte, moments and scratch of threads included",
    function()
      local x = gp.randint(0, 50, { 8, 32 })
      local CASES = {
        { "1f1b", blocks, "AdamW", 1, "never" }, { "zb_h1", blocks, "SGD", 2, "selective" },
        { "zbv", function() return gpt(4, 32) end, "AdamW", 2, "always" },
        { "chimera", blocks, "Adam", 1, "never" },
      }
      for _, case in ipairs(CASES) do
        local name, make, optimizer, threads, checkpoint = table.unpack(case)
        local model = make()
        local plan = assert(gp.plan(model, { x, x }, {
          devices = { { "cpu:0", threads = threads }, { "cpu:1", threads = threads } }, chunks = 4,
          loss = nn.CrossEntropyLoss(), optimizer = optimizer, schedules = { name },
          checkpoint = checkpoint, repeats = 1,
        }))
        local pipe <close> = gp.pipeline(model, plan)
        pipe:use(gp.optim[optimizer](pipe:parameters(), { lr = 1e-3 }))
        pipe:step(x, x)
        for d, one in ipairs(pipe:memory()) do
          assert.are.equal(one.measured, plan.best.peak[d], name)
        end
      end
    end)

  it("plans what a pipeline under the same caps then runs", function()
    local x = gp.randint(0, 50, { 8, 32 })
    local model, ran = blocks(), 0
    for _, kib in ipairs { 850, 750 } do
      local cpus = {}
      for d = 1, 2 do cpus[d] = { "cpu:" .. d - 1, threads = 1, memory = kib .. "KiB" } end
      local plan = gp.plan(model, { x, x }, { devices = cpus, loss = nn.CrossEntropyLoss(),
        schedules = { "1f1b", "zb_h1" }, repeats = 1 })
      if plan then
        local pipe <close> = gp.pipeline(model, plan)
        pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-3 }))
        pipe:step(x, x)
        ran = ran + 1
      end
    end
    assert.are.equal(2, ran)
  end)

  it("leaves random numbers, values and modes as they were", function()
    local function fresh()
      gp.seed(5)
      return nn.Sequential { nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2) }
    end
    fresh()
    local before = gp.randn({ 2 }):totable()
    local model = fresh()
    assert(gp.plan(model, { gp.ones { 8, 4 } }, { devices = devices(2, "1MiB") }))
    assert.are.same(before, gp.randn({ 2 }):totable())
  end)

  it("prices selective recomputation between keeping and running everything again", function()
    local list = {}
    for i = 1, 6 do
      list[i] = nn.Sequential { nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Dropout(0.1),
        nn.Linear(256, 64) }
    end
    local model, x = nn.Sequential(list), gp.ones { 512, 64 }
    local function best(policy)
      return assert(gp.plan(model, { x }, { devices = devices(2, "1GiB"), chunks = 4,
        schedules = { "gpipe" }, checkpoint = { policy } })).best
    end
    local never, some, always = best "never", best "selective", best "always"
    assert.is_true(never.seconds < some.seconds and some.seconds < always.seconds)
    assert.is_true(0 < some.recompute and some.recompute < always.recompute)
    assert.is_true(math.max(table.unpack(some.peak)) < math.max(table.unpack(never.peak)))
    local cap, shown = math.floor(1.07 * math.max(table.unpack(some.peak))), {}
    local plan = assert(gp.plan(model, { x }, { devices = devices(2, cap), chunks = 4,
      schedules = { "gpipe" } }))
    for _, row in ipairs(plan.rows) do shown[row.checkpoint] = true end
    assert.is_true(shown.selective and not shown.never)
  end)

  it("plans a 96-layer GPT over 64 devices", function() -- scripts/bench/plan times it
    local model = gp.models.gpt2 { layers = 96, width = 1024, heads = 16, context = 512 }
    local x = gp.zeros({ 1, 512 }, { dtype = "i64" })
    local plan = assert(gp.plan(model, { x, x }, {
      devices = gp.cluster { hosts = 8, devices = 8, memory = "16GiB", flops = 312e12,
        bandwidth = 2e12 },
      batch = 512, loss = nn.CrossEntropyLoss(),
    }))
    assert.is_true(plan.best.seconds < 2 * plan.lower_bound)
  end)
end)

-- ---- mistakes -----------------------------------------------------------------------------------

describe("gp.plan refuses", function()
  local profile = alike(2, LAYER)
  local cases = {
    { "an unknown option", { chunk = 3 }, "did you mean 'chunks'" },
    { "an unknown schedule", { schedules = { "1f1c" } }, "did you mean '1f1b'" },
    { "an unknown policy", { checkpoint = "alway" }, "did you mean 'always'" },
    { "an unknown optimizer", { optimizer = "AdmW" }, "did you mean 'AdamW'" },
    { "a number of micro-batches of 0", { chunks = 0 }, "an integer >= 1" },
    { "no policy", { checkpoint = {} }, "option 'checkpoint' is empty, expected one of never" },
    { "a group of layers that is none", { together = { 1, 2 } }, "together: group 1 is 1" },
    { "an empty group of layers", { together = { {} } }, "together: group 1 is empty" },
    { "a layer to keep that is not there", { together = { { 1, 3 } } }, "together: layer 3" },
    { "a stage that is none", { pinned = { [1] = -1 } }, "layer 1 is pinned to stage -1" },
    { "conditions that no schedule keeps", { devices = 2, pinned = { [1] = 1 } },
      "expected fewer conditions (options 'together' and 'pinned')" },
    { "a name that is no device's", { devices = { "x" } }, "gp.plan: device 'x' cannot be used" },
    { "no devices", { devices = {} }, "expected at least one" },
    { "a sim device without memory", { devices = { { "sim:0" } } }, 'expected memory = "8GiB"' },
    { "a device that is not there", { devices = { "gpu:7" } }, "gpu:7" },
  }
  for _, case in ipairs(cases) do
    it(case[1], function() fails_with(case[3], gp.plan, profile, nil, case[2]) end)
  end

  for _, memory in ipairs { "8 GB", "8GB", "abc", -1, 0, 0 / 0, "" } do
    it("a memory of " .. tostring(memory), function()
      fails_with('expected a number of bytes above 0, or a text such as "8GiB"', gp.plan, profile,
        nil, { devices = { { "sim:0", memory = memory } } })
    end)
  end

  it("a memory of no bytes without proposing the same text again", function()
    local good, message = pcall(gp.plan, profile, nil, { devices = { { "sim:0", memory = "0GiB" } } })
    assert.is_false(good)
    assert.falsy(message:find("did you mean", 1, true))
  end)

  it("a sample beside a profile", function()
    fails_with("beside a profile, expected nil", gp.plan, profile, { gp.ones { 1 } }, {})
  end)
end)

-- ---- pipelines ----------------------------------------------------------------------------------

describe("a pipeline", function()
  local function model()
    gp.seed(3)
    return nn.Sequential { nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(),
      nn.Linear(16, 4) }
  end
  local x, y = gp.ones { 8, 8 }, gp.zeros({ 8 }, { dtype = "i64" })
  local two = { { "cpu:0", threads = 1, memory = "1MiB" }, { "cpu:1", threads = 1,
    memory = "1MiB" } }

  local function loss_of(given)
    local pipe <close> = gp.pipeline(model(), given)
    return pipe:step(x, y), pipe
  end

  it("carries out a plan", function()
    local plan = assert(gp.plan(model(), { x, y }, { devices = two, loss = nn.CrossEntropyLoss() }))
    local pipe <close> = gp.pipeline(model(), plan)
    assert.are.same(plan.best.balance, pipe.balance)
    assert.are.equal(plan.best.chunks, pipe.chunks)
    local loss = pipe:step(x, y)
    assert.are.equal(loss_of { chunks = plan.best.chunks, loss = nn.CrossEntropyLoss() }, loss)
  end)

  it("plans itself where option plan is \"auto\"", function()
    local loss, pipe = loss_of { plan = "auto", devices = two, sample = { x, y },
      loss = nn.CrossEntropyLoss() }
    assert.is_true(loss > 0)
    assert.are.equal(5, sum_of(pipe.balance, 1, #pipe.balance))
  end)

  it("says what stands beside a plan that decides it", function()
    local plan = assert(gp.plan(model(), { x, y }, { devices = two, loss = nn.CrossEntropyLoss() }))
    fails_with("'chunks' stands beside a plan", gp.pipeline, model(), { plan = plan, chunks = 2 })
    fails_with("needs option 'sample'", gp.pipeline, model(), "auto")
    fails_with('expected "auto"', gp.pipeline, model(), { plan = "atuo" })
  end)

  it("has no stages that are updated apart where layers share a parameter", function()
    local tied = gp.models.gpt2 { layers = 2, width = 16, heads = 2, context = 8, vocabulary = 31 }
    local words = gp.randint(0, 31, { 4, 8 })
    local plan = assert(gp.plan(tied, { words, words }, { devices = devices(2, "1GiB"),
      loss = nn.CrossEntropyLoss(), schedules = { "pipedream", "1f1b" } }))
    for _, row in ipairs(plan.rows) do
      assert.is_true(row.label ~= "pipedream" or #row.balance == 1)
    end
    local other = { devices = devices(2, "1GiB"), loss = nn.CrossEntropyLoss(),
      schedules = { "pipedream" }, pinned = { [1] = 0, [4] = 1 } }
    local none, why = gp.plan(tied, { words, words }, other)
    assert.is_nil(none)
    assert.truthy(why:find("layers 1, 4 share a parameter", 1, true), why)
  end)

  it("is refused on devices that are not there, and where nothing fits", function()
    local plan = assert(gp.plan(model(), { x, y }, { devices = devices(2, "1MiB"),
      loss = nn.CrossEntropyLoss() }))
    fails_with("'sim:0', which is not there", gp.pipeline, model(), plan)
    fails_with("no plan fits", gp.pipeline, model(), { plan = "auto", sample = { x, y },
      loss = nn.CrossEntropyLoss(), devices = { { "cpu:0", memory = 1000 } } })
  end)
end)
