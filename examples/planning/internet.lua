-- examples/planning/internet.lua - a large model on people's computers, joined by the internet:
-- what is worth it and what is not.
--
--   gpipe-lua examples/planning/internet.lua
--   gpipe-lua examples/planning/internet.lua --mbit 1000 --latency 10
--   gpipe-lua examples/planning/internet.lua --help
--
-- Everything is simulated. What a home sends passes its link one by one, so slow links count.
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Plan a GPT for homes that the internet joins.", {
  { "--homes N", 16, "with one GPU each" },
  { "--mbit X", 100.0, "Mbit/s that a home sends" },
  { "--latency X", 50.0, "milliseconds from one home to another" },
  { "--memory SIZE", "24GiB", "of each GPU" },
  { "--flops X", 80e12, "of each GPU, per second" },
  { "--layers N", 32, "blocks" },
  { "--width N", 4096, "units" },
  { "--heads N", 32, "of attention" },
  { "--context N", 1024, "tokens" },
  { "--batch N", 64, "rows of a mini-batch" },
  { "--stays HOURS", 24.0, "for which a home stays, on average" },
}, arg)

local model = gp.models.gpt2 {
  layers = opt.layers, width = opt.width, heads = opt.heads, context = opt.context,
}
local count = 0
for _, entry in ipairs(model:parameters()) do count = count + entry.param:numel() end
local ids = gp.zeros({ 1, opt.context }, { dtype = "i64" })

-- The best plans for homes with such a link.
local function plan_for(network, schedules, homes)
  return assert(gp.plan(model, { ids, ids }, {
    devices = gp.cluster {
      hosts = homes, devices = 1, memory = opt.memory, flops = opt.flops, bandwidth = 1e12,
      efficiency = 0.4, network = network,
    },
    batch = opt.batch, chunks = { opt.batch // 4, opt.batch }, precision = "bf16",
    checkpoint = "always", schedules = schedules, loss = nn.CrossEntropyLoss(), verify = false,
  }))
end

-- The fastest row with as many homes as possible, and with fewer where that is faster.
local function by_homes(plan)
  local most, list = 0, {}
  for _, row in ipairs(plan.rows) do most = math.max(most, row.devices) end
  for _, row in ipairs(plan.rows) do
    if row.devices == most then list[1] = list[1] or row end
  end
  if plan.best ~= list[1] then list[2] = plan.best end
  return list
end

local function verdict(share)
  if share >= 0.5 then return "worth it" end
  return share >= 0.2 and "only where there is no other way" or "not worth it"
end

local network = { latency = opt.latency / 1e3, bandwidth = opt.mbit * 1e6 / 8 }
local SCHEDULES = { "1f1b", "gpipe", "zb_h1", { "interleaved_1f1b", stages_per_device = 2 } }
local ROOM = { latency = 20e-6, bandwidth = 12.5e9 }
local near = plan_for(ROOM, SCHEDULES, opt.homes)
local far = plan_for(network, SCHEDULES, opt.homes)
local work = near.lower_bound * opt.homes -- seconds of one GPU for a step
local tokens = opt.batch * opt.context

print(("%.1f billion parameters, %d tokens a step, homes with %s, %g Mbit/s and %g ms"):format(
  count / 1e9, tokens, opt.memory, opt.mbit, opt.latency))
print(("a row between two stages: %.1f MB, %.2f s on the way; its work in one of %d stages: %.2f s")
  :format(opt.context * opt.width * 2 / 1e6,
    network.latency + opt.context * opt.width * 2 / network.bandwidth, opt.homes,
    work / opt.homes / opt.batch))

local function say(label, row)
  local share = plan_for(ROOM, SCHEDULES, row.devices).best.seconds / row.seconds
  print(("  %s, %2d homes: %s, step %.1f s, %.0f tokens/s, %.0f %% of one room: %s"):format(label,
    row.devices, row.label, row.seconds, tokens / row.seconds, 100 * share, verdict(share)))
end

print "\n1. One pipeline over homes, beside the same GPUs in one room (100 Gbit/s)"
for _, row in ipairs(by_homes(far)) do say(("%g Mbit/s"):format(opt.mbit), row) end
for _, mbit in ipairs { 300, 1000, 3000 } do
  local other = plan_for({ latency = network.latency, bandwidth = mbit * 1e6 / 8 }, SCHEDULES,
    opt.homes)
  say(("%d Mbit/s"):format(mbit), other.best)
end

print "\n2. Times that vary (steps 10 %, links 50 %): which schedule suffers least"
local noise = { jitter = { action = 0.1, travel = 0.5 }, samples = 100 }
far:compare(noise)

print "\n3. Replicas of that pipeline, which add up their gradients"
for _, every in ipairs { 1, 100, 1000 } do
  local job = far:simulate { replicas = 8, local_steps = every, network = network }
  local share = far.best.seconds / job.step
  print(("  8 replicas, every %4d steps: exchange %.1f minutes, %5.0f tokens/s, %4.1f %% of what 8 "
    .. "apart do: %s"):format(every, job.exchange / 60, job.rate * opt.context, 100 * share,
    verdict(share)))
end
print "  (with steps apart in between, training is another one: no bits are promised)"

print(("\n4. Homes that leave, after %g hours on average"):format(opt.stays))
for _, replicas in ipairs { 1, 8 } do
  local job = far:simulate {
    replicas = replicas, local_steps = replicas > 1 and 100 or 1, network = network,
    failures = opt.stays * 3600, checkpoint = { seconds = 60, restart = 600 },
  }
  print(("  %d homes: %s: %s"):format(job.hosts, tostring(job.failures), verdict(job.goodput)))
end

print(([[

In words: cut as rarely as memory allows. A stage computes for longer than its values travel only
where links are fast enough: here a home needs about %.0f Mbit/s. Adding up gradients after every
step is out of reach; after hundreds of steps it is not, but that trains otherwise. Homes that leave
cost more than their share: save often, and keep the number that have to stay together small.]])
  :format(2 * opt.context * opt.width * 2 * 8 * opt.batch * opt.homes / work / 1e6))
