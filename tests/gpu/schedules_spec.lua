-- tests/gpu/schedules_spec.lua - every schedule trains on GPUs, to the bits of one stage.
local gp = require "gpipe"
local asynchronous = require "tests.support.asynchronous"
local gpu = require "tests.support.gpu"
local placements = require "tests.support.placements"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"
local on_gpu = gpu.spec(it, pending)

local M = 8 -- micro-batches: enough for the schedules that want twice as many as devices

-- Returns the largest number of stages that the schedule and the model's eight layers allow.
local function stages_of(case)
  for _, stages in ipairs { 8, 4, 2 } do
    if synchronous.is_defined(case, stages, M) then return stages end
  end
end

-- Counts the devices of a schedule with so many stages, by its placement.
local function device_count(case, stages)
  local schedule = synchronous.schedule(case)
  schedule[1] = nil
  for _, per in ipairs { 1, 2, 4 } do
    schedule.devices, schedule.chunks = stages // per, M
    local good, made = pcall(gp.schedule.build, case[1], schedule)
    if good and made.stages == stages then return made.devices end
  end
end

-- Keeps what one stage gives, by the size of the GPU and how the update is made.
local wanted = {}
local function reference(made, placement, update)
  local device = placements.devices(placement, 1)[1]
  local key = device .. update
  if not wanted[key] then
    local options = { balance = { 8 }, devices = { device }, chunks = M, schedule = "gpipe" }
    wanted[key] = synchronous.run(made, options, synchronous.UPDATES[update])
  end
  return wanted[key]
end

describe("a schedule on GPUs", function()
  for _, case in ipairs(synchronous.CASES) do
    -- Two copies of the weights add their gradients before they are updated.
    for _, update in ipairs(synchronous.COPIES[case[1]] and { "step", "use" }
      or { "step", "use", "free" }) do
      on_gpu(("gives the bits of one stage: %s, update %s"):format(synchronous.title(case), update),
        function()
        local stages = stages_of(case)
        local made = synchronous.regression { steps = 4 }
        local run_on = function(placement)
          return synchronous.run(made, {
            balance = synchronous.cut(8, stages), chunks = M, schedule = synchronous.schedule(case),
            devices = placements.devices(placement, device_count(case, stages)),
          }, synchronous.UPDATES[update])
        end
        for _, names in ipairs(placements.sizes()) do
          local first, whole = nil, reference(made, names[1], update)
          for _, placement in ipairs(names) do
            local run = run_on(placement)
            first = first or run
            assert.is_nil(training.difference(first, run))
          end
          -- Two copies of the weights add two sums: the result is near the others, not equal.
          if synchronous.COPIES[case[1]] then
            assert.is_true(synchronous.distance(first, whole) < 1e-4)
          else
            assert.is_nil(training.difference(whole, first))
          end
        end
      end)
    end
  end
end)

-- ---- asynchronous -------------------------------------------------------------------------------

describe("an asynchronous schedule on GPUs", function()
  for rule in pairs(asynchronous.RULES) do
    on_gpu("gives the same bits on every placement, near the CPU's: " .. rule, function()
      local function run(devices)
        local made = synchronous.regression {}
        local pipe <close> = gp.pipeline(made.model(), {
          balance = { 2, 2, 2, 2 }, devices = devices, chunks = 4,
          schedule = asynchronous.schedule(rule),
          loss = made.loss, seed = 5,
        })
        pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
        local losses = {}
        for _ = 1, 5 do
          local known = pipe:step(made.x, made.y)
          table.move(known, 1, #known, #losses + 1, losses)
        end
        local rest = pipe:flush()
        table.move(rest, 1, #rest, #losses + 1, losses)
        return { losses = losses, first = {}, gradients = {}, state = pipe:state_dict() }
      end
      local here = run { "cpu:0", "cpu:0", "cpu:0", "cpu:0" }
      for _, names in ipairs(placements.sizes()) do
        local first
        for _, placement in ipairs(names) do
          local got = run(placements.devices(placement, 4))
          first = first or got
          assert.is_nil(training.difference(first, got))
        end
        assert.is_true(synchronous.distance(first, here) < 2e-3)
      end
    end)
  end
end)
