-- lua/gpipe/plan/norms.lua - what sync_batch_norm costs a plan: each batch norm lets its replicas
-- wait for each other in the middle of a forward action and of an input gradient.
--
-- Both are small messages, so it is the latency between the replicas that counts. A model's first
-- norm has no gradient of its input where nothing before it has parameters, and waits only once.

local devices = require "gpipe.plan.devices"
local running = require "gpipe.nn.layer.norm.running"

local norms = {}

local HEAD = 512 -- bytes of a part beside its two numbers for each channel
local CHANNEL = 8

---@class gpipe.PlanNorms of a layer
---@field forward integer norms that gather forward
---@field input integer those that gather for the input gradient
---@field bytes integer of the largest part

-- Whether the first parameter of the model is the norm's own, so that no gradient leaves it.
local function is_first(model, norm)
  local first = model:parameters()[1]
  return first ~= nil and first.name:sub(1, #norm.name + 1) == norm.name .. "."
end

--- The batch norms of each layer.
---@param model nn.Sequential
---@return gpipe.PlanNorms[]
function norms.of(model)
  local list = {}
  for i = 1, #model do list[i] = { forward = 0, input = 0, bytes = 0 } end
  for k, norm in ipairs(running.norms(model)) do
    local one = list[math.tointeger(norm.name:match "^%d+")]
    one.forward = one.forward + 1
    one.input = one.input + (k == 1 and is_first(model, norm) and 0 or 1)
    one.bytes = math.max(one.bytes, HEAD + CHANNEL * norm.module.channels)
  end
  return list
end

-- Seconds for which a part of so many bytes travels between the replicas of a stage.
local function exchange(problem, on, bytes)
  local latency, bandwidth = devices.between(problem.devices[on[1]], problem.devices[on[#on]],
    problem.link)
  return latency + bytes / bandwidth
end

--- Add to the costs of a case how often each action of a stage gathers, and for how long.
---@param problem gpipe.PlanProblem
---@param case gpipe.PlanCase
---@param costs table of rate.costs
---@param ranges integer[][] the layers of each stage
function norms.add(problem, case, costs, ranges)
  if not problem.norms or case.shape.replicas == 1 then return end
  local gathers, most, any = { F = {}, B = {}, I = {}, W = 0 }, 0, false
  for stage, range in ipairs(ranges) do
    local forward, input, bytes = 0, 0, 0
    for i = range[1], math.min(range[2], #problem.norms) do
      local one = problem.norms[i]
      forward, input = forward + one.forward, input + one.input
      bytes = math.max(bytes, one.bytes)
    end
    gathers.F[stage], gathers.B[stage], gathers.I[stage] = forward, input, input
    any = any or forward > 0
    if forward > 0 then most = math.max(most, exchange(problem, case.on[stage], bytes)) end
  end
  if any then costs.gathers, costs.exchange = gathers, most end
end

return norms
