-- scripts/bench/predict.lua - the measured step against the simulated one, for every schedule.
--
-- On two CPU devices a real model runs whose stages are balanced. Its costs are the medians of the
-- step itself (pipe:costs); how they fit together is what is predicted. On more devices than the
-- machine has cores the actions sleep for their cost (GPIPE_FAULT), so the costs are known. The
-- script also measures what a barrier costs: steps one after another, with the update behind a
-- barrier and without.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Compare measured steps with predicted ones.", {
  { "--steps N", 12, "steps of each schedule" },
  { "--chunks N", 8, "micro-batches" },
  { "--devices N", 2, "CPU devices" },
  { "--sleep", false, "a tiny model: the actions sleep (this is how the script calls itself)" },
}, arg)

local BOUND = 1.1
local MILLISECONDS = 4 -- that a device's share of F, I and W each sleeps
local SLEEPING = { 4, 8 } -- devices

-- Lists the schedules whose steps are compared: the asynchronous ones have no step of their own.
local function synchronous()
  local names = {}
  for _, name in ipairs(gp.schedule.names()) do
    if not name:find "^pipedream" and name ~= "naive" then names[#names + 1] = name end
  end
  return names
end

local function build(name)
  return gp.schedule.build(name, { devices = opt.devices, chunks = opt.chunks })
end

-- Sixteen equal layers, so that every number of stages is balanced.
local function model(width)
  local layers = {}
  for i = 1, 16 do
    layers[i] = nn.Sequential { nn.Linear(width, width), nn.GELU "tanh", nn.Linear(width, width),
      nn.Tanh() }
  end
  return nn.Sequential(layers)
end

local function pipeline(name, schedule)
  local balance, devices = {}, {}
  for s = 1, schedule.stages do balance[s] = 16 // schedule.stages end
  for d = 1, opt.devices do devices[d] = { "cpu:" .. d - 1, threads = 1 } end
  return gp.pipeline(model(opt.sleep and 4 or 384), {
    balance = balance, devices = devices, chunks = opt.chunks, schedule = name,
    checkpoint = "never",
    loss = nn.MSELoss(),
  })
end

local function batch()
  return opt.sleep and gp.ones { opt.chunks, 4 } or gp.randn({ 48 * opt.chunks, 384 }, { seed = 1 })
end

-- The fastest step counts: a shared machine makes steps slower, never faster.
local function compare(name)
  local schedule, x = build(name), batch()
  local pipe <close> = pipeline(name, schedule)
  local best, costs = math.huge, nil
  for _ = 1, opt.steps do
    pipe:step(x, x)
    local seconds = pipe.stats.seconds
    if seconds < best then best, costs = seconds, pipe:costs() end
  end
  local predicted = schedule:lower { comms = false, update = "none" }:simulate(costs).makespan
  return best / predicted, best, predicted
end

local function compare_all()
  local worst = 0
  for _, name in ipairs(synchronous()) do
    local ratio, measured, predicted = compare(name)
    figure.print(("predict.%d.%s"):format(opt.devices, name), ratio, "x")
    worst = math.max(worst, ratio, predicted / measured)
  end
  figure.print(("predict.%d.worst"):format(opt.devices), worst, "x", "<=", BOUND)
end

-- Seconds of a step among many; without a barrier the pipeline stays full between them.
local function train(name, barrier)
  local x = batch()
  local pipe <close> = pipeline(name, build(name))
  pipe:use(optim.SGD(pipe:parameters(), { lr = 0 }), { barrier = barrier })
  pipe:step(x, x)
  pipe:flush() -- without a barrier the first step would still be running
  return figure.seconds(function()
    for _ = 1, opt.steps do pipe:step(x, x) end
    pipe:flush()
  end) / opt.steps
end

-- Without a barrier a step takes the span instead of the makespan, as zero-bubble papers report it.
local function compare_barrier()
  for _, name in ipairs { "1f1b", "zb_h2", "zbv" } do
    local simulated = build(name):simulate()
    figure.print(("predict.%d.%s.barrier_free"):format(opt.devices, name),
      train(name, true) / train(name, false), "x")
    figure.print(("predict.%d.%s.makespan/span"):format(opt.devices, name),
      simulated.makespan / simulated.span, "x")
  end
end

-- ---- the script again, with actions that sleep --------------------------------------------------

local function rule(op, seconds) return ("op=%s,action=sleep:%g"):format(op, seconds) end

local function sleeping(devices)
  local one = MILLISECONDS / 1000
  -- Rules of I and W both strike a whole B.
  local faults = table.concat({ rule("F", one), rule("I", one), rule("W", one) }, ";")
  local command = ("GPIPE_FAULT='%s' '%s' '%s' --sleep --devices %d --chunks %d --steps 3")
    :format(faults, arg[-1], arg[0], devices, 2 * devices)
  assert(os.execute(command))
end

compare_all()
if opt.sleep then return compare_barrier() end
for _, devices in ipairs(SLEEPING) do sleeping(devices) end
