-- scripts/bench/gpu_ranks.lua - two processes with a GPU each, or with one GPU together: the bits,
-- the way that values take, and how fast it is.
--
--   gpipe-lua --ranks 2 scripts/bench/gpu_ranks.lua one|two [MIB]
--
-- The same model trains twice: with both stages on rank 0, and with one on each rank. Losses and
-- weights must be equal in every bit. MIB is the size of what crosses the cut in a micro-batch.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local core = require "gpipe.core"
local figure = require "figure"
local nn = gp.nn

local MACHINE = 69 -- EX_UNAVAILABLE of sysexits.h
local CHUNKS, WIDTH, STEPS = 8, 1024, 6

local which, mib = arg[1] or "one", tonumber(arg[2]) or 16
local rows = math.max(1, math.floor(mib * (1 << 20) / (4 * WIDTH))) -- of a micro-batch

local function say(...) if gp.rank() == 0 then figure.print(...) end end

local seen = core.gpus() or {}
local wanted = which == "two" and 2 or 1
if gp.ranks() ~= 2 then error("expected two ranks: gpipe-lua --ranks 2 " .. arg[0]) end
if #seen < wanted then
  if gp.rank() == 0 then figure.skip("ranks." .. which, #seen .. " CUDA devices here") end
  os.exit(#seen == 0 and MACHINE or 0, true)
end

-- Times of the last steps, all losses and the weights.
local function train(devices)
  gp.seed(11)
  local model = nn.Sequential {
    nn.Linear(64, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Dropout(0.1), nn.Linear(WIDTH, 8),
  }
  local pipe <close> = gp.pipeline(model, {
    devices = devices, balance = { 2, 3 }, chunks = CHUNKS, schedule = "1f1b",
    loss = nn.CrossEntropyLoss(),
  })
  pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 0.01 }))
  local x, y = gp.randn { rows * CHUNKS, 64 }, gp.randint(0, 8, { rows * CHUNKS })
  local run = { losses = {}, times = {} }
  for step = 1, STEPS do
    local seconds = figure.seconds(function() run.losses[step] = pipe:step(x, y) end)
    if step > 2 then run.times[#run.times + 1] = seconds end
  end
  run.weights = pipe:state_dict()
  local description = pipe:describe()
  for d, device in ipairs(description.devices) do
    local here = pipe.devices[d].rank == gp.rank()
    for _, path in ipairs(here and device.paths or {}) do
      if path.kind == "link" then run.link = path end
    end
  end
  return run
end

local second = which == "two" and "1/cuda:1" or "1/cuda:0"
local alone = train { "0/cuda:0", "0/" .. second:match "/(.*)" }
local apart = train { "0/cuda:0", second }

local different = 0
for step, loss in ipairs(alone.losses) do
  if loss ~= apart.losses[step] then different = different + 1 end
end
for name, value in pairs(alone.weights) do
  if not gp.equal(value:to "cpu", apart.weights[name]:to "cpu") then different = different + 1 end
end

local name = "ranks." .. which
local one, two = figure.median(alone.times), figure.median(apart.times)
if gp.rank() == 0 then
  local link = apart.link
  print(("%s.link %s%s"):format(name, link and link.path or "by way of the host",
    link and link.why and ("; " .. link.why) or ""))
end
say(name .. ".step.alone", 1e3 * one, "ms, both stages in one process")
say(name .. ".step.apart", 1e3 * two, "ms, a stage in each process")
say(name .. ".ratio", one / two, "of the speed of one process")
say(name .. ".different", different, "losses and tensors, two processes against one", "<=", 0)
if different > 0 then error("two processes have other bits than one", 0) end
