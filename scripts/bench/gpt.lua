-- scripts/bench/gpt.lua - tokens per second of a byte GPT: the peers' model, built with gpipe.
--
--   gpipe-lua scripts/bench/gpt.lua [--stages N] [--threads N] [--chunks N] [--steps N] ...
-- Prints one line: the median over the steps after three of warm-up.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure, model = require "figure", require "model"
local flags = require "gpipe.flags"

local opt = flags.parse("Time a training step of a byte GPT.", {
  { "--stages N", 1, "pipeline stages" }, { "--threads N", 1, "threads per device" },
  { "--replicas N", 1, "copies of the pipeline, which share the batch" },
  { "--chunks N", 1, "micro-batches" }, { "--steps N", 12, "timed steps" },
  { "--layers N", 6, "blocks" }, { "--width N", 384, "width" }, { "--heads N", 6, "heads" },
  { "--context N", 256, "tokens in a sequence" }, { "--batch N", 8, "sequences in a step" },
  { "--schedule NAME", "1f1b", "schedule" }, { "--checkpoint MODE", "never", "recomputation" },
  { "--balance LIST", "", "layers per stage, comma-separated" },
  { "--trace FILE", "", "write a Chrome trace of the last step" },
}, arg)
gp.seed(0)

-- "4,5" -> {4, 5}; nothing -> nil, and the pipeline decides.
local function parse_balance(text)
  local list = {}
  for n in text:gmatch("%d+") do list[#list + 1] = tonumber(n) end
  return list[1] and list or nil
end

local pipe <close> = gp.pipeline(model.gpt(opt), {
  devices = model.devices(opt.stages * opt.replicas, opt.threads), replicas = opt.replicas,
  balance = parse_balance(opt.balance), chunks = opt.chunks, schedule = opt.schedule, checkpoint = opt.checkpoint,
  loss = gp.nn.CrossEntropyLoss(),
})
local adam = gp.optim.AdamW(pipe:parameters(), { lr = 3e-4 })
local ids = model.bytes(opt)

local times = {}
for i = -2, opt.steps do
  local seconds = figure.seconds(function()
    pipe:step(ids, ids)
    adam:step()
  end)
  if i > 0 then times[i] = seconds end
end
if opt.trace ~= "" then assert(pipe:trace(opt.trace)) end

local median, bubble = figure.median(times), {}
for d, share in ipairs(pipe.stats.bubble) do bubble[d] = ("%.0f%%"):format(100 * share) end
print(("stages=%d threads=%d chunks=%d step=%.1fms min=%.1fms tok/s=%.0f bubble=%s"):format(
  opt.stages, opt.threads, opt.chunks, median * 1e3, math.min(table.unpack(times)) * 1e3,
  opt.batch * opt.context / median, table.concat(bubble, ",")))
