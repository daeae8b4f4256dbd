-- examples/experiments/tables/speed.lua - samples per second of published runs: measured on the
-- devices that are here, simulated for the number of devices that the run had.
--
-- The simulation takes the measured cost of each stage's actions, with one device at work at a
-- time, and lays them out by the run's own schedule and number of micro-batches. It assumes that
-- every device is like the first one here and that copies take no time.
local gp = require "gpipe"
local report = require "report"
local nn, optim = gp.nn, gp.optim

local speed = {}

local ROUNDS = 3 -- the fastest counts: a shared machine makes steps slower, never faster

-- Lists n devices: GPUs, each once, or cores of this machine, one each.
local function devices(n)
  local found, cores = {}, 0
  for _, d in ipairs(gp.devices()) do
    if d.kind == "cuda" then found[#found + 1] = d.name else cores = cores + d.cores end
  end
  local gpus = #found
  for i = 1, n do
    found[i] = gpus == 0 and { "cpu:" .. i - 1, threads = 1 } or found[(i - 1) % gpus + 1]
  end
  return table.move(found, 1, n, 1, {}), n <= (gpus > 0 and gpus or cores)
end

-- Returns the time of the fastest of some steps, and what each action cost in it. There is no
-- update unless `micro` is the published size: after a few samples it would weigh more than it did
-- there.
local function time(case, row, schedule, micro, chunks)
  local pipe <close> = gp.pipeline(case.model(), {
    balance = row.balance, devices = devices(#row.balance), chunks = chunks, schedule = schedule,
    checkpoint = row.checkpoint or "except_last", loss = case.loss(), deferred_batch_norm = true,
  })
  if case.full then pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 })) end
  local x, y = case.batch(micro * chunks)
  pipe:step(x, y)
  local best, costs = math.huge, nil
  for _ = 1, ROUNDS do
    pipe:step(x, y)
    if pipe.stats.seconds < best then best, costs = pipe.stats.seconds, pipe:costs() end
  end
  return best, costs
end

-- Returns the seconds that these costs predict for a step of the published run.
local function simulate(row, costs, full)
  local chunks = row.chunks or 1
  local schedule = gp.schedule.build("gpipe", { devices = #row.balance, chunks = chunks })
  local lowered = schedule:lower {
    comms = false, checkpoint = row.checkpoint or "except_last", update = full and "free" or "none",
  }
  return lowered:simulate(costs).makespan
end

local function one(case, row, scale)
  local n, published = #row.balance, row.chunks or 1
  local micro = scale.micro or row.batch // published
  local chunks = math.min(published, scale.chunks or published)
  report.say("%s, %s: %d device%s", case.title, row.run, n, n == 1 and "" or "s")
  local _, costs = time(case, row, "naive", micro, math.min(chunks, 2))
  local here = {
    run = row.run, devices = n, chunks = published, published = row.rate, huang = row.huang,
    simulated = micro * published / simulate(row, costs, case.full),
  }
  local _, enough = devices(n)
  if enough then here.measured = micro * chunks / (time(case, row, "gpipe", micro, chunks)) end
  return here
end

local COLUMNS = {
  { "run", key = "run", left = true }, { "devices", key = "devices", format = "%d" },
  { "micro-batches", key = "chunks", format = "%d" },
  { "published/s", key = "published" }, { "x", key = "published_x" },
  { "GPipe x", key = "huang" }, { "simulated/s", key = "simulated" }, { "x", key = "simulated_x" },
  { "measured/s", key = "measured" }, { "x", key = "measured_x" },
}

--- Run the rows of a published table and print them beside it.
---@param case table title, rows, model(), batch(n), loss(), about: what is run here in words, full:
---  at the published size
---@param scale {micro: integer?, chunks: integer?, rows: integer?} what is smaller than published
function speed.run(case, scale)
  local rows = {}
  for i = 1, math.min(#case.rows, scale.rows or #case.rows) do
    rows[i] = one(case, case.rows[i], scale)
  end
  for _, key in ipairs { "published", "simulated", "measured" } do
    report.ratio(rows, key, key .. "_x")
  end
  report.print(case.title .. ": samples per second", COLUMNS, rows)
  print(("published: 8 x Tesla P40, PyTorch 1.3 (torchgpipe). Here: %s."):format(case.about))
  print "simulated: from costs measured here, for as many devices as the run had, each like these"
  print(case.full and "each step ends with an update"
    or "no updates: after a few samples they would weigh more than they did there")
  print "measured: the whole step, up to as many devices as are here (a CPU device is one core)"
  return rows
end

speed.loss = { classes = function() return nn.CrossEntropyLoss() end,
  mask = function() return nn.BCEWithLogitsLoss() end }

return speed
