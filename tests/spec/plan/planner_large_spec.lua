-- tests/spec/plan/planner_large_spec.lua - plans of so many devices and micro-batches that not all
-- can be simulated, nor every device be planned.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local nn = gp.nn
local tried = require "gpipe.plan.tried"

local function model_of(layers, width)
  local list = {}
  for i = 1, layers do list[i] = nn.Linear(width, width) end
  return nn.Sequential(list)
end

local function devices_of(count, memory)
  local list = {}
  for d = 1, count do
    list[d] = { "sim:" .. d - 1, memory = memory or "1GiB", flops = 1e12, bandwidth = 1e11 }
  end
  return list
end

-- A plan for which so many devices x micro-batches may be simulated.
local function plan_with(most, model, rows, width, opts)
  local before = tried.most
  tried.most = most
  local made, why = gp.plan(model, { gp.zeros { rows, width }, gp.zeros { rows, width } }, opts)
  tried.most = before
  return assert(made, why)
end

local function name_of(row)
  return ("%s %d %d %s"):format(row.label, row.devices, row.chunks, row.checkpoint)
end

describe("a plan for which only a part is simulated", function()
  local cases = {
    { "wide layers, where small micro-batches pay", 32, 512, 128 },
    { "narrow layers, where each op costs", 32, 16, 128 },
    { "few micro-batches", 32, 256, 48 },
    { "a number of devices that is no power of two", 24, 256, 96 },
  }
  for _, case in ipairs(cases) do
    it("finds what the whole search finds: " .. case[1], function()
      local devices, width, rows = case[2], case[3], case[4]
      local model = model_of(devices, width)
      local opts = { devices = devices_of(devices), loss = nn.MSELoss(), optimizer = "SGD",
        verify = false }
      local whole = plan_with(math.huge, model, rows, width, opts)
      local part = plan_with(1 << 13, model, rows, width, opts)
      assert.equal(0, whole.untried)
      assert.is_true(part.untried > 20)
      assert.equal(name_of(whole.best), name_of(part.best))
      assert.equal(whole.best.seconds, part.best.seconds)
      assert.truthy(tostring(part):find(("(%d more combinations were not simulated"):format(
        part.untried), 1, true))
      assert.falsy(tostring(whole):find("were not simulated", 1, true))
    end)
  end

  it("goes on until something fits", function()
    local model = model_of(8, 256)
    local opts = { devices = devices_of(8, "1400KiB"), loss = nn.MSELoss(), optimizer = "SGD",
      verify = false }
    local part = plan_with(1, model, 512, 256, opts)
    local whole = plan_with(math.huge, model, 512, 256, opts)
    for _, row in ipairs(part.rows) do
      for d = 1, row.devices do assert.is_true(row.peak[d] <= 1400 * 1024) end
    end
    assert.is_true(#part.rows > 0 and #part.rows < #whole.rows)
  end)

  it("builds no schedule of more stages than there are layers", function()
    local part = plan_with(1, model_of(8, 16), 64, 16, { devices = devices_of(8),
      loss = nn.MSELoss(), optimizer = "SGD", verify = false,
      schedules = { { "interleaved_1f1b", stages_per_device = 4 }, "1f1b" } })
    assert.equal("interleaved_1f1b stages_per_device=4", part.rejected[1].what)
    assert.equal("it has 32 stages, the model 8 layers", part.rejected[1].why)
  end)
end)

describe("gp.dry_run with devices that are shown", function()
  it("plans these, byte for byte as in the whole", function()
    local model = nn.Sequential {
      nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16),
    }
    local function areas(shown, checkpoint, own)
      local devices = {}
      for d = 1, 3 do devices[d] = { own = own, shown = shown and shown[d] } end
      local dry = gp.dry_run(model, { balance = { 2, 2, 2 }, devices = devices,
        chunks = 6, loss = nn.MSELoss(), schedule = "1f1b", checkpoint = checkpoint,
        sample = { gp.zeros { 12, 16 }, gp.zeros { 12, 16 } } })
      local list = {}
      for d, one in ipairs(dry:memory()) do list[d] = one.areas end
      return list
    end
    for _, own in ipairs { false, true } do
      for _, checkpoint in ipairs { "never", "except_last", "selective", "always" } do
        local whole = areas(nil, checkpoint, own)
        assert.same({ {}, whole[2], whole[3] },
          areas({ [2] = true, [3] = true }, checkpoint, own))
        assert.same({ whole[1], {}, {} }, areas({ true }, checkpoint, own))
      end
    end
  end)
end)

describe("gpipe-lua --dry-run of a large job", function()
  local SCRIPT = [[
    local gp = require "gpipe"
    local layers, balance = {}, {}
    for i = 1, 24 do layers[i], balance[i] = gp.nn.Linear(16, 16), 1 end
    local pipe = gp.pipeline(gp.nn.Sequential(layers), { balance = balance, chunks = 32,
      schedule = "1f1b", loss = gp.nn.MSELoss() })
    pipe:step(gp.zeros { 64, 16 }, gp.zeros { 64, 16 })]]

  -- What is printed for the devices of the pipeline as it is set.
  local function devices_of_job(environment)
    local script = child.file(SCRIPT)
    local out, err, code = child.run({ "--dry-run", "--ranks", "24", script },
      { environment = environment })
    os.remove(script)
    assert.equal(0, code, err)
    local lines = {}
    for line in out:gmatch "    (%d+/cpu:%d+: [^\n]*)" do lines[#lines + 1] = line end
    return lines, out
  end

  it("plans the devices that it prints, with the bytes of the whole plan", function()
    local whole, out = devices_of_job()
    local part, short = devices_of_job { GPIPE_WHOLE_PLAN = "0" }
    assert.equal(16, #whole)
    assert.same(whole, part)
    local rest = "\n    ... and 8 more devices, at most [^\n]*"
    assert.truthy(out:match(rest))
    assert.truthy(short:match(rest))
  end)
end)
