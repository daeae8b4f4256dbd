-- scripts/bench/pipeline.lua - two CPU devices against one.
--
-- The quickstart's model with 8 micro-batches, nothing recomputed, one thread per device. Both
-- pipelines live side by side (each with a model of its own) and take turns, a few steps at a time.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure, model = require "figure", require "model"
local flags, core = require "gpipe.flags", require "gpipe.core"

local opt = flags.parse("Compare two devices with one.", {
  { "--rounds N", 12, "turns of each" }, { "--steps N", 4, "steps in a turn" },
  { "--chunks N", 8, "micro-batches" }, { "--schedule NAME", "1f1b", "schedule of the two" },
}, arg)
local size = model.quickstart
local ids = model.bytes(size)

-- A pipeline over so many devices, as a function that trains one step.
local function trainer(count)
  local pipe = gp.pipeline(model.gpt(size), {
    devices = model.devices(count, 1), chunks = opt.chunks, schedule = opt.schedule,
    checkpoint = "never", loss = gp.nn.CrossEntropyLoss(),
  })
  local adam = gp.optim.AdamW(pipe:parameters(), { lr = 1e-3 })
  return function()
    pipe:step(ids, ids)
    adam:step()
  end
end

-- Seconds of a step in a turn: the median after one step that fills the caches again.
local function turn(train)
  train()
  local times = {}
  for i = 1, opt.steps do times[i] = figure.seconds(train) end
  return figure.median(times)
end

-- ---- speed -----------------------------------------------------------------------------------

local function compare(one, two)
  local times = figure.alternate(opt.rounds, {
    one = function() return turn(one) end, two = function() return turn(two) end,
  }, { "one", "two" })
  for _, name in ipairs { "one", "two" } do
    figure.print(("pipeline.%s"):format(name),
      size.batch * size.context / figure.median(times[name]), "tok/s")
  end
  figure.print("pipeline.speedup", figure.median(figure.ratios(times.one, times.two)), "x", ">=",
    1.6)
end

local one, two = trainer(1), trainer(2)
if core.machine().cores < 2 then
  return figure.skip("pipeline.speedup", "this machine has one core")
end
compare(one, two)
