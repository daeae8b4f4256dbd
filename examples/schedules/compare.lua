-- examples/schedules/compare.lua - every schedule: published figures reproduced, then measured on a
-- real model.
--
--   gpipe-lua examples/schedules/compare.lua               pictures go to ./schedules
--   gpipe-lua examples/schedules/compare.lua /tmp/out      or where you say
--   gpipe-lua examples/schedules/compare.lua --help
--
-- Prints three tables: unit costs and unequal costs, each beside the reference's figure ("=" where
-- they agree), and a model trained under every schedule: what its own costs predict, what a step
-- took, and whether the loss is that of one stage to the last bit. Less than a minute on two cores.
local folder_here = arg[0]:match("^(.*/)[^/]*$") or "./"
package.path = folder_here .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local flags = require "gpipe.flags"
local reference = require "reference"
local nn, optim = gp.nn, gp.optim

local folder = arg[1] and not arg[1]:find "^%-" and table.remove(arg, 1) or "schedules"
local opt = flags.parse("Compare all schedules. A folder for pictures may come first (schedules).",
  {
  { "--devices N", 2, "CPU devices of the measured pipeline" },
  { "--chunks N", 8, "micro-batches in a step" },
  { "--width N", 384, "units of a hidden layer" },
  { "--rows N", 64, "rows of a micro-batch" },
  { "--steps N", 20, "steps of each schedule; the fastest counts" },
  { "--seed N", 1, "seed of weights and data", min = 0 },
}, arg)

-- Makes the folder, or ends the script and says why there is none.
local function make_folder()
  local quoted = "'" .. folder:gsub("'", "'\\''") .. "'"
  if os.execute("mkdir -p -- " .. quoted) then return end
  local text = "%s: no folder '%s' for the pictures, expected one that can be made\n"
  io.stderr:write(text:format(arg[0], folder))
  os.exit(1, true)
end

make_folder()

-- ---- simulated: the reference's tables ---------------------------------------------------------

