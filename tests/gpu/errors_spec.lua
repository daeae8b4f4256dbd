-- tests/gpu/errors_spec.lua - an error on a GPU names its cause, and the pipeline stays usable.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local child = dofile "tests/child.lua"
local expect = require "tests.support.expect"
local gpu = require "tests.support.gpu"
local misuse = require "tests.support.misuse"
local models = require "tests.support.models"
local nn = gp.nn
local on_gpu, fails_with = gpu.spec(it, pending), expect.fails_with

-- Devices of two stages; the last pair needs a second GPU.
local PAIRS = { { "cuda:0", "cuda:0" }, { "cpu:0", "cuda:0" }, { "cuda:0", "cpu:0" },
  { "cuda:0", "cuda:1" } }

-- Returns "cuda:0 and cpu:0", and how many GPUs that needs.
local function title(pair)
  local text = table.concat(pair, " and ")
  return text, text:find("cuda:1", 1, true) and 2 or 1
end

-- ---- devices ------------------------------------------------------------------------------------

describe("a device that is not there", function()
  on_gpu("is refused by its name", function()
    local absent = "cuda:" .. gpu.count()
    fails_with(("there is no device '%s'"):format(absent), misuse.pipe_of,
      { devices = { absent, "cuda:0" } })
    fails_with(("there is no device '%s'"):format(absent),
      function() return gp.zeros({ 1 }, { device = absent }) end)
  end)

  on_gpu("is refused where its name or its part is malformed", function()
    for _, name in ipairs { "cuda:x", "cuda:-1", "cuda:0/2of2", "cuda:0/0of0", "cuda:0/of2",
      "gpu:0" } do
      fails_with(("'%s'"):format(name), misuse.pipe_of, { devices = { name, "cuda:0" } })
    end
  end)
end)

it("refuses a device without a GPU and says why", function()
  if gpu.count() > 0 then return end
  fails_with("device 'cuda:0' cannot be used: ", misuse.pipe_of,
    { devices = { "cuda:0", "cuda:0" } })
end)

-- ---- ids out of range ---------------------------------------------------------------------------

describe("an id out of range", function()
  local good = misuse.ids(5)
  local wrong = good:clone()
  wrong[4][2] = 99

  for _, pair in ipairs(PAIRS) do
    local name, least = title(pair)
    on_gpu("in an embedding is found with value and position: " .. name, function()
      local pipe <close> = misuse.pipe_of { devices = pair }
      local before = pipe:step(good, good)
      for _ = 1, 3 do
        fails_with("id 99 at row 4, position 2 is outside 0..10", pipe.step, pipe, wrong, good)
        assert.equal(before, pipe:step(good, good))
      end
    end, least)

    on_gpu("among targets is found, too: " .. name, function()
      local pipe <close> = misuse.pipe_of { devices = pair }
      local before = pipe:step(good, good)
      fails_with("class 99 at row 4, position 2 is outside 0..10", pipe.step, pipe, good, wrong)
      fails_with("class 99 at row 4, position 2", pipe.evaluate, pipe, good, wrong)
      assert.equal(before, pipe:step(good, good))
    end, least)
  end

  on_gpu("leaves parameters as they were, with the update in the schedule", function()
    local pipe <close> = misuse.pipe_of { devices = { "cuda:0", "cuda:0" } }
    pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 0.1 }))
    pipe:step(good, good)
    local state = pipe:state_dict()
    fails_with("id 99 at row 4", pipe.step, pipe, wrong, good)
    for key, value in pairs(pipe:state_dict()) do
      assert.is_true(gp.equal(value, state[key]), key)
    end
    assert.equal("number", type(pipe:step(good, good)))
  end)

  on_gpu("on one of two GPUs that share a weight keeps both from updating", function()
    local function pipeline()
      local model = models.gpt()()
      model[7].weight = model[1].weight
      local pipe = gp.pipeline(model, { balance = { 3, 4 }, chunks = 4,
        devices = { "cuda:0", "cuda:1" }, loss = nn.CrossEntropyLoss() })
      return pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
    end
    local pipe <close> = pipeline()
    local other <close> = pipeline()
    local x, y = models.ids(8, 6), models.ids(8, 6)
    local off = x:clone()
    off[3][2] = 99
    for _ = 1, 3 do
      assert.equal(other:step(x, y), pipe:step(x, y))
      local state = pipe:state_dict()
      fails_with("99", pipe.step, pipe, off, y)
      for key, value in pairs(pipe:state_dict()) do
        assert.is_true(gp.equal(value, state[key]), key)
      end
    end
  end, 2)

  -- A step without a barrier returns when the loss is known, which may be before the device reports
  -- the error.
  on_gpu("is raised by the next step at the latest where there is no barrier; loading a state "
    .. "repairs the pipeline", function()
    local pipe <close> = misuse.pipe_of { devices = { "cuda:0", "cuda:0" } }
    pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 0.1 }), { barrier = false })
    pipe:step(good, good)
    local state = pipe:state_dict()
    fails_with("id 99 at row 4", function()
      pipe:step(wrong, good)
      pipe:step(good, good)
    end)
    pipe:load_state_dict(state)
    assert.equal("number", type(pipe:step(good, good)))
  end)
