-- lua/gpipe/plan/device_bytes.lua - what a stage takes of its device's memory, part by part:
-- parameters, gradients, moments, other versions of the weights, edges, kept values, workspace.

local stage_cost = require "gpipe.plan.stage_cost"
local sums = require "gpipe.plan.sums"

local device_bytes = {}

--- The parts that are estimated.
device_bytes.PARTS = { "parameters", "gradients", "optimizer", "versions", "packed", "edges",
  "saved", "carried", "workspace", "batch" }
--- All parts of exact bytes in the order in which they are printed: carried are values that I
--- leaves for W, packed are weights in the order that kernels want.
device_bytes.SHOWN = { "parameters", "gradients", "optimizer", "versions", "packed", "edges",
  "saved", "carried", "workspace" }

---@class gpipe.StageMemory
---@field live table<integer, integer> of the shape
---@field held table<integer, integer> of the lowered schedule
---@field share number[]
---@field carried table<integer, integer> of the lowered schedule
---@field away (number|false)[] stage + 1 -> seconds of a byte on its way to the host
---@field versions table<integer, integer>
---@field copies integer of a stage in a replica
---@field moments number a device's, as multiples of its parameters
---@field gradients number likewise
---@field halves boolean
---@field policy string

-- The slots of the edges at both ends of a stage. A value lies on its maker's device, and again on
-- its reader's if that has its own memory; as many lie there as micro-batches are under way.
local function edge_before(m, s, i, stage, own)
  local bytes = stage > 0 and m.live[stage - 1] * s.output[i - 1] or 0
  return own and 2 * bytes or bytes
end

local function edge_behind(m, s, j, stage, own)
  local bytes = m.live[stage] * s.output[j]
  return own and 2 * bytes or bytes
end

-- The part of its parameters and moments that a device has: copies of a stage on devices with the
-- host's memory share them.
local function part_of(m, own) return own and 1 or 1 / m.copies end

-- What does not depend on what is kept.
local function fixed_of(m, s, i, j, stage, own)
  local parameters, part = sums.range(s.parameter_bytes, i, j), part_of(m, own)
  local half = m.halves and parameters / 2 or 0
  return {
    parameters = part * (parameters + half), gradients = m.gradients * parameters,
    optimizer = part * m.moments * parameters,
    versions = (m.versions[stage] - 1) * parameters, packed = sums.range(s.packed_bytes, i, j),
    carried = m.carried[stage] * sums.range(s.carried_bytes, i, j),
    edges = edge_before(m, s, i, stage, own) + edge_behind(m, s, j, stage, own),
    workspace = sums.transient(s, i, j),
    batch = own and stage == 0 and m.chunks * m.input_bytes or 0,
  }
end

-- The same as one number, without the edge before the stage, for the inner loop of the partition.
local function fixed_sum(m, s, i, j, stage, own)
  local parameters = sums.range(s.parameter_bytes, i, j)
  local times = m.gradients + part_of(m, own) * (m.moments + 1 + (m.halves and 0.5 or 0))
    + m.versions[stage] - 1
  local batch = own and stage == 0 and m.chunks * m.input_bytes or 0
  return times * parameters + edge_behind(m, s, j, stage, own) + sums.transient(s, i, j) + batch
    + sums.range(s.packed_bytes, i, j) + m.carried[stage] * sums.range(s.carried_bytes, i, j)
end

--- The seconds that run again, and all bytes, of a stage with layers i .. j.
---@param m gpipe.StageMemory
---@param s gpipe.LayerSums
---@param i integer
---@param j integer
---@param stage integer from 0
---@param own boolean the device has its own memory
---@param room number bytes of the device for this stage
---@return number again seconds of a micro-batch
---@return number bytes
---@return number least bytes that are as many at least with every further layer before i
function device_bytes.stage(m, s, i, j, stage, own, room)
  local fixed, before = fixed_sum(m, s, i, j, stage, own), edge_before(m, s, i, stage, own)
  local at = m.at
  at.live, at.held, at.share = m.live[stage], m.held[stage], m.share[stage + 1]
  at.carried, at.away = m.carried[stage], m.away[stage + 1]
  at.room = room - fixed - before
  local again, kept = stage_cost.policies[m.policy].cost(s, i, j, at)
  return again, fixed + before + kept, fixed + kept
end

--- Bytes that a stage with layers i .. j takes at least; they grow with every layer on either side.
function device_bytes.least(m, s, i, j, stage)
  local policy = stage_cost.policies[m.policy]
  local count = m[policy.all] or {}
  local saved = sums.range(s[policy.kept or "saved_bytes"], i, j) - s.most_output
  return (m.gradients + (1 + m.moments) / m.copies) * sums.range(s.parameter_bytes, i, j)
    + (count[stage] or 0) * math.max(0, saved)
end

--- The parts of what the stages of a device take together; what its stages work with is needed by
--- one at a time.
---@param m gpipe.StageMemory
---@param s gpipe.LayerSums
---@param ranges {[1]: integer, [2]: integer}[] by stage + 1
---@param stages integer[] of the device, from 0
---@param place {own: boolean, room: number, together: table} together: of the lowered schedule
---@return table<string, number> parts
---@return number sum
function device_bytes.device(m, s, ranges, stages, place)
  local parts, sum, own, room = {}, 0, place.own, place.room
  local policy, together = stage_cost.policies[m.policy], place.together
  for _, name in ipairs(device_bytes.PARTS) do parts[name] = 0 end
  for _, stage in ipairs(stages) do
    local i, j = ranges[stage + 1][1], ranges[stage + 1][2]
    local fixed = fixed_of(m, s, i, j, stage, own)
    local _, bytes = device_bytes.stage(m, s, i, j, stage, own, room / #stages)
    for _, value in pairs(fixed) do bytes = bytes - value end
    parts.saved = parts.saved + bytes
    for name, value in pairs(fixed) do
      parts[name] = name == "workspace" and math.max(parts[name], value) or parts[name] + value
    end
  end
  -- where I and W run apart, what runs again lies there from R on
  local from_r = policy.runs_again and parts.carried > 0
  parts.saved = parts.saved * (from_r and together.held or together.live)
  parts.carried = parts.carried * together.carried
  for _, name in ipairs(device_bytes.PARTS) do sum = sum + parts[name] end
  return parts, sum
end

return device_bytes