local function label_of(case)
  local words = {}
  for _, key in ipairs { "stages_per_device", "warmup", "memory" } do
    words[#words + 1] = case[key] and (" %s=%d"):format(key, case[key])
  end
  return case[1] .. table.concat(words)
end

-- Simulates a schedule of p devices and m micro-batches; the costs are those of a device's whole
-- share.
local function simulate(case, p, m, F, I, W, comm)
  local s = gp.schedule.resolve(case, p, m)
  local v = s.stages / s.devices
  return s:simulate { F = F / v, I = I / v, W = W / v, comm = comm }
end

local all, agreeing = 0, 0

-- "28.5 =", or both figures where they differ.
local function against(is, wanted)
  all = all + 1
  if math.abs(is - wanted) > 1e-9 * wanted then return ("%g (not %g)"):format(is, wanted) end
  agreeing = agreeing + 1
  return ("%g ="):format(is)
end

print "makespan and span, F = I = W = 1 of a device's share; = agrees with the reference"
print(("%-36s %9s %9s %9s %9s"):format("", "p=4 m=8", "span", "p=8 m=16", "span"))
for _, case in ipairs(reference.unit) do
  local small, large = simulate(case[1], 4, 8, 1, 1, 1), simulate(case[1], 8, 16, 1, 1, 1)
  print(("%-36s %9s %9s %9s %9s"):format(label_of(case[1]),
    against(small.makespan, case[2][1]), against(small.span, case[2][2]),
    against(large.makespan, case[3][1]), against(large.span, case[3][2])))
end

print "\nthe same for F = 10, I = 12, W = 8, a hop 1, p = 8"
print(("%-36s %9s %9s %7s %9s"):format("", "m=16", "span", "bubble", "m=32"))
for _, case in ipairs(reference.unequal) do
  local short = simulate(case[1], 8, 16, 10, 12, 8, 1)
  local long = simulate(case[1], 8, 32, 10, 12, 8, 1)
  print(("%-36s %9s %9s %5.1f %% %9s"):format(label_of(case[1]),
    against(short.makespan, case[2][1]),
    against(short.span, case[2][2]), 100 * short.bubble[1], against(long.makespan, case[3])))
end
print(("%d of %d figures agree with the reference"):format(agreeing, all))

-- ---- measured: a model under every schedule ----------------------------------------------------

local p, m = opt.devices, opt.chunks
local layers = 4 * p -- so that a schedule may put up to four stages on a device

local function new_model()
  gp.seed(opt.seed)
  local blocks = {}
  for i = 1, layers do
    blocks[i] = nn.Sequential { nn.Linear(opt.width, opt.width), nn.Tanh() }
  end
  return nn.Sequential(blocks)
end

gp.seed(opt.seed)
local x, y = gp.randn { m * opt.rows, opt.width }, gp.randn { m * opt.rows, opt.width }

-- Opens a pipeline over p devices with one thread each, and its optimizer; an asynchronous pipeline
-- runs the updates itself.
local function open(case, devices)
  local names = {}
  for d = 1, devices do names[d] = "cpu:" .. d - 1 end
  local pipe = gp.pipeline(new_model(), {
    devices = names, chunks = m, schedule = case, checkpoint = "never", loss = nn.MSELoss(),
  })
  local sgd = optim.SGD(pipe:parameters(), { lr = 0.1 })
  if pipe.asynchronous then pipe:use(sgd) end
  return pipe, sgd
end

-- Runs once what a schedule's rows show: a step, or a stream from fill to drain.
local function run_once(pipe, sgd, steps)
  if not pipe.asynchronous then
    local loss = pipe:step(x, y)
    return loss, sgd:step()
  end
  for _ = 1, steps do pipe:step(x, y) end
  local losses = pipe:flush()
  return losses[#losses]
end

-- Trains; returns the last loss, and the time, timeline, costs and stats of the fastest step.
local function measure(case, devices, steps)
  local pipe <close>, sgd = open(case, devices)
  local best, loss = { seconds = math.huge }, nil
  for _ = 1, opt.steps do
    loss = run_once(pipe, sgd, steps)
    local timeline, stats = pipe:timeline(), pipe.stats
    if timeline.makespan < best.seconds then
      best = { seconds = timeline.makespan, timeline = timeline, costs = pipe:costs(),
        stats = stats }
    end
  end
  return loss, best
end

local function mean(list)
  local sum = 0
  for _, value in ipairs(list) do sum = sum + value end
  return 100 * sum / #list
end

local one_stage = measure({ "gpipe" }, 1, 1)

-- Says how a loss compares with that of one stage.
local function verdict(s, loss)
  if s.batch > 0 then return "asynchronous" end
  if loss == one_stage then return "same bits" end
  local off = math.abs(loss - one_stage) / one_stage
  local wanted = s.copies > 1 and off < 1e-6 -- two copies add gradients in another order
  return wanted and ("within %.0e"):format(off) or ("DIFFERS by %.0e"):format(off)
end

local pictures, page = {}, {}

-- Draws the predicted timeline above the measured one: a picture of this schedule, and two rows of
-- the page that holds all schedules whose timeline is one step.
local function draw(case, simulated, label, best)
  local path = ("%s/%s.svg"):format(folder, label:gsub("[ =]", "_"))
  assert(simulated:svg(path, { measured = best.timeline }))
  pictures[#pictures + 1] = path
  local predicted, measured = simulated.last_simulation:timeline(), best.timeline
  predicted.name, measured.name = label .. ", predicted", label .. ", measured"
  if case.batches then return end -- several steps would squeeze all others on the common axis
  page[#page + 1], page[#page + 2] = predicted, measured
end

local function measured_row(case)
  local label = label_of(case)
  local good, s = pcall(gp.schedule.resolve, case, p, m)
  if not good then return print(("%-36s %s"):format(label, s:gsub("^[^:]+:%d+: ", ""))) end
  local loss, best = measure(case, p, case.batches or 1)
  -- as it runs: W ascending, two copies added
  local lowered = s:lower { comms = false, update = "none" }
  local predicted = lowered:simulate(best.costs)
  print(("%-36s %9.2f %9.2f %6.2f %7.1f %% %7.1f %% %5d  %s"):format(label,
    1e3 * predicted.makespan,
    1e3 * best.seconds, best.seconds / predicted.makespan, mean(predicted.bubble),
    mean(best.stats.bubble),
    math.max(table.unpack(best.stats.peak_live)), verdict(s, loss)))
  draw(case, lowered, label, best)
end

print(("\na model of %d layers of %d, %d micro-batches of %d rows, on %d CPU devices; milliseconds "
  .. "of a step")
  :format(layers, opt.width, m, opt.rows, p))
print(("%-36s %9s %9s %6s %9s %9s %5s  %s"):format("", "predicted", "measured", "ratio", "bubble",
  "measured",
  "live", "loss"))
for _, case in ipairs {
  { "naive" }, { "gpipe" }, { "1f1b" }, { "1f1b", warmup = 2 },
  { "interleaved_1f1b", stages_per_device = 2 }, { "interleaved_1f1b", stages_per_device = 4 },
  { "looped_bfs" }, { "interleaved_zero_bubble" }, { "zb_h1" }, { "zb_h2" }, { "zb_auto" },
  { "zbv" }, { "v_half" },
  { "v_min" }, { "dualpipev" }, { "dualpipe" }, { "chimera" }, { "pipedream" },
  { "pipedream_2bw", batches = 3 },
} do measured_row(case) end
print("live: activations of a stage kept at once, the most on any device; a step of pipedream_2bw: "
  .. "three batches")
print "the prediction takes it that every device has a core of its own"

local overview = folder .. "/all.html"
local any = gp.schedule.build("1f1b", { devices = p, chunks = m })
assert(any:html(overview, { timelines = page, title = "All schedules, predicted and measured" }))
print(("pictures: %s (all of one step, with zoom), %s"):format(overview,
  table.concat(pictures, ", ")))