end)

-- ---- values that are not finite -----------------------------------------------------------------

describe("finite = true", function()
  local Log = nn.class("Log")
  function Log:forward(x) return (x * 0):log() + x end

  for _, pair in ipairs(PAIRS) do
    local name, least = title(pair)
    on_gpu("names the first layer that made one: " .. name, function()
      local pipe <close> = misuse.pipe_of({ devices = pair, balance = { 2, 2 }, finite = true },
        misuse.model(Log()))
      for _ = 1, 3 do -- launched first, replayed later
        fails_with("3 (Log): log made a value that is not finite", pipe.step, pipe, misuse.ids(5),
          misuse.ids(5))
      end
    end, least)
  end

  on_gpu("changes no bit of what is finite", function()
    local x = misuse.ids(5)
    local function losses(finite)
      local pipe <close> = misuse.pipe_of { devices = { "cuda:0", "cuda:0" }, finite = finite }
      pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 0.1 }))
      return { pipe:step(x, x), pipe:step(x, x), pipe:step(x, x), pipe:step(x, x) }
    end
    assert.same(losses(false), losses(true))
  end)
end)

-- ---- memory -------------------------------------------------------------------------------------

describe("too little memory", function()
  -- No GPU holds these parameters; declaring them costs nothing.
  local function enormous()
    local side = 1024 * 1024
    return nn.Sequential { nn.Linear(4, side), nn.Linear(side, side), nn.Linear(side, 4) }
  end

  on_gpu("for parameters is an error that names both sizes and leaves nothing allocated",
    function()
    collectgarbage()
    local x, y = gp.zeros { 2, 4 }, gp.zeros { 2, 4 }
    local before = gp.memory()["cuda:0"].live
    fails_with("parameters and gradients take 8.0 TiB of cuda:0, which has ", function()
      local pipe <close> = gp.pipeline(enormous(),
        { balance = { 3 }, devices = { "cuda:0" }, loss = nn.MSELoss() })
      pipe:step(x, y)
    end)
    collectgarbage()
    assert.equal(before, gp.memory()["cuda:0"].live)
    local pipe <close> = misuse.pipe_of { devices = { "cuda:0", "cuda:0" } }
    assert.equal("number", type(pipe:step(misuse.ids(5), misuse.ids(5))))
  end)
end)

-- ---- Ctrl-C -------------------------------------------------------------------------------------

describe("Ctrl-C during steps on a GPU", function()
  on_gpu("is an error that can be caught; the pipeline goes on", function()
    local script = child.file([[
      package.path = "./?.lua;" .. package.path
      local misuse = require "tests.support.misuse"
      local x = misuse.ids(5)
      local pipe = misuse.pipe_of { devices = { "cuda:0", "cuda:0" } }
      local loss = pipe:step(x, x)
      ]] .. child.presses(0.5) .. [[
      local good, message = pcall(function() while true do pipe:step(x, x) end end)
      print(good, tostring(message):match "interrupted", pipe:step(x, x) == loss)]])
    local out, err, code = child.run { script }
    os.remove(script)
    assert.equal("false\tinterrupted\ttrue\n", out)
    assert.equal("", err)
    assert.equal(0, code)
  end)
end)

-- ---- values that are spoilt ---------------------------------------------------------------------

describe("an action on a GPU whose results are not numbers", function()
  -- Returns what a step prints under GPIPE_FAULT, with a third option of the pipeline.
  local function spoilt(where, pair, finite)
    local script = ([[
      local gp = require "gpipe"
      gp.seed(1)
      local model = gp.nn.Sequential { gp.nn.Linear(4, 4), gp.nn.Tanh(), gp.nn.Linear(4, 2) }
      local pipe = gp.pipeline(model, { balance = { 2, 1 }, devices = { %q, %q }, chunks = 3,
        loss = gp.nn.MSELoss(), finite = %s })
      for _ = 1, 3 do -- launched, captured, replayed
        local good, loss = pcall(pipe.step, pipe, gp.ones { 6, 4 }, gp.ones { 6, 2 })
        print(good and loss ~= loss or not good and loss)
      end]]):format(pair[1], pair[2], finite)
    return (child.run({ "-" },
      { input = script, environment = { GPIPE_FAULT = where .. ",action=nan" } }))
  end

  for _, pair in ipairs(PAIRS) do
    local text, wanted = title(pair)
    on_gpu("shows in the loss: " .. text, function()
      for _, where in ipairs { "stage=0,op=F,micro=1", "stage=1,op=F", "device=1,op=F,micro=0" } do
        assert.equal("true\ntrue\ntrue\n", spoilt(where, pair, "'ignore'"), where)
      end
    end, wanted)

    on_gpu("is found by finite = true, which names the layer: " .. text, function()
      assert.matches("2 %(Tanh%): tanh made a value that is not finite",
        spoilt("stage=0,op=F", pair, "true"))
      assert.matches("made a value that is not finite in the backward pass",
        spoilt("stage=1,op=B", pair, "true"))
    end, wanted)
  end
end)
