-- examples/planning/my_cluster.lua - plans for a cluster that is not there: a GPT over hosts with
-- several devices each, a fast link inside a host and a slow one between hosts.
--
--   gpipe-lua examples/planning/my_cluster.lua
--   gpipe-lua examples/planning/my_cluster.lua --hosts 2 --memory 40GiB --precision f32
--   gpipe-lua examples/planning/my_cluster.lua --help
--
-- A model with tens of billions of parameters is declared and planned; none of them is drawn.
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Plan a GPT for a cluster.", {
  { "--hosts N", 4, "machines" },
  { "--devices N", 8, "devices in each" },
  { "--memory SIZE", "80GiB", "of each device" },
  { "--flops X", 312e12, "of each device, per second" },
  { "--bandwidth X", 2e12, "bytes per second of its memory" },
  { "--network X", 25e9, "bytes per second between hosts" },
  { "--layers N", 64, "blocks" },
  { "--width N", 6144, "units" },
  { "--heads N", 48, "of attention" },
  { "--context N", 1024, "tokens" },
  { "--batch N", 256, "rows of a mini-batch" },
  { "--precision WORD", "bf16", "f32, tf32, bf16 or f16" },
}, arg)

local cluster = gp.cluster {
  hosts = opt.hosts, devices = opt.devices, memory = opt.memory, flops = opt.flops,
  bandwidth = opt.bandwidth, network = { latency = 20e-6, bandwidth = opt.network },
}
local model = gp.models.gpt2 {
  layers = opt.layers, width = opt.width, heads = opt.heads, context = opt.context,
}
local count = 0
for _, entry in ipairs(model:parameters()) do count = count + entry.param:numel() end
local ids = gp.zeros({ 1, opt.context }, { dtype = "i64" })

local plan, why = gp.plan(model, { ids, ids }, {
  devices = cluster, batch = opt.batch, precision = opt.precision, optimizer = "AdamW",
  loss = nn.CrossEntropyLoss(),
})
print(("%.1f billion parameters on %d devices"):format(count / 1e9, #cluster))
print(plan or why)
os.exit(plan and 0 or 1, true)
