-- scripts/bench/gpu_gpt.lua - GPT-2 124M on one GPU: tokens per second, the losses beside those of a
-- CPU, utilisation, gaps between launches, memory.

local gp = require "gpipe"
local curve = require "gpu_curve"
local figure = require "figure"
local nn = gp.nn

local gpt = {}

-- Dense peaks of the matrix units in FLOP/s, by a word of the GPU's name and by precision. Source:
-- NVIDIA's datasheets.
local PEAKS = {
  { "H100 PCIe", bf16 = 756e12, tf32 = 378e12, f32 = 51e12 },
  { "H100", bf16 = 989e12, tf32 = 495e12, f32 = 67e12 },
  { "H200", bf16 = 989e12, tf32 = 495e12, f32 = 67e12 },
  { "A100", bf16 = 312e12, tf32 = 156e12, f32 = 19.5e12 },
}

-- ---- the model ----------------------------------------------------------------------------------

local Embed = nn.class("Embed") -- which token, and where it stands

function Embed:init(size)
  local init = nn.init.normal(0, 0.02)
  self.token = nn.Embedding(size.vocabulary, size.width, { init = init })
  self.place = nn.Parameter({ size.context, size.width }, init)
end

function Embed:forward(ids) return self.token(ids) + self.place end

--- A block of a transformer, as GPT-2 has them.
---@param width integer
---@param heads integer
---@return nn.Sequential
function gpt.block(width, heads)
  return nn.Sequential {
    nn.Residual(nn.Sequential { nn.LayerNorm(width), nn.CausalSelfAttention(width, heads) }),
    nn.Residual(nn.Sequential {
      nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU("tanh"),
      nn.Linear(4 * width, width),
    }),
  }
end

-- The head shares the weights of the embedding: 124M parameters at the usual size.
local function model_of(size)
  gp.seed(0)
  local embed = Embed(size)
  local head = nn.Linear(size.width, size.vocabulary, { bias = false })
  head.weight = embed.token.weight
  local layers = { embed }
  for _ = 1, size.layers do layers[#layers + 1] = gpt.block(size.width, size.heads) end
  layers[#layers + 1] = nn.LayerNorm(size.width)
  layers[#layers + 1] = head
  return nn.Sequential(layers)
end

-- FLOP of a token, forward and backward: 6 per weight that multiplies, 12 L T C in attention (all
-- pairs counted).
-- Source: Chowdhery et al., PaLM, appendix B.
local function flop_of_token(size)
  local weights = size.layers * 12 * size.width ^ 2 + size.vocabulary * size.width
  return 6 * weights + 12 * size.layers * size.context * size.width
end

-- ---- figures ------------------------------------------------------------------------------------

-- Bytes in use on the first GPU by all processes, as the driver counts them; nil without
-- nvidia-smi.
local function used_bytes()
  local text = figure.capture("nvidia-smi -i 0 --query-gpu=memory.used "
    .. "--format=csv,noheader,nounits 2>/dev/null")
  local mebibytes = tonumber(text)
  return mebibytes and mebibytes * 2 ^ 20
end

local function print_memory(before)
  local own = gp.memory()["cuda:0"]
  figure.print("gpu.gpt.memory.planned", own.live / 2 ^ 30, "GiB")
  figure.print("gpu.gpt.memory.peak", own.peak / 2 ^ 30, "GiB")
  local used = used_bytes()
  if not (used and before) then
    return figure.skip("gpu.gpt.memory.fixed", "nvidia-smi is not here")
  end
  figure.print("gpu.gpt.memory.fixed", (used - before - own.live) / 2 ^ 20, "MiB beside the plan")
end

local function peak_of(precision)
  local name = require("gpipe.core").gpus()[1].model
  for _, row in ipairs(PEAKS) do
    if name:find(row[1], 1, true) then return row[precision] end
  end
end

local function print_speed(size, precision, seconds)
  local rate = size.batch * size.context / seconds
  figure.print("gpu.gpt.tokens", rate, "tok/s in " .. precision)
  local peak = peak_of(precision)
  if not peak then
    return figure.skip("gpu.gpt.utilisation", "the peak of this GPU is not known")
  end
  figure.print("gpu.gpt.utilisation", 100 * rate * flop_of_token(size) / peak, "% of the peak",
    ">=", 45)
end

--- Open a pipeline of the model; also returns a function that takes a step in it and returns the
--- loss.
---@param size table as for run
---@param precision string
---@param o? {fuse: boolean?, device: string?}
---@return gpipe.Pipeline
---@return fun(): number
function gpt.trainer(size, precision, o)
  o = o or {}
  local pipe = gp.pipeline(model_of(size), {
    devices = { o.device or "cuda:0" }, chunks = size.chunks, checkpoint = "never",
    loss = nn.CrossEntropyLoss(),
    precision = precision, fuse = o.fuse,
  })
  -- Without warm-up a larger rate makes losses jump, and rounding decides where.
  pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 2e-5 }))
  local ids, following = curve.batch(size)
  return pipe, function() return pipe:step(ids, following) end
