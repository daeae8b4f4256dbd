-- lua/gpipe/plan/replicas.lua - PipeDream's programme: stages that several devices share, each
-- computing some of the micro-batches. Planning only: a pipeline does not run such stages.
--
-- best[j][d] is the smallest time per micro-batch of the first j layers on d devices: a last stage
-- of layers i .. j on some of them, where r devices take the r-th part of its work but add up its
-- gradients over the link once a mini-batch (a ring: 2 (r - 1) / r of the parameters).
-- Source: Narayanan et al. 2019, "PipeDream", section 3.1. There gradients are added up for every
-- micro-batch, here once for all of them.

local devices = require "gpipe.plan.devices"
local sums = require "gpipe.plan.sums"

local replicas = {}

local Replicated = { __name = "gpipe.ReplicatedPlan" }

function Replicated:__tostring()
  local words = {}
  for i, stage in ipairs(self.stages) do
    words[i] = ("%d layers on %d"):format(stage.layers, stage.devices)
  end
  return ("%s, %.3g ms a micro-batch (planning only)"):format(table.concat(words, ", "),
    1e3 * self.seconds)
end

-- Costs on devices like the first: all are taken to be alike.
local function costs_of(problem, rows)
  local device, count = problem.devices[1], #problem.devices
  local s = sums.of(problem.figures:layers(rows, device))
  local latency, bandwidth = devices.between(device, problem.devices[count], problem.link)
  local micros = math.max(1, problem.batch / rows)
  local function reduce(i, j, r)
    if r == 1 then return 0 end
    local bytes = 2 * (r - 1) / r * sums.range(s.parameter_bytes, i, j)
    return (latency + bytes / bandwidth) / micros
  end
  return { sums = s, latency = latency, bandwidth = bandwidth, reduce = reduce }
end

-- Whether a replica of layers i .. j fits a device, with as many micro-batches under way as there
-- are devices from here on, shared by the replicas.
local function fits(problem, s, i, j, count, behind)
  local under_way = math.ceil((count + behind) / count)
  local bytes = (2 + problem.moments) * sums.range(s.parameter_bytes, i, j)
    + under_way * sums.saved(s, i, j) + sums.transient(s, i, j)
  return bytes <= problem.devices[1].memory
end

-- The best last stage of layers i .. n on d devices: the first stage of them, then the rest.
local function first_stage(problem, costs, best, i, d)
  local s, found = costs.sums, nil
  for j = i, s.count do
    for r = 1, d do
      local rest = best[j + 1][d - r]
      if rest and fits(problem, s, i, j, r, d - r) then
        local hop = j < s.count and costs.latency + s.output[j] / costs.bandwidth or 0
        local seconds = math.max(sums.compute(s, i, j) / r + costs.reduce(i, j, r), hop,
          rest.seconds)
        if not found or seconds < found.seconds then
          found = { seconds = seconds, last = j, devices = r, left = d - r }
        end
      end
    end
  end
  return found
end

-- best[i][d]: of layers i .. n on d devices. It goes from the last layer on, because the
-- micro-batches under way in a stage depend on the devices behind it.
local function programme(problem, rows)
  local costs = costs_of(problem, rows)
  local n, best = costs.sums.count, {}
  best[n + 1] = { [0] = { seconds = 0 } }
  for i = n, 1, -1 do
    best[i] = {}
    for d = 1, #problem.devices do best[i][d] = first_stage(problem, costs, best, i, d) end
  end
  return best
end

-- ---- the plan -----------------------------------------------------------------------------------

local function stages_of(best, count, d)
  local stages, i = {}, 1
  while i <= count do
    local one = best[i][d]
    stages[#stages + 1] = { layers = one.last - i + 1, devices = one.devices }
    i, d = one.last + 1, one.left
  end
  return stages
end

local MOST = 2048 -- layers x devices: the programme takes their squares

--- The best stages with replicas, for micro-batches of so many rows; nil where none fits, or where
--- layers and devices are too many.
---@param problem gpipe.PlanProblem
---@param rows integer
---@return {stages: {layers: integer, devices: integer}[], seconds: number}? seconds: of a micro-batch
function replicas.of(problem, rows)
  local count = problem.figures.count
  if count * #problem.devices > MOST then return nil end
  local best, found = programme(problem, rows), nil
  for d = 1, #problem.devices do
    local one = best[1][d]
    if one and (not found or one.seconds < best[1][found].seconds) then found = d end
  end
  if not found then return nil end
  return setmetatable({
    stages = stages_of(best, count, found), seconds = best[1][found].seconds,
  }, Replicated)
end

return replicas
