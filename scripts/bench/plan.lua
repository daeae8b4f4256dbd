-- scripts/bench/plan.lua - how long planning takes, for devices that this machine does not have.
--
-- bench_plan (plan.c) traces a tower of small layers, makes 1F1B and plans: the whole of it, or the
-- share of one device in the middle. The time of the schedule is a figure of its own. Planning must
-- stay near-linear: a stage of twice as many ops must not take much more than twice as long, nor
-- may a stream of an asynchronous schedule that is twice as long.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"

local opt = flags.parse("Time planning.",
  { { "--rounds N", 3, "runs of each; the fastest counts" } }, arg)
local program = figure.interpreter():match("^(.*/)[^/]*$") .. "bench_plan"

-- Processor seconds for the schedule and for the plan, and MiB, of the fastest run.
local function run(...)
  local best
  local command = table.concat({ figure.quote(program), ... }, " ")
  for _ = 1, opt.rounds do
    local schedule, plan, memory = assert(figure.capture(command)):match "(%S+) (%S+) (%S+)"
    local one = { schedule = tonumber(schedule), plan = tonumber(plan), memory = tonumber(memory) }
    if not best or one.plan < best.plan then best = one end
  end
  return best
end

local whole = run("1f1b", 192, 768, -1, 1, 0)
figure.print("plan.whole.192x768", whole.plan, "s", "<=", 1)
figure.print("plan.whole.192x768.memory", whole.memory, "MiB")
local share = run("1f1b", 1024, 4096, 511, 1, 0)
figure.print("plan.share.1024x4096", share.plan, "s", "<=", 10)
figure.print("plan.share.1024x4096.memory", share.memory, "MiB", "<=", 2048)
figure.print("plan.share.1024x4096.schedule", share.schedule, "s")
-- What a rank of a job saves by planning its own device alone.
local all, part = run("1f1b", 512, 2048, -1, 1, 0), run("1f1b", 512, 2048, 255, 1, 0)
figure.print("plan.share.512x2048.of_whole", part.plan / all.plan, "x", "<=", 0.5)
figure.print("plan.share.512x2048.of_memory", part.memory / all.memory, "x", "<=", 0.5)
local few, many = run("1f1b", 1, 2, -1, 1, 8000), run("1f1b", 1, 2, -1, 1, 16000)
figure.print("plan.ops.16000", many.plan, "s", "<=", 1)
figure.print("plan.ops.growth", many.plan / few.plan, "x", "<=", 3)

-- A stream over twice the stages has four times the actions, as it shows twice as many
-- micro-batches.
local short, long = run("pipedream", 96, 1, -1, 1, 0), run("pipedream", 192, 1, -1, 1, 0)
figure.print("plan.pipedream.192", long.plan, "s", "<=", 1)
figure.print("plan.pipedream.growth", long.plan / short.plan, "x", "<=", 6)
figure.print("plan.pipedream.64x2048", run("pipedream", 64, 2048, -1, 1, 0).plan, "s", "<=", 3)
local half, whole_2bw = run("2bw", 192, 384, -1, 1, 0), run("2bw", 192, 768, -1, 1, 0)
figure.print("plan.2bw.192x768", whole_2bw.plan, "s", "<=", 3)
figure.print("plan.2bw.192x768.memory", whole_2bw.memory, "MiB")
figure.print("plan.2bw.growth", whole_2bw.plan / half.plan, "x", "<=", 3)
figure.print("plan.lower.64x8192", run("lower", 64, 8192, -1, 1, 0).plan, "s", "<=", 0.5)

-- A dry run of all ranks, which builds, verifies and simulates the schedule, plans bytes, and asks
-- gp.plan what it would choose. It ends at the first step, and then tells what it took.
local DRY = [[
local gp = require "gpipe"
local nn, layers, devices, balance = gp.nn, {}, {}, {}
for i = 1, 1024 do
  layers[i], balance[i] = nn.Linear(16, 16), 1
  devices[i] = { "sim:" .. i - 1, memory = "1GiB", flops = 1e12, bandwidth = 1e11 }
end
local leave = os.exit
os.exit = function(...)
  local file <close> = assert(io.open "/proc/self/status")
  print("TOOK", os.clock(), file:read("a"):match "VmHWM:%s*(%d+)" // 1024)
  leave(...)
end
local pipe = gp.pipeline(nn.Sequential(layers), { balance = balance, devices = devices,
  chunks = 4096, schedule = "1f1b", loss = nn.MSELoss() })
pipe:step(gp.zeros { 4096, 16 }, gp.zeros { 4096, 16 })]]
local script = os.tmpname()
do
  local file <close> = assert(io.open(script, "w"))
  file:write(DRY)
end
local took, memory
for _ = 1, opt.rounds do
  local text = assert(figure.capture(("%s --dry-run %s"):format(figure.interpreter(), script)))
  local seconds, peak = text:match "TOOK%s+(%S+)%s+(%S+)"
  took, memory = math.min(took or math.huge, tonumber(seconds)), tonumber(peak)
end
os.remove(script)
figure.print("plan.dry_run.1024x4096", took, "s", "<=", 10)
figure.print("plan.dry_run.1024x4096.memory", memory, "MiB", "<=", 2048)

-- The planner on a model and a cluster that are not here.
local gp = require "gpipe"
local model = gp.models.gpt2 { layers = 96, width = 1024, heads = 16, context = 512 }
local x = gp.zeros({ 1, 512 }, { dtype = "i64" })
local begin = os.clock()
assert(gp.plan(model, { x, x }, {
  devices = gp.cluster {
    hosts = 8, devices = 8, memory = "16GiB", flops = 312e12, bandwidth = 2e12,
  },
  batch = 512, loss = gp.nn.CrossEntropyLoss(),
}))
figure.print("plan.planner.96x64", os.clock() - begin, "s", "<=", 10)
