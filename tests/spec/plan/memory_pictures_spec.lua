-- tests/spec/plan/memory_pictures_spec.lua - the memory of a pipeline and of a dry run over their
-- tasks: the same bytes as in the report, what is alive, pictures.
local expect = require "tests.support.expect"
local gp = require "gpipe"
local levels = require "gpipe.draw.memory.levels"
local object = require "gpipe.pipeline.object"
local picture = require "gpipe.pipeline.areas.picture"
local nn = gp.nn

local PLAIN = { width = 72, height = 6, colour = false, unicode = false }

local function model_of(blocks)
  gp.seed(1)
  local list = {}
  for i = 1, blocks do
    list[i] = nn.Sequential { nn.Linear(16, 48), nn.GELU(), nn.Linear(48, 16), nn.LayerNorm(16) }
  end
  return nn.Sequential(list)
end

local function options_of(stages, more)
  local opts = {
    balance = {}, chunks = 4, loss = nn.MSELoss(),
    sample = { gp.ones { 8, 16 }, gp.ones { 8, 16 } },
  }
  for s = 1, stages do opts.balance[s] = 1 end
  for key, value in pairs(more or {}) do opts[key] = value end
  return opts
end

local function single(devices)
  local list = {}
  for d = 1, devices do list[d] = { "cpu:" .. d - 1, threads = 1 } end
  return list
end

local SCHEDULES = { "gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zbv", "dualpipe", "chimera" }
local MOVING = { "saved", "recomputed", "carried", "transient" }
local MODES = { "never", "selective", "except_last", "always" }

local function each(f)
  for _, schedule in ipairs(SCHEDULES) do
    for _, checkpoint in ipairs(MODES) do
      local opts = options_of(4, { schedule = schedule, checkpoint = checkpoint })
      if schedule == "dualpipe" then opts.chunks = 8 end
      f(opts)
    end
  end
end

local function view_of(core, plan, d, one)
  return levels.view(picture.device(core, plan, d, one))
end

local function step_plan(pipe)
  local inner = object.inside(pipe)
  for _, plan in pairs(inner.plans) do
    if plan.kind == "step" then return inner.core, plan.handle end
  end
end

local function sum_of(list, area)
  local sum = 0
  for _, one in ipairs(list) do
    if not area or one.area == area then sum = sum + one.bytes end
  end
  return sum
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local data = file:read "a"
  file:close()
  os.remove(path)
  return data
end