end

-- Times steps after four of warm-up. Returns the seconds of each, the percentage of each without
-- work, and the losses of all steps.
local function time_steps(size, pipe, step)
  local times, gaps, losses = {}, {}, {}
  for i = -3, size.steps do
    local seconds = figure.seconds(function() losses[#losses + 1] = step() end)
    if i > 0 then times[i], gaps[i] = seconds, 100 * pipe.stats.bubble[1] end
  end
  return times, gaps, losses
end

-- Prints how much of a step has no work: outside of actions, from the trace, and between the
-- kernels of replayed actions, from the kernels' own times (pipe:profile). An event costs about as
-- much as a short kernel; that cost is subtracted, and printed.
local function print_launch(pipe, step, seconds, outside)
  local p = pipe:profile(step, { ceilings = false })
  local device, ops = p.devices[1], 0
  for _, row in ipairs(p.rows) do ops = ops + row.count end
  if not device.gaps then
    return figure.skip("gpu.gpt.launch", "the step before was not replayed")
  end
  local between = 100 * device.gaps / seconds
  figure.print("gpu.gpt.launch", outside + between, "% of a step without work", "<=", 2)
  figure.print("gpu.gpt.launch.outside", outside, "% outside of actions")
  figure.print("gpu.gpt.launch.between", between, "% between the kernels of actions")
  figure.print("gpu.gpt.launch.timing", 1e6 * p.overhead,
    ("us, what timing costs, taken off each of %d ops"):format(ops))
end

-- Prints how many shapes of each kind of work take which path, so that a fallback to our own
-- kernels shows among the figures and not only in a log.
local function print_paths(pipe)
  local counts, names = {}, {}
  for _, path in ipairs(pipe:describe().devices[1].paths) do
    local name = ("gpu.gpt.paths.%s.%s"):format(path.kind, path.path):lower():gsub("[^%w.]+", "_")
    if not counts[name] then names[#names + 1] = name end
    counts[name] = (counts[name] or 0) + 1
  end
  table.sort(names)
  for _, name in ipairs(names) do figure.print(name, counts[name], "shapes") end
end

--- Train a few steps and print what they took.
---@param size {layers: integer, width: integer, heads: integer, context: integer, vocabulary: integer,
---  batch: integer, chunks: integer, steps: integer}
---@param precision string
function gpt.run(size, precision)
  local before = used_bytes()
  local pipe <close>, step = gpt.trainer(size, precision)
  local times, gaps, losses = time_steps(size, pipe, step)
  local seconds = figure.median(times)
  curve.print("gpu.gpt", size, precision, losses)
  print_speed(size, precision, seconds)
  print_memory(before)
  print_paths(pipe)
  print(pipe:describe()) -- names the paths, and why no faster ones were taken
  print_launch(pipe, step, seconds, figure.median(gaps))
end

--- Take one step, for tools that look at its kernels.
---@param size table as for run
---@param precision string
function gpt.once(size, precision)
  local _pipe <close>, step = gpt.trainer(size, precision)
  step()
end

--- Train GPT-2 as gp.models has it (an odd number of words, dropout), and print tokens a second.
--- Errors: a loss that does not fall.
---@param size table as for run; batch, context, steps
---@param precision string
function gpt.run_model(size, precision)
  size = setmetatable({ vocabulary = 50257 }, { __index = size })
  gp.seed(0)
  local pipe <close> = gp.pipeline(gp.models.gpt2("small"), {
    devices = { "cuda:0" }, checkpoint = "never", loss = nn.CrossEntropyLoss(),
    precision = precision,
  })
  pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 3e-4 }))
  local ids, following = curve.batch(size)
  local times, _, losses = time_steps(size, pipe, function() return pipe:step(ids, following) end)
  figure.print("gpu.model.tokens", size.batch * size.context / figure.median(times),
    "tok/s in " .. precision)
  figure.print("gpu.model.memory", gp.memory()["cuda:0"].peak / 2 ^ 30, "GiB")
  figure.print("gpu.model.loss", losses[#losses], ("nats after %.4f"):format(losses[1]))
  local falls = losses[#losses] < losses[1]
  if not falls then error("the loss does not fall", 0) end
end

-- Seconds of a step with ops fused, or each on its own.
local function seconds_of(size, precision, fuse)
  local pipe <close>, step = gpt.trainer(size, precision, { fuse = fuse })
  return figure.median((time_steps(size, pipe, step)))
end

--- Print what fusing neighbouring ops gains.
---@param size table as for run
---@param precision string
function gpt.compare_fused(size, precision)
  local together, apart = seconds_of(size, precision), seconds_of(size, precision, false)
  figure.print("gpu.gpt.fused", apart / together, "x of ops by themselves", ">=", 1)
end

return gpt
