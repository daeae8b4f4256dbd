-- examples/schedules/my_schedule.lua - a schedule of your own: written, verified, simulated, drawn,
-- run.
--
--   gpipe-lua examples/schedules/my_schedule.lua           the picture goes to ./my_schedule.svg
--   gpipe-lua examples/schedules/my_schedule.lua --help
--
-- The schedule is one that has no name yet: zero bubble with as many activations as you allow, from
-- ZB-H1 (`limit` = devices) to ZB-H2 (2 devices - 1). Each further activation takes one slot off
-- the bubble. The script prints what verify says of a mistake, a table of limits, the drawing, and
-- a training run: the same parameters as under 1F1B, to the last bit, and the predicted beside the
-- measured time.
local gp = require "gpipe"
local flags, progress = require "gpipe.flags", require "gpipe.progress"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Write, check and run a schedule.", {
  { "--devices N", 2, "pipeline stages, one CPU device each" },
  { "--chunks N", 8, "micro-batches in a step" },
  { "--limit N", 3, "activations that a device may keep; at least its number of devices" },
  { "--steps N", 20, "training steps" },
  { "--picture PATH", "my_schedule.svg", "where the picture goes" },
}, arg)

-- ---- the schedule: a function that appends to the list of each device ---------------------------

-- Device d starts with forwards, as many as 2 (p-d) - 1 and the limit allow; then I and F in turn.
-- W comes when there is no room for the next F, and otherwise when nothing else is left to do.
gp.schedule.define("up_to_limit", function(p, m, opts)
  local rows, placement, limit = gp.schedule.rows(p), {}, math.max(opts.limit or p, p)
  for d = 0, p - 1 do
    local f, i, w = 0, 0, 0 -- how many of each are in the list
    local function forward() rows:F(d, d, f) f = f + 1 end
    local function weights() rows:W(d, d, w) w = w + 1 end
    placement[d] = d
    local first = math.min(2 * (p - d) - 1, limit - d)
    -- the wrong way round: the device whose first B comes soonest gets the most
    if opts.mistake then first = d + 1 end
    while f < math.min(first, m) do forward() end
    while i < m do
      rows:I(d, d, i) i = i + 1
      if f < m then
        while f - w >= limit do weights() end
        forward()
      elseif i - w > d then
        weights()
      end
    end
    while w < m do weights() end
  end
  return { placement = placement, rows = rows }
end)

local p, m = opt.devices, opt.chunks
local function mine(devices, chunks, limit, mistake)
  return gp.schedule.build("up_to_limit",
    { devices = devices, chunks = chunks, limit = limit, mistake = mistake })
end

-- ---- is it valid? -------------------------------------------------------------------------------

local good, report = mine(4, 4, 4, true):verify()
print("with a mistake in it:\n" .. tostring(report) .. "\n")
assert(not good and report[1].check == "cycle")

-- ---- what will it cost? -------------------------------------------------------------------------

print "8 devices, 16 micro-batches, F = I = W = 1:"
local entries = { devices = 8, chunks = 16, "1f1b", "zb_h1" }
for limit = 8, 15 do entries[#entries + 1] = { "up_to_limit", limit = limit } end
entries[#entries + 1] = "zb_h2"
gp.schedule.compare(entries)

local s = assert(mine(p, m, opt.limit):verify { peak_live = math.max(opt.limit, p) })
print("\n" .. s:draw())

-- ---- the same parameters as under 1F1B ----------------------------------------------------------

local WIDTH, ROWS = 384, 64

local function new_model()
  gp.seed(1)
  local layers = {}
  for i = 1, math.max(8, p) do
    layers[i] = nn.Sequential { nn.Linear(WIDTH, WIDTH), nn.Tanh() }
  end
  return nn.Sequential(layers)
end

gp.seed(2)
local x, y = gp.randn { m * ROWS, WIDTH }, gp.randn { m * ROWS, WIDTH }

-- Trains under a schedule that is built already; the pipeline makes a CPU device for each of its
-- devices. The update is part of the step: all stages update together, or (barrier = false) each as
-- soon as its own gradients are there.
local function train(schedule, barrier)
  local pipe <close> = gp.pipeline(new_model(), {
    schedule = schedule, checkpoint = "never", loss = nn.MSELoss(),
  })
  pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }), { barrier = barrier })
  pipe:step(x, y) -- plans, and allocates its memory
  pipe:flush()
  local started, fastest = progress.now(), nil
  for _ = 1, opt.steps do
    pipe:step(x, y)
    -- reading the timeline of a pipeline without a barrier would drain it
    local timeline = barrier and pipe:timeline()
    if timeline and not (fastest and fastest.timeline.makespan < timeline.makespan) then
      fastest = { timeline = timeline, costs = pipe:costs() }
    end
  end
  pipe:flush()
  local seconds = (progress.now() - started) / opt.steps
  return { state = pipe:state_dict(), seconds = seconds, fastest = fastest }
end

local function same_bits(a, b)
  for name, value in pairs(a) do
    if not value:equal(b[name]) then return false end
  end
  return true
end

local plain = gp.schedule.build("1f1b", { devices = p, chunks = m })
local before = train(plain, true)
print(("\n%d steps on %d devices, milliseconds each\n%-28s %7.2f"):format(opt.steps, p, "1f1b",
  1e3 * before.seconds))
local run
for _, barrier in ipairs { false, true } do
  run = train(s, barrier)
  print(("%-28s %7.2f   parameters: %s"):format(barrier and s.name or s.name .. ", no barrier",
    1e3 * run.seconds,
    same_bits(before.state, run.state) and "those of 1f1b, to the last bit" or "NOT those of 1f1b"))
end

-- ---- predicted and measured ---------------------------------------------------------------------

local lowered = s:lower { comms = false } -- as it runs, with the updates
local predicted, measured = lowered:simulate(run.fastest.costs), run.fastest.timeline
print(("\nthe fastest step: predicted %.2f ms, measured %.2f ms"):format(1e3 * predicted.makespan,
  1e3 * measured.makespan))
print(lowered:draw { measured = measured })
assert(lowered:svg(opt.picture, { measured = measured }))
print("picture: " .. opt.picture)