describe("the memory of a pipeline over its tasks", function()
  it("has its peak at what is planned, with every schedule and policy", function()
    each(function(opts)
      local pipe <close> = gp.pipeline(model_of(4), opts)
      local memory, core, plan = pipe:memory(), step_plan(pipe)
      for d, one in ipairs(memory) do
        assert.are.equal(one.planned, view_of(core, plan, d, one).peak)
        assert.is_true(one.lower_bound <= one.planned)
        for area, bytes in pairs(one.areas) do assert.is_true(bytes > 0, area) end
      end
    end)
  end)

  it("shares out exactly what the runtime says is alive", function()
    each(function(opts)
      local pipe <close> = gp.pipeline(model_of(4), opts)
      local memory, core, plan = pipe:memory(), step_plan(pipe)
      for d in ipairs(memory) do
        for t, moment in ipairs(core:alive(plan, d - 1)) do
          local alive = memory:alive(d, t)
          for k, area in ipairs(MOVING) do assert.are.equal(moment[k], sum_of(alive, area)) end
        end
      end
    end)
  end)

  it("names the micro-batches that are kept", function()
    local pipe <close> = gp.pipeline(model_of(2), options_of(2, { schedule = "gpipe",
      checkpoint = "never" }))
    local function kept(task)
      local names = {}
      for _, one in ipairs(pipe:memory():at(task)) do
        if one.area == "saved" then names[#names + 1] = one.label end
      end
      return table.concat(names, "; ")
    end
    assert.are.equal("stage 0, micro-batch 0; stage 0, micro-batch 1", kept "0F1")
    assert.are.equal("stage 0, micro-batch 2; stage 0, micro-batch 3", kept "0B2")
    assert.are.equal("stage 1, micro-batch 3", kept "1B3")
  end)

  it("is asked for by device and task", function()
    local pipe <close> = gp.pipeline(model_of(2), options_of(2))
    local memory = pipe:memory()
    local alive = memory:alive("cpu:1", "1F0")
    assert.are.same(alive, memory:alive(2, "1F0"))
    assert.are.same(alive, memory:at "1F0")
    assert.is_true(sum_of(alive) <= memory[2].planned)
    assert.is_truthy(tostring(alive):find("parameters +parameters"))
    assert.is_truthy(tostring(alive):find "together")
    expect.fails_with('the device is "cpu:7" (string), expected a name as in the report or a '
      .. "number from 1 to 2", memory.alive, memory, "cpu:7", "1F0")
    expect.fails_with("the device is 3", memory.alive, memory, 3, "1F0")
    expect.fails_with('there is no task "9F9"', memory.alive, memory, 1, "9F9")
    expect.fails_with('at: no device has a task "9F9" (string), expected a name such as "0F0"',
      memory.at, memory, "9F9")
  end)

  it("is drawn with what is allocated and the cap", function()
    local devices = { { "cpu:0", threads = 1, memory = "40KiB" }, { "cpu:1", threads = 1 } }
    local pipe <close> = gp.pipeline(model_of(2), options_of(2, { devices = devices }))
    local memory = pipe:memory()
    local text = memory:draw(PLAIN)
    assert.is_truthy(text:find("cpu:0: peak", 1, true))
    assert.is_truthy(text:find("of the cap 40.0 KiB", 1, true))
    for _, words in ipairs { "p = parameters", "g = gradients", "T = transient", "* measured",
      "== cap" } do
      assert.is_truthy(text:find(words, 1, true), words)
    end
    local path = os.tmpname()
    assert(memory:svg(path, { title = "two stages" }))
    local svg = read(path)
    assert.is_truthy(svg:find("two stages", 1, true) and svg:find('class="measured"', 1, true)
      and svg:find('class="cap"', 1, true))
    assert(memory:html(path)) -- replaces the file, as pipe:html does
    assert.is_nil((memory:svg(path, { force = false })))
    assert.is_truthy(read(path):find('"0F0"', 1, true))
    local none, _, code = memory:svg "/nowhere/memory.svg"
    assert.are.same({ nil, "io" }, { none, code })
  end)

  it("is that of the plan that trained last", function()
    local pipe <close> = gp.pipeline(model_of(1), options_of(1))
    pipe:evaluate(gp.ones { 8, 16 }, gp.ones { 8, 16 })
    assert.is_true(sum_of(pipe:memory():at "0B0") > 0)
    pipe:step(gp.ones { 2, 16 }, gp.ones { 2, 16 }) -- two micro-batches
    expect.fails_with("no device has a task", pipe:memory().at, pipe:memory(), "0B2")
  end)

  it("is refused before there is a plan", function()
    local opts = options_of(1)
    opts.sample = nil
    local pipe <close> = gp.pipeline(model_of(1), opts)
    local memory = pipe:memory()
    expect.fails_with("draw: the pipeline has not planned a pass yet, expected a step before",
      memory.draw, memory)
    assert.is_true(memory[1].planned > 0)
  end)
end)

describe("the memory of a dry run", function()
  it("is that of the pipeline, area by area", function()
    each(function(opts)
      local model = model_of(4)
      local dry = gp.dry_run(model, opts)
      opts.devices = single(#dry.devices)
      local pipe <close> = gp.pipeline(model, opts)
      for d, one in ipairs(pipe:memory()) do
        local planned = dry:memory()[d]
        assert.are.same(one.areas, planned.areas)
        assert.are.equal(one.planned, planned.planned)
        assert.are.equal(one.lower_bound, planned.lower_bound)
        assert.is_nil(planned.measured)
      end
    end)
  end)

  it("is printed and drawn without a measured line", function()
    local memory = gp.dry_run(model_of(2), options_of(2)):memory()
    assert.is_truthy(tostring(memory):find "lower bound")
    assert.is_nil(tostring(memory):find "measured")
    assert.is_nil(memory:draw(PLAIN):find "measured")
    assert.is_true(sum_of(memory:at "1B0") <= memory[2].planned)
    local path = os.tmpname()
    assert(memory:svg(path) and memory:html(path))
    os.remove(path)
  end)

  it("counts the share of one device alone", function()
    local whole = gp.dry_run(model_of(3), options_of(3)):memory()
    local share = gp.dry_run(model_of(3), options_of(3, { device = 1 })):memory()
    assert.are.same({ 0, whole[2].planned, 0 }, { share[1].planned, share[2].planned,
      share[3].planned })
    assert.is_string(share:draw(PLAIN))
  end)
end)
