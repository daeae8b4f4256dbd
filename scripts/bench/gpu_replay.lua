-- scripts/bench/gpu_replay.lua - do steps that replay captured graphs give the bits of steps whose
-- kernels are launched one by one?
--
-- Two pipelines start alike and take six steps. The first one launches, captures and replays as
-- every training does; the second one's last three steps are profiled with `eager`, which launches
-- each kernel. Losses and weights must be equal in every bit; wrong addresses or waits that only a
-- replay gets wrong show here.
local gp = require "gpipe"
local figure = require "figure"
local gpt = require "gpu_gpt"

local replay = {}

local WARM, COMPARED, LAYERS = 3, 3, 2

-- Losses of all steps, and the weights after them.
local function train(size, precision, eager)
  local pipe <close>, step = gpt.trainer(size, precision)
  local losses = {}
  for i = 1, WARM do losses[i] = step() end
  for _ = 1, COMPARED do
    local function one() losses[#losses + 1] = step() end
    if eager then pipe:profile(one, { eager = true, ceilings = false }) else one() end
  end
  local weights = {}
  for i, p in ipairs(pipe:parameters()) do weights[i] = { p.name, p.value:to "cpu" } end
  return losses, weights
end

--- Compare the two and print how many losses and weights differ.
--- Errors: if any differ.
---@param size table as gpu_gpt takes it; two layers of it
---@param precision string
function replay.run(size, precision)
  size = setmetatable({ layers = LAYERS }, { __index = size })
  local losses, weights = train(size, precision, false)
  local launched_losses, launched = train(size, precision, true)
  local different = {}
  for i, loss in ipairs(losses) do
    if loss ~= launched_losses[i] then different[#different + 1] = "loss " .. i end
  end
  for i, w in ipairs(weights) do
    if not gp.equal(w[2], launched[i][2]) then different[#different + 1] = w[1] end
  end
  figure.print("gpu.replay.different", #different,
    ("of %d losses and %d tensors, replayed against launched"):format(#losses, #weights), "<=", 0)
  if #different > 0 then
    error("replayed steps differ in " .. table.concat(different, ", ", 1, math.min(8, #different)), 0)
  end
end

return replay
