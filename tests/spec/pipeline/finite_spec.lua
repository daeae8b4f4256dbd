-- tests/spec/pipeline/finite_spec.lua - gradients that are not finite never reach parameters.
local gp = require "gpipe"
local child = dofile "tests/child.lua"
local fails_with = require("tests.support.expect").fails_with
local nn, optim = gp.nn, gp.optim

local function model()
  gp.seed(3)
  return nn.Sequential { nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Linear(5, 2) }
end

local good = { gp.randn({ 6, 4 }, { seed = 1 }), gp.randn({ 6, 2 }, { seed = 2 }) }
local bad = { good[1], good[2]:clone() }
bad[2][2][1] = math.huge -- the loss is infinite, and so is the gradient of every stage

-- How an update is made: options of the pipeline, and of use; nil: the script calls opt:step().
local WAYS = {
  { "opt:step()" },
  { "behind a barrier", {}, {} },
  { "behind a barrier, with clipping", {}, { clip_norm = 0.5 } },
  { "without a barrier", {}, { barrier = false } },
  { "in two copies", { schedule = "chimera", balance = { 2, 2 } }, { clip_norm = 0.5 } },
  { "in an asynchronous schedule", { schedule = "pipedream_2bw" }, {} },
}

local function make(way, finite)
  local opts = { balance = { 2, 1, 1 }, chunks = 2, loss = nn.MSELoss(), finite = finite }
  for key, value in pairs(way[2] or {}) do opts[key] = value end
  local pipe = gp.pipeline(model(), opts)
  local opt = optim.AdamW(pipe:parameters(), { lr = 0.05 })
  if way[3] then pipe:use(opt, way[3]) end
  return pipe, function(batch)
    pipe:step(batch[1], batch[2])
    if not way[3] then opt:step() end
  end, opt
end

local function same(a, b)
  for name, value in pairs(a) do
    if not gp.equal(value, b[name]) then return false end
  end
  return true
end

local function is_nan(pipe)
  for _, value in pairs(pipe:state_dict()) do
    local sum = value:sum():item()
    if sum ~= sum then return true end
  end
  return false
end

-- Hides lines on standard error that are printed once, which would be part of the report.
local function quietly(f)
  local stderr = io.stderr
  io.stderr = { write = function() end } -- luacheck: ignore
  local result = table.pack(pcall(f))
  io.stderr = stderr -- luacheck: ignore
  assert(result[1], result[2])
end

for _, way in ipairs(WAYS) do
  describe("an update " .. way[1], function()
    local alone = way[2] and way[2].schedule == "pipedream_2bw"
    it("is skipped on all stages where gradients are not finite", function()
      quietly(function()
        local pipe, step = make(way)
        for _, batch in ipairs { good, bad, good, bad, bad, good } do step(batch) end
        assert.equal(3, pipe.stats.skipped)
        assert.equal(3, pipe:progress().skipped)
        assert.is_false(is_nan(pipe))
        pipe:close()
      end)
    end)

    -- In an asynchronous schedule other versions of the weights are read afterwards.
    local sequential = alone and function() end or it
    sequential("leaves the pipeline as if the step had not run", function()
      quietly(function()
        local pipe, step, opt = make(way)
        local other, other_step, other_opt = make(way)
        for _, batch in ipairs { good, bad, good, bad, bad, good } do step(batch) end
        for _ = 1, 3 do other_step(good) end
        assert.equal(0, other.stats.skipped)
        assert.is_true(same(pipe:state_dict(), other:state_dict()))
        assert.is_true(same(opt:state_dict(), other_opt:state_dict()))
        pipe:close()
        other:close()
      end)
    end)

    it("raises after twenty in a row", function()
      quietly(function()
        local pipe, step = make(way)
        for _ = 1, 19 do step(bad) end
        step(good)
        pipe:flush()
        local made = 0
        local raised = pcall(function()
          while made < 30 do
            step(bad)
            made = made + 1
          end
        end)
        assert.is_false(raised)
        assert.is_true(made >= 19 and made <= 22, made)
        assert.is_false(is_nan(pipe))
        step(good)
        pipe:close()
      end)
    end)

    it("is made in spite of them with finite = 'ignore'", function()
      quietly(function()
        local pipe, step = make(way, "ignore")
        step(bad)
        pipe:flush()
        assert.is_true(is_nan(pipe))
        assert.equal(0, pipe.stats.skipped)
        pipe:close()
      end)
    end)

    it("raises at once with finite = true, and nothing has changed", function()
      quietly(function()
        local pipe, step = make(way, true)
        local before = pipe:state_dict()
        fails_with("not finite", function()
          step(bad)
          pipe:flush()
        end)
        assert.is_true(same(before, pipe.model:state_dict()))
        pipe:close()
      end)
    end)
  end)
