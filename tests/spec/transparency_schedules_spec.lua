-- tests/spec/transparency_schedules_spec.lua - no synchronous schedule changes a bit: one stage gives the same.
--
-- DESIGN section 8, D4. Schedules with two copies of the weights add gradients in another order: the same bits
-- for every number of stages, and close to one stage. The grid is run whole by scripts/test --full; a sample of
-- it, with everything in it, otherwise.
local gp = require "gpipe"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"
local CASES, COPIES, UPDATES = synchronous.CASES, synchronous.COPIES, synchronous.UPDATES

local CLOSE = 1e-6 -- relative: sums of f32 in another order
local STAGES, MICROS = { 2, 3, 4, 8 }, { 1, 2, 3, 5, 8, 16 }
local MODES = { "except_last", "never", "always" }

-- ---- the grid ----------------------------------------------------------------------------------

-- One stage, naive: by number of micro-batches.
local references = {}
local function reference(made, m)
  references[m] = references[m] or synchronous.run(made, { chunks = m, schedule = "naive", checkpoint = "never" })
  return references[m]
end

-- What two copies give for two stages: by schedule and number of micro-batches.
local copied = {}

local function check(made, case, stages, m, checkpoint, how)
  local run = synchronous.run(made, {
    balance = synchronous.cut(made.layers, stages), chunks = m, checkpoint = checkpoint,
    schedule = synchronous.schedule(case),
  }, UPDATES[how])
  local wanted = reference(made, m)
  if COPIES[case[1]] and m > 1 then
    assert.is_true(synchronous.distance(run, wanted) <= CLOSE)
    local key = case[1] .. m
    copied[key] = copied[key] or run
    wanted = copied[key]
  end
  local what = training.difference(wanted, run)
  if what then error(("%d stages, %d micro-batches, %s, %s: %s"):format(stages, m, checkpoint, how, what)) end
end

-- Updates that a schedule allows.
local function updates_of(case)
  return COPIES[case[1]] and { "step", "use" } or { "step", "use", "free" }
end

-- Every place of the grid where the schedule is defined.
local function places(case)
  local list = {}
  for _, stages in ipairs(STAGES) do
    for _, m in ipairs(MICROS) do
      if synchronous.is_defined(case, stages, m) then list[#list + 1] = { stages, m } end
    end
  end
  return list
end

describe("parameters after 10 steps are those of one stage", function()
  local made = synchronous.regression()
  for _, case in ipairs(CASES) do
    it(synchronous.title(case), function()
      local turn, updates = 0, updates_of(case)
      for _, place in ipairs(places(case)) do
        turn = turn + 1
        local how = updates[turn % #updates + 1]
        check(made, case, place[1], place[2], MODES[turn // #updates % 3 + 1], how)
      end
      assert.is_true(turn >= 6)
    end)

    it("with every checkpoint mode and update #slow: " .. synchronous.title(case), function()
      for _, place in ipairs(places(case)) do
        for _, checkpoint in ipairs(MODES) do
          for _, how in ipairs(updates_of(case)) do check(made, case, place[1], place[2], checkpoint, how) end
        end
      end
    end)
  end

  it("with every published name", function()
    local known = { pipedream = true, pipedream_2bw = true }
    for _, case in ipairs(CASES) do known[case[1]] = true end
    for _, name in ipairs(gp.schedule.names()) do assert.is_true(known[name], name) end
  end)
end)
