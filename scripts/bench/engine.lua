-- scripts/bench/engine.lua - what the engine adds to an action: programs that do nearly nothing.
--
-- The programs are those of the peer (pipe_torch.py 1f1b 64 empty): two stages that multiply one
-- number by one parameter, 64 micro-batches of one row. A device runs 2 x 64 actions a step, so
-- step / 128 is the time of an action with everything around it; it includes a few nanoseconds of
-- arithmetic.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure, model = require "figure", require "model"
local flags, core = require "gpipe.flags", require "gpipe.core"
local nn = gp.nn

local opt = flags.parse("Time the engine.", {
  { "--steps N", 400, "timed steps" }, { "--chunks N", 64, "micro-batches" },
}, arg)

local Scale = nn.class("Scale")
function Scale:init() self.w = nn.Parameter({ 1 }, nn.init.ones()) end
function Scale:forward(x) return x * self.w end

-- Microseconds per action of a device, per step.
local function actions(stages, schedule)
  local layers = {}
  for i = 1, stages do layers[i] = Scale() end
  local pipe <close> = gp.pipeline(nn.Sequential(layers), {
    devices = model.devices(stages, 1), chunks = opt.chunks, schedule = schedule,
    checkpoint = "never", loss = nn.MSELoss(),
  })
  local x, y, times = gp.randn { opt.chunks, 1 }, gp.randn { opt.chunks, 1 }, {}
  for i = -20, opt.steps do
    local seconds = figure.seconds(function() pipe:step(x, y) end)
    if i > 0 then times[i] = 1e6 * seconds / (2 * opt.chunks) end
  end
  return times
end

-- The least is what the code takes; the median also shows what other programs on the machine take.
local function report(name, times, relation, bound)
  figure.print(name, figure.median(times), "us", relation, bound)
  figure.print(name .. ".least", math.min(table.unpack(times)), "us")
end

report("engine.action.alone", actions(1, "1f1b"))
if core.machine().cores < 2 then
  return figure.skip("engine.action", "this machine has one core")
end
report("engine.action", actions(2, "1f1b"), "<=", 3)
report("engine.action.gpipe", actions(2, "gpipe"), "<=", 3)
