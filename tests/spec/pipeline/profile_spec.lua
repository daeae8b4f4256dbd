-- tests/spec/pipeline/profile_spec.lua - pipe:profile on CPUs counts every instruction and its
-- cost, and does not change the training.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local models = require "tests.support.models"
local profile = require "tests.support.profile"
local nn, optim = gp.nn, gp.optim

local TWO = { "cpu:0", "cpu:1" }
local ROWS, IN, WIDE, OUT = 12, 8, 16, 4

-- Opens a pipeline of two Linears, for steps of 12 rows and 3 micro-batches.
local function small(fields)
  local options = { balance = { 2, 1 }, chunks = 3, loss = nn.MSELoss() }
  for key, value in pairs(fields or {}) do options[key] = value end
  local pipe = gp.pipeline(nn.Sequential {
    nn.Linear(IN, WIDE), nn.Tanh(), nn.Linear(WIDE, OUT),
  }, options)
  return pipe, gp.randn { ROWS, IN }, gp.randn { ROWS, OUT }
end

local function row(p, phase, op)
  for _, r in ipairs(p.rows) do
    if r.phase == phase and r.op == op then return r end
  end
end

-- Counts the FLOP of a Linear's product: 2 rows in out, and a bias.
local function linear(inputs, outputs) return 2 * ROWS * inputs * outputs end

