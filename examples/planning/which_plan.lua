-- examples/planning/which_plan.lua - which plan is fastest here? Layers are measured, plans are
-- simulated, and the best one is run: what was predicted beside what came.
--
--   gpipe-lua examples/planning/which_plan.lua
--   gpipe-lua examples/planning/which_plan.lua --memory 24MiB      less memory: another plan
--   gpipe-lua examples/planning/which_plan.lua --help
--
-- The prediction takes it that every device has a core of its own and that nothing else runs.
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Plan a small GPT on CPU devices, and run the plan.", {
  { "--devices N", 2, "CPU devices, one thread each" },
  { "--memory SIZE", "64MiB", "of each device" },
  { "--batch N", 16, "rows of a mini-batch" },
  { "--layers N", 6, "blocks" },
  { "--width N", 128, "units" },
  { "--steps N", 5, "steps; the fastest counts" },
  { "--seed N", 1, "seed of weights and data", min = 0 },
}, arg)

gp.seed(opt.seed)
local context, vocabulary = 64, 256
local model = gp.models.gpt2 {
  layers = opt.layers, width = opt.width, heads = 4, context = context, vocabulary = vocabulary,
  dropout = 0,
}
local x = gp.randint(0, vocabulary, { opt.batch, context })
local y = gp.randint(0, vocabulary, { opt.batch, context })

local devices = {}
for i = 1, opt.devices do devices[i] = { "cpu:" .. i - 1, threads = 1, memory = opt.memory } end

local plan, why = gp.plan(model, { x, y }, {
  devices = devices, loss = nn.CrossEntropyLoss(), optimizer = "AdamW",
})
if not plan then
  print(why)
  os.exit(1, true)
end
print(plan)

local pipe <close> = gp.pipeline(model, plan)
local adam = optim.AdamW(pipe:parameters(), { lr = 1e-3 })
local fastest, loss = math.huge, nil
for _ = 1, opt.steps do
  loss = pipe:step(x, y)
  adam:step()
  fastest = math.min(fastest, pipe.stats.seconds)
end
print(("step: predicted %.2f ms, measured %.2f ms (%.2f times); loss %.4f"):format(
  1e3 * plan.best.seconds, 1e3 * fastest, fastest / plan.best.seconds, loss))
for d, bytes in ipairs(pipe.stats.peak_bytes) do
  print(("%s: planned %d bytes in all, of which a step took %d"):format(plan.devices[d].name,
    plan.best.peak[d], bytes))
end
