-- tests/gpu/gradients_spec.lua - the first micro-batch writes the gradients that others add to, on
-- GPUs too: launched, captured and replayed, in turn with passes that add.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local opened = require "tests.support.opened"
local placements = require "tests.support.placements"
local synchronous = require "tests.support.synchronous"
local on_gpu = gpu.spec(it)

local SCHEDULES = { "1f1b", "zb_h1", "interleaved_1f1b", "dualpipe" }

local function gpt()
  return { model = models.gpt(), loss = gp.nn.CrossEntropyLoss(), x = models.ids(5, 6),
    y = models.ids(5, 6) }
end

describe("a pass that writes gradients gives the bits of one that adds to zeros", function()
  for _, schedule in ipairs(SCHEDULES) do
    for _, pass in ipairs { "step", "halves" } do
      on_gpu(("%s, %s"):format(schedule, pass), function()
        local names = placements.names()
        names[#names + 1] = "mixed"
        for _, placement in ipairs(names) do
          local per = schedule == "interleaved_1f1b" and 2 or 1
          opened.check { made = opened.odd(), pass = opened.PASSES[pass], rounds = 4,
            options = { balance = synchronous.cut(8, 2 * per), chunks = 4, schedule = schedule,
              devices = placements.devices(placement, 2) } }
        end
      end)
    end
  end

  for _, precision in ipairs { "f32", "bf16", "f16" } do
    on_gpu("of a small GPT in " .. precision, function()
      opened.check { made = gpt(), pass = opened.PASSES.step, rounds = 4,
        options = { balance = { 3, 4 }, chunks = 3, precision = precision,
          devices = placements.devices("same", 2) } }
    end)
  end
end)
