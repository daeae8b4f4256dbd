-- tests/gpu/streams_spec.lua - stages that are updated at different times on GPUs: what is refused,
-- and what a failure leaves when the device reports it late. Also plans that come one after
-- another.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local inside = require "gpipe.pipeline.object".inside
local expect = require "tests.support.expect"
local gpu = require "tests.support.gpu"
local misuse = require "tests.support.misuse"
local placements = require "tests.support.placements"
local synchronous = require "tests.support.synchronous"
local nn, optim = gp.nn, gp.optim
local on_gpu, fails_with = gpu.spec(it, pending), expect.fails_with

-- ---- ties ---------------------------------------------------------------------------------------

describe("one weight in stages that are updated at different times", function()
  for title, case in pairs {
    ["without a barrier"] = { schedule = "1f1b", use = { barrier = false } },
    pipedream = { schedule = "pipedream" },
  } do
    on_gpu("is refused wherever the stages lie: " .. title, function()
      local names = placements.names()
      table.move({ "mixed" }, 1, 1, #names + 1, names)
      for _, name in ipairs(names) do
        local made = synchronous.tied()
        local pipe <close> = gp.pipeline(made.model(), {
          balance = { 2, 2, 2, 2 }, devices = placements.devices(name, 4), chunks = 3,
          loss = made.loss,
          schedule = case.schedule,
        })
        pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }), case.use)
        fails_with("stage 1 reads a parameter of stage 0, and stages are updated at different "
          .. "times", pipe.step, pipe,
          made.x, made.y)
      end
    end)
  end
end)

-- ---- failures that are reported late ------------------------------------------------------------

describe("an id out of range in a stream", function()
  local good = misuse.ids(5)
  local wrong = good:clone()
  wrong[2][2] = 99 -- in the first micro-batch: nothing may be updated before it

  local CASES = {
    ["one stage"] = { balance = { 3 }, devices = { "cuda:0" }, schedule = "pipedream" },
    ["two stages"] = { balance = { 2, 1 }, devices = { "cuda:0", "cuda:0" },
      schedule = "pipedream" },
    ["without a barrier"] = { balance = { 2, 1 }, devices = { "cuda:0", "cuda:0" } },
  }
  for title, options in pairs(CASES) do
    on_gpu("never leaves weights behind that were updated with it: " .. title, function()
      local function made()
        local copy = {}
        for key, value in pairs(options) do copy[key] = value end
        local pipe = misuse.pipe_of(copy)
        local opt = optim.AdamW(pipe:parameters(), { lr = 0.1 })
        return pipe:use(opt, not options.schedule and { barrier = false } or nil), opt
      end
      local pipe <close>, opt = made()
      pipe:step(good, good)
      pipe:flush()
      local state, moments = pipe:state_dict(), opt:state_dict()
      fails_with("id 99 at row", function()
        pipe:step(wrong, good)
        pipe:flush()
      end)
      if inside(pipe).core:broken() then
        fails_with("load a state", pipe.step, pipe, good, good)
      else
        for name, value in pairs(pipe:state_dict()) do
          assert.is_true(gp.equal(value, state[name]), name)
        end
      end
      pipe:load_state_dict(state)
      opt:load_state_dict(moments)
      local fresh <close> = made()
      fresh:step(good, good)
      fresh:flush()
      for _ = 1, 3 do assert.same(fresh:step(good, good), pipe:step(good, good)) end
    end)
  end
end)

-- ---- plans --------------------------------------------------------------------------------------

describe("a plan that uses more layers' weights than those before", function()
  local Again = nn.class("Again")
  function Again:init(weight, least) self.weight, self.least = weight, least end
  function Again:forward(x)
    if x.shape[2] < self.least then return x end
    return x:matmul(self.weight)
  end

  local function model()
    gp.seed(9)
    local first = nn.Linear(6, 6)
    return nn.Sequential { first, nn.Tanh(), Again(first.weight, 1), Again(first.weight, 4),
      nn.Linear(6, 6) }
  end

  -- Returns the losses of batches of two shapes in turns, with the longer one first if
  -- `longer_first`.
  local function losses(devices, longer_first)
    local pipe <close> = gp.pipeline(model(), {
      balance = #devices == 1 and { 5 } or { 2, 3 }, devices = devices, chunks = 2,
      loss = nn.MSELoss(),
    })
    local opt, list = optim.AdamW(pipe:parameters(), { lr = 1e-3 }), {}
    local function step(length)
      local shape = { 4, length, 6 }
      list[#list + 1] = pipe:step(gp.randn(shape, { seed = 1 }), gp.randn(shape, { seed = 2 }))
      opt:step()
    end
    if longer_first then pipe:step(gp.zeros { 4, 5, 6 }, gp.zeros { 4, 5, 6 }) end
    for turn = 1, 9 do step(turn > 4 and turn % 2 == 0 and 5 or 3) end
    return list
  end

  on_gpu("changes no bit of what those before compute", function()
    for _, devices in ipairs { { "cuda:0" }, { "cuda:0", "cuda:0" } } do
      assert.same(losses(devices, true), losses(devices, false))
    end
  end)
end)
