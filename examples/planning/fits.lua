-- examples/planning/fits.lua - does it fit? A GPT on devices with so much memory, and what would
-- fit if it does not.
--
--   gpipe-lua examples/planning/fits.lua
--   gpipe-lua examples/planning/fits.lua --layers 48 --width 1600 --devices 8 --memory 16GiB
--   gpipe-lua examples/planning/fits.lua --help
--
-- The devices are described, so nothing runs and no parameter is drawn. Ends with status 1 where
-- nothing fits.
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Say whether a GPT fits devices, and with which plan.", {
  { "--layers N", 24, "blocks" },
  { "--width N", 1024, "units" },
  { "--heads N", 16, "of attention" },
  { "--context N", 512, "tokens" },
  { "--vocabulary N", 50257, "tokens there are" },
  { "--batch N", 64, "rows of a mini-batch" },
  { "--devices N", 4, "how many" },
  { "--memory SIZE", "4GiB", "of each device" },
  { "--optimizer NAME", "AdamW", "what it keeps beside the parameters" },
}, arg)

local model = gp.models.gpt2 {
  layers = opt.layers, width = opt.width, heads = opt.heads, context = opt.context,
  vocabulary = opt.vocabulary,
}
local ids = gp.zeros({ 1, opt.context }, { dtype = "i64" })

local devices = {}
for i = 1, opt.devices do
  devices[i] = { "sim:" .. i - 1, memory = opt.memory, flops = 20e12, bandwidth = 500e9,
    link = { latency = 1e-5, bandwidth = 16e9 } }
end

local plan, why = gp.plan(model, { ids, ids }, {
  devices = devices, batch = opt.batch, optimizer = opt.optimizer, loss = nn.CrossEntropyLoss(),
})
if not plan then
  print("it does not fit. " .. why)
  os.exit(1, true)
end
print(("it fits: %d devices with %s"):format(opt.devices, opt.memory))
print(plan)
