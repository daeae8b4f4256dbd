-- scripts/bench/gpt.lua - tokens per second of a byte GPT: the model of the peers, in our words.
--
--   gpipe-lua scripts/bench/gpt.lua [--stages N] [--threads N] [--chunks N] [--steps N] ...
-- Prints one line: the median over the steps after three of warm-up.
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn, optim, clock = gp.nn, gp.optim, require("gpipe.core").seconds

local opt = flags.parse("Time a training step of a byte GPT.", {
  { "--stages N", 1, "pipeline stages" }, { "--threads N", 1, "threads per device" },
  { "--chunks N", 1, "micro-batches" }, { "--steps N", 12, "timed steps" },
  { "--layers N", 6, "blocks" }, { "--width N", 384, "width" }, { "--heads N", 6, "heads" },
  { "--context N", 256, "tokens in a sequence" }, { "--batch N", 8, "sequences in a step" },
  { "--schedule NAME", "1f1b", "schedule" }, { "--checkpoint MODE", "never", "recomputation" },
  { "--balance LIST", "", "layers per stage, comma-separated" },
  { "--trace FILE", "", "write a Chrome trace of the last step" },
}, arg)
gp.seed(0)

local Embed = nn.class("Embed")
function Embed:init(context, width)
  self.byte = nn.Embedding(256, width)
  self.place = nn.Embedding(context, width)
  self.ids = gp.arange(0, context - 1, 1, { dtype = "i64" })
end
function Embed:forward(ids) return self.byte(ids) + self.place(self.ids) end

local function block(width, heads)
  return nn.Sequential {
    nn.Residual(nn.Sequential { nn.LayerNorm(width), nn.CausalSelfAttention(width, heads) }),
    nn.Residual(nn.Sequential {
      nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width),
    }),
  }
end

local layers = { Embed(opt.context, opt.width) }
for _ = 1, opt.layers do layers[#layers + 1] = block(opt.width, opt.heads) end
layers[#layers + 1] = nn.LayerNorm(opt.width)
layers[#layers + 1] = nn.Linear(opt.width, 256, { bias = false })

local devices = {}
for i = 1, opt.stages do devices[i] = { "cpu:" .. i - 1, threads = opt.threads } end
local balance
if opt.balance ~= "" then
  balance = {}
  for n in opt.balance:gmatch("%d+") do balance[#balance + 1] = tonumber(n) end
end
local pipe <close> = gp.pipeline(nn.Sequential(layers), {
  devices = devices, balance = balance, chunks = opt.chunks, schedule = opt.schedule,
  checkpoint = opt.checkpoint, loss = nn.CrossEntropyLoss(),
})
local adam = optim.AdamW(pipe:parameters(), { lr = 3e-4 })
local ids = (gp.rand({ opt.batch, opt.context }) * 256):to("i64")

local times = {}
for i = 1, opt.steps + 3 do
  local begin = clock()
  pipe:step(ids, ids)
  adam:step()
  if i > 3 then times[#times + 1] = clock() - begin end
end
table.sort(times)
local median = times[(#times + 1) // 2]
if opt.trace ~= "" then assert(pipe:trace(opt.trace)) end
local bubble = pipe.stats.bubble
print(("stages=%d threads=%d chunks=%d step=%.1fms min=%.1f tok/s=%.0f bubble=%s"):format(opt.stages,
  opt.threads, opt.chunks, median * 1e3, times[1] * 1e3, opt.batch * opt.context / median,
  ("%.0f%% "):rep(#bubble):format(table.unpack((function() local b = {} for i, v in ipairs(bubble) do b[i] = 100 * v end return b end)()))))