describe("pipe:profile", function()
  it("counts every op of a step, and its FLOP", function()
    local pipe <close>, x, y = small { checkpoint = "never" }
    local p = pipe:profile(x, y, { ceilings = false })
    assert.equal(1, p.runs)
    assert.equal(3, row(p, "forward", "tanh").count)
    local count, flop = 0, 0
    for _, r in ipairs(p.rows) do
      if r.phase == "forward" and r.op == "linear" then
        count, flop = count + r.count, flop + r.flop
      end
    end
    assert.equal(6, count)
    local bias = ROWS * (WIDE + OUT)
    assert.equal(linear(IN, WIDE) + linear(WIDE, OUT) + bias, flop)
    assert.equal(linear(WIDE, OUT), row(p, "backward", "linear_dx").flop)
    assert.is_nil(row(p, "recompute", "linear"))
  end)

  it("shows what is recomputed, and the FLOP of the cost model", function()
    local pipe <close>, x, y = small { checkpoint = "always" }
    local p = pipe:profile(x, y, { ceilings = false, by = "action" })
    assert.is_truthy(row(p, "recompute", "1R"))
    for stage = 0, 1 do
      for _, op in ipairs { "F", "B", "R" } do
        local inner = require("gpipe.pipeline.object").inside(pipe)
        local _, plan = next(inner.plans)
        local flop, bytes = inner.core:cost(plan.handle, stage, op)
        local function sum(field)
          return profile.sum(p, field, function(r) return r.op == stage .. op end)
        end
        assert.equal(3 * flop, sum "flop") -- micro-batches of 4 rows each
        assert.equal(3 * bytes, sum "bytes")
      end
    end
  end)

  it("times the optimizer's update in a function, and returns what that returned", function()
    local pipe <close>, x, y = small()
    local opt = optim.AdamW(pipe:parameters(), { lr = 1e-3 })
    local p = pipe:profile(function()
      local loss = pipe:step(x, y)
      opt:step()
      return loss
    end, { ceilings = false })
    assert.is_true(p.result > 0)
    local n = 0
    for _, entry in ipairs(pipe:parameters()) do n = n + entry.value:numel() end
    local bytes = profile.sum(p, "bytes", function(r) return r.op == "adamw" end)
    assert.is_true(bytes >= 7 * 4 * n) -- padding between parameters is updated too
    assert.is_true(bytes < 7 * 4 * (n + 64 * #pipe:parameters()))
  end)

  it("has sums that agree, by op, layer and action", function()
    for _, by in ipairs { "op", "layer", "action" } do
      local p = profile.take(TWO, {}, { ceilings = false, by = by })
      profile.check_sums(p)
      assert.equal(by, p.by)
    end
  end)

  it("reports the time of all actions in the step before", function()
    local p = profile.take(TWO)
    for _, device in ipairs(p.devices) do
      assert.is_true(device.replayed > 0)
      assert.is_true(math.abs(device.kernels + device.gaps - device.replayed) < 1e-9)
    end
    local pipe <close>, x, y = small()
    assert.is_nil(pipe:profile(x, y, { ceilings = false }).devices[1].replayed)
  end)

  it("changes no bit of training, for every schedule and checkpoint mode", function()
    for _, fields in ipairs {
      { checkpoint = "always" }, { checkpoint = "never", schedule = "gpipe" },
      { schedule = "interleaved_1f1b", balance = { 2, 2, 2, 1 } }, { schedule = "zb_h1" },
      { schedule = "zbv", balance = { 2, 2, 2, 1 } }, { schedule = "dualpipe", chunks = 4 },
      { finite = true }, { fuse = false },
    } do
      local losses, weights = profile.training(TWO, fields, false)
      local timed, same = profile.training(TWO, fields, true)
      assert.same(losses, timed)
      assert.equal(weights, same)
    end
  end)

  it("works while updates are part of the step, with a barrier and without", function()
    for _, barrier in ipairs { true, false } do
      local losses = {}
      for k = 1, 2 do
        gp.seed(3)
        local pipe <close> = small { seed = 1 }
        local x, y = gp.ones { ROWS, IN }, gp.ones { ROWS, OUT }
        pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }), { barrier = barrier })
        losses[k] = {}
        for i = 1, 4 do
          if k == 2 and i == 3 then
            local p = pipe:profile(x:clone(), y:clone(), { ceilings = false })
            losses[k][i] = p.result
            assert.is_truthy(row(p, "update", "sgd"))
          else
            losses[k][i] = pipe:step(x, y)
          end
        end
      end
      assert.equal(4, #losses[1])
      assert.same(losses[1], losses[2])
    end
  end)

  it("drains an asynchronous pipeline", function()
    local pipe <close>, x, y = small { schedule = "pipedream" }
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
    pipe:step(x, y)
    local p = pipe:profile(x, y, { ceilings = false })
    assert.is_truthy(row(p, "update", "sgd"))
    assert.equal(3, row(p, "forward", "tanh").count)
    pipe:step(x, y)
    assert.is_true(#pipe:flush() > 0)
  end)

  it("ends during a stream, where the profiled function raises", function()
    local losses = {}
    for k = 1, 2 do
      gp.seed(5)
      local pipe <close>, x, y = small { schedule = "gpipe", seed = 1 }
      local x1, y1 = gp.ones(x.shape), gp.ones(y.shape)
      pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }), { barrier = false })
      losses[k] = { pipe:step(x1, y1) }
      local function two()
        losses[k][2], losses[k][3] = pipe:step(x1, y1), pipe:step(x1, y1)
        error("enough", 0)
      end
      if k == 1 then pcall(two) else fails_with("enough", pipe.profile, pipe, two) end
      losses[k][4] = pipe:step(x1, y1)
    end
    assert.equal(4, #losses[1])
    assert.same(losses[1], losses[2])
  end)

  it("leaks no memory, and ends when the profiled function fails", function()
    local pipe <close>, x, y = small()
    for _ = 1, 2 do pipe:profile(x, y, { ceilings = false }) end
    collectgarbage()
    local held = gp.memory().cpu.live
    for _ = 1, 3 do
      pipe:profile(x, y, { ceilings = false })
      fails_with("no such luck", pipe.profile, pipe, function()
        pipe:step(x, y)
        error("no such luck", 0)
      end)
      fails_with("step: ", pipe.profile, pipe, gp.randn { ROWS, IN + 1 }, gp.randn { 3, OUT })
    end
    collectgarbage()
    assert.equal(held, gp.memory().cpu.live)
    assert.is_true(pipe:step(x, y) > 0)
  end)

  it("refuses wrong calls", function()
    local pipe <close>, x, y = small()
    fails_with("profile: the arguments are nil and nil, expected a function, or x and y",
      pipe.profile, pipe)
    fails_with("profile: unknown option 'ceiling' (did you mean 'ceilings'?)", pipe.profile, pipe,
      x, y, { ceiling = false })
    fails_with("ceilings", pipe.profile, pipe, x, y, { ceilings = { gemm = 5 } })
    fails_with("profile: another profile is under way, expected it to end first", pipe.profile,
      pipe, function()
        pipe:profile(x, y)
      end)
    fails_with("profile: the pipeline was closed while it was profiled", pipe.profile, pipe,
      function() pipe:close() end)
    fails_with("profile: the pipeline is closed", pipe.profile, pipe, x, y)
  end)

  it("compares with ceilings: measured, given, or none", function()
    local pipe <close>, x, y = small()
    local given = pipe:profile(x, y, { ceilings = { copy = 1e9, gemm = { f32 = 1e12 } } })
    for _, r in ipairs(given.rows) do
      if r.bandwidth then assert.equal(r.bandwidth / 1e9, r.bandwidth_share) end
      if r.rate and r.dtype == "f32" then assert.equal(r.rate / 1e12, r.rate_share) end
    end
    local none = pipe:profile(x, y, { ceilings = false })
    assert.is_nil(none.rows[1].bandwidth_share)
    local inner = require("gpipe.pipeline.object").inside(pipe)
    assert.is_true(inner.core:ceiling(0) > 0 and inner.core:ceiling(1, "f32") > 0)
  end)

  it("prints a table per device", function()
    local p = profile.take(TWO)
    local text = tostring(p)
    for _, name in ipairs(TWO) do assert.is_truthy(text:find(name, 1, true)) end
    for _, r in ipairs(p.rows) do assert.is_truthy(text:find(r.op, 1, true)) end
  end)

  it("prints the fifth step's profile where GPIPE_GPU_PROFILE asks for it", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write [[
      local gp = require "gpipe"
      local steps = tonumber(arg[1])
      local pipe <close> = gp.pipeline(gp.nn.Sequential {gp.nn.Linear(4, 2)},
        {loss = gp.nn.MSELoss(), devices = {"cpu:0"}})
      local opt = gp.optim.AdamW(pipe:parameters(), {lr = 0.1})
      for _ = 1, steps do pipe:step(gp.ones {8, 4}, gp.ones {8, 2}) opt:step() end
    ]]
    file:close()
    local program = assert(os.getenv "GPIPE_LUA")
    local function run(steps)
      local out = assert(io.popen(("GPIPE_GPU_PROFILE=1 '%s' '%s' %d 2>&1"):format(program, path,
        steps)))
      local text = out:read "a"
      assert.is_true(out:close())
      return text
    end
    for _, steps in ipairs { 5, 7 } do
      local text = run(steps)
      assert.equal(1, select(2, text:gsub("cpu:0: ", "")))
      assert.is_truthy(text:find "linear" and text:find "adamw")
    end
    assert.is_nil(run(3):find "linear")
    os.remove(path)
  end)
end)

-- The usual parts of models have a cost: attention, norms and an embedding.
describe("the profile of a GPT", function()
  it("has the FLOP of its products", function()
    local pipe <close> = profile.pipe({ "cpu:0" }, { checkpoint = "never", fuse = false })
    local p = pipe:profile(models.ids(7, 6), models.ids(7, 6), { ceilings = false })
    local tokens, C, V = 42, models.C, models.V
    local forward = profile.sum(p, "flop", function(r)
      return r.phase == "forward" and r.op == "linear"
    end)
    -- qkv, projection, two of the MLP, head; a bias each
    local weights = 3 * C * C + C * C + 2 * 2 * C * C + C * V
    assert.equal(tokens * (2 * weights + 3 * C + C + 2 * C + C + V), forward)
  end)
end)
