-- tests/spec/plan/transfers_spec.lua - what GPUs of several ranks send each other, for all published
-- schedules: making a plan proves that its order comes to its end (tests/c/plan/transfers_test.c
-- plants orders that do not).
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with

local nn = gp.nn

local PAIRED = { chimera = true, dualpipe = true } -- these need an even number of devices
local STAGES = { interleaved_1f1b = 2, interleaved_zero_bubble = 2, looped_bfs = 2, dualpipev = 2,
  v_half = 2, v_min = 2, zbv = 2 } -- on each device

local function model_of(layers)
  local list = {}
  for i = 1, layers do list[i] = nn.Linear(4, 4) end
  return nn.Sequential(list)
end

-- A plan for `devices` GPUs, dealt to `ranks` processes.
local function plan(name, devices, ranks, chunks, more)
  local list, balance = {}, {}
  for d = 1, devices do list[d] = { rank = (d - 1) * ranks // devices } end
  local stages = devices * (STAGES[name] or 1)
  for s = 1, stages do balance[s] = 1 end
  local opts = { devices = list, balance = balance, chunks = chunks, schedule = name,
    loss = nn.MSELoss(), sample = { gp.ones { 4 * chunks, 4 }, gp.ones { 4 * chunks, 4 } } }
  for key, value in pairs(more or {}) do opts[key] = value end
  return gp.dry_run(model_of(stages), opts)
end

describe("transfers between GPUs of several ranks", function()
  for _, name in ipairs(gp.schedule.names()) do
    it("come to their end under " .. name, function()
      for _, devices in ipairs { 2, 3, 4 } do
        for ranks = 1, devices do
          for _, chunks in ipairs { 1, 4, 6 } do
            if not (PAIRED[name] and (devices % 2 == 1 or chunks % 2 == 1)) then
              local lines = plan(name, devices, ranks, chunks):transfers()
              assert.equal(ranks > 1, #lines > 0)
            end
          end
        end
      end
    end)
  end

  it("come to their end with replicas, whose gradients cross as well", function()
    local lines = plan("1f1b", 2, 2, 2, { replicas = 2, devices = { { rank = 0 }, { rank = 0 },
      { rank = 1 }, { rank = 1 } } }):transfers()
    assert.equal(4, #lines)
    assert.matches("device 0 %(rank 0%) to 2 %(rank 1%): .*the gradients of another copy", lines[1])
  end)

  it("are none between devices in the host's memory", function()
    assert.same({}, plan("1f1b", 2, 2, 2, { devices = { { own = false, rank = 0 },
      { own = false, rank = 1 } } }):transfers())
  end)

  it("want a rank of 0 or more", function()
    fails_with("rank", plan, "1f1b", 2, 2, 2, { devices = { { rank = -1 }, { rank = 0 } } })
  end)
end)