end

describe("a failing computation of the norm", function()
  it("on one device leaves all stages as they were; the next step works", function()
    local script = child.file [[
      local gp = require "gpipe"
      local nn = gp.nn
      gp.seed(1)
      local model = nn.Sequential { nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2) }
      local pipe = gp.pipeline(model, { balance = { 1, 1, 1 }, chunks = 2, loss = nn.MSELoss() })
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
      local x, y = gp.ones { 4, 4 }, gp.ones { 4, 2 }
      local before = pipe:state_dict()
      print(pcall(pipe.step, pipe, x, y))
      for name, value in pairs(pipe:state_dict()) do assert(gp.equal(value, before[name])) end
      print(pipe:evaluate(x, y) > 0)
      pipe:lowered()]]
    local out, err = child.run({ script },
      { environment = { GPIPE_FAULT = "stage=2,step=0,op=NORM,action=fail" } })
    os.remove(script)
    assert.equal("", err)
    assert.matches("^false\t.-GPIPE_FAULT.-\ntrue\n", out)
    assert.matches("2NORM,2VOTE,2U0\n", out)
  end)
end)

describe("a skipped update", function()
  it("is reported once", function()
    local script = child.file [[
      local gp = require "gpipe"
      local nn = gp.nn
      local pipe = gp.pipeline(nn.Sequential { nn.Linear(4, 2) }, { loss = nn.MSELoss() })
      local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
      local x, y = gp.ones { 4, 4 }, gp.full({ 4, 2 }, math.huge)
      for _ = 1, 3 do pipe:step(x, y) opt:step() end
      print(pipe.stats.skipped)]]
    local out, err = child.run { script }
    os.remove(script)
    assert.equal("3\n", out)
    local _, lines = err:gsub("pipe%.stats%.skipped", "")
    assert.equal(1, lines)
  end)
end)

describe("finite = true", function()
  it("refuses gradients in which the script wrote NaN, and updates nothing", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(3, 2) },
      { loss = nn.MSELoss(), finite = true })
    local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
    pipe:step(gp.ones { 4, 3 }, gp.ones { 4, 2 })
    local before = pipe:state_dict()
    pipe:parameters()[2].grad:copy_(0 / 0)
    local ok, fault = pcall(opt.step, opt)
    assert.is_false(ok)
    assert.equal("finite", require "gpipe.errors".code_of(fault))
    for name, value in pairs(pipe:state_dict()) do
      assert.is_true(gp.equal(before[name], value), name)
    end
    assert.equal(0, opt:state_dict().step:item())
  end)

  it("names the conversion of a gradient that the script passed", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(3, 2) },
      { finite = true, precision = "f16" })
    pipe:forward(gp.ones { 4, 3 })
    local ok, fault = pcall(pipe.backward, pipe, gp.full({ 4, 2 }, 1e30))
    assert.is_false(ok)
    assert.matches("output %(from f16%): cast made a value that is not finite in the backward pass",
      fault)
  end)
end)
