-- tests/spec/pipeline/core_spec.lua - the core below a pipeline is out of a script's reach, and
-- cannot be used to leave the heap.
--
-- Any script can require gpipe.core. Whatever numbers it passes, the answer is an error.

local gp = require "gpipe"
local core = require "gpipe.core"
local object = require "gpipe.pipeline.object"
local nn = gp.nn

local function pipe_of() return gp.pipeline(nn.Sequential { nn.Linear(4, 4), nn.Linear(4, 2) }, {
  balance = { 1, 1 }, chunks = 2, loss = nn.MSELoss(),
}) end

describe("a pipeline's core", function()
  it("is no field of the pipeline", function()
    local pipe <close> = pipe_of()
    assert.error(function() return pipe.core end)
    assert.equal("userdata", type(object.inside(pipe).core))
    assert.is_false(pipe.asynchronous) -- false is a fact, too
  end)

  -- The right spec, and what replaces a field of it.
  local function spec(changed)
    local weight = nn.Parameter({ 2, 2 }, nn.init.ones())
    local right = {
      stages = 2, copies = 1, stage_of = { 0, 1, 1 }, params = { weight }, param_layer = { 1 },
      placement = { 0, 1 },
      devices = { { name = "cpu:0", threads = 1 }, { name = "cpu:1", threads = 1 } },
      checkpoint = "never", finite = "skip",
    }
    for name, value in pairs(changed) do right[name] = value end
    return right
  end
  local wrong = {
    { placement = { 5, 0 } }, { placement = { 0 } }, { placement = { 0, 2 } }, { stages = 0 },
    { stages = 1 << 40 },
    { stages = -1 }, { copies = 0 }, { copies = 3 },
    { stage_of = {} }, { stage_of = { 0, 2, 2 } }, { stage_of = { 1, 0, 1 } },
    { param_layer = { 3 } }, { param_layer = {} }, { param_layer = { 1 << 31 } }, { devices = {} },
    { devices = { { name = "cpu:0", threads = 0 }, { name = "cpu:1", threads = 1 } } },
    { devices = { { name = "cpu:0", threads = 1 << 40 }, { name = "cpu:1", threads = 1 } } },
    { devices = { { name = 7 }, { name = "cpu:1" } } },
    { watchdog = -1 }, { watchdog = 2e9 }, { params = { gp.ones { 2 } } },
  }
  for i, changed in ipairs(wrong) do
    local name, value = next(changed)
    it(("refuses %s = %s (%d)"):format(name, type(value) == "table" and #value or value, i),
      function()
      assert.is_false(pcall(core.pipeline_new, spec(changed)))
    end)
  end

  it("takes the right spec", function()
    local made = core.pipeline_new(spec {})
    made:close()
    assert.error(function() made:steps() end)
  end)

  it("refuses tensors whose number, dtypes or shapes differ from its plan's", function()
    local pipe <close> = pipe_of()
    local x, y = gp.ones { 6, 4 }, gp.ones { 6, 2 }
    pipe:step(x, y)
    local inner, _, plan = object.inside(pipe).core, next(object.inside(pipe).plans)
    for _, arguments in ipairs {
      { inputs = { gp.ones { 1, 4 } }, targets = { y } },
      { inputs = { x }, targets = { gp.ones { 6, 1 } } },
      { inputs = { x }, targets = {} }, { inputs = {}, targets = { y } },
      { inputs = { x, x }, targets = { y } },
      { inputs = { x:to "f64" }, targets = { y } },
      { inputs = { gp.ones { 4, 6 }:transpose() }, targets = { y } },
    } do
      assert.is_false(pcall(inner.run, inner, plan.handle, arguments))
    end
    assert.is_true(pcall(inner.run, inner, plan.handle, { inputs = { x }, targets = { y } }))
  end)

  it("refuses more tensors than a batch may have", function()
    local pipe <close> = pipe_of()
    pipe:step(gp.ones { 6, 4 }, gp.ones { 6, 2 })
    local inner, _, plan = object.inside(pipe).core, next(object.inside(pipe).plans)
    local many = {}
    for i = 1, 100 do many[i] = gp.ones { 6, 4 } end
    assert.error_matches(function()
      inner:run(plan.handle, { inputs = many, targets = { gp.ones { 6, 2 } } })
    end, "100 tensors")
  end)

  it("refuses the plans of other pipelines, dropped ones and numbers out of range", function()
    local pipe <close> = pipe_of()
    local other <close> = pipe_of()
    local x, y = gp.ones { 6, 4 }, gp.ones { 6, 2 }
    pipe:step(x, y)
    other:step(x, y)
    local inner, _, plan = object.inside(pipe).core, next(object.inside(pipe).plans)
    local _, theirs = next(object.inside(other).plans)
    for _, method in ipairs { "edges", "output_shape", "drop" } do
      assert.is_false(pcall(inner[method], inner, theirs.handle))
    end
    for _, at in ipairs { { 2, 0 }, { -1, 0 }, { 0, 1 }, { 1 << 33, 0 } } do
      assert.is_false(pcall(inner.stage, inner, plan.handle, at[1], at[2]))
    end
    assert.is_false(pcall(inner.row, inner, plan.handle, 2))
    assert.is_false(pcall(inner.events, inner, 2))
    assert.is_false(pcall(inner.free_bytes, inner, 3))
    inner:drop(plan.handle)
    assert.is_false(pcall(inner.run, inner, plan.handle, { inputs = { x }, targets = { y } }))
  end)

  it("refuses values of another trace than the planned one", function()
    local trace, other = core.trace_new(false), core.trace_new(false)
    local value = core.trace_input(other, "batch", "f32", { 1, 4 })
    local inner = core.pipeline_new(spec {})
    local rows = core.rows(2)
    rows:F(0, 0, 0)
    rows:F(1, 1, 0)
    local schedule = assert(core.schedule(rows, { 0, 1 }, {}))
    assert.is_false(pcall(inner.plan, inner, { kind = "forward", schedule = schedule,
      shapes = { { trace = trace, rows = 1, micros = 1, outputs = { value } } } }))
    for _, copies in ipairs { 0, -1, 3 } do
      assert.is_false(pcall(core.schedule, rows, { 0, 1 }, { copies = copies }))
    end
    inner:close()
  end)
end)
