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
---@field moments table<integer, integer[][]> stage -> what it holds at the same time, likewise
---@field plain? table<integer, integer[][]> the same where nothing runs again
---@field away (number|false)[] stage + 1 -> seconds of a byte on its way to the host
---@field versions table<integer, integer>
---@field copies integer of a stage in a replica
---@field turns table<integer, boolean> stage -> the stage behind it is on the same device
---@field streamed boolean it is a replica of an asynchronous schedule
---@field moments_kept number a device's, as multiples of its parameters
---@field gradients number likewise: its own, and partial sums
---@field received number likewise: what its owner receives of others
---@field halves boolean
---@field policy string

--- The stages behind which a schedule turns back: the next one is on the same devices.
---@param on integer[][] stage + 1 -> its devices
---@return table<integer, boolean>
function device_bytes.turns(on)
  local turns = {}
  for stage = 0, #on - 2 do
    local same = true
    for copy, d in ipairs(on[stage + 1]) do same = same and on[stage + 2][copy] == d end
    turns[stage] = same
  end
  return turns
end

-- The bytes of the edge behind a stage on one of its ends: a copy has as many slots as there are
-- micro-batches under way. A value lies on its maker's device, and again on its reader's if that
-- has its own memory. What copies in one memory make lies where the first copy is. first: 1 there,
-- 0 on the device of another copy, a part of 1 where it is not known which.
local function edge_bytes(m, s, j, stage, own, first)
  local times = first * m.copies
  if own then times = m.turns[stage] and 1 or 2 end
  return times * m.live[stage] * s.output[j]
end

local function edge_before(m, s, i, stage, own, first)
  return stage > 0 and edge_bytes(m, s, i - 1, stage - 1, own, first) or 0
end

-- What does not depend on what is kept, in the order of its parts; the edge before the stage is not
-- among it. Copies of a stage on devices with the host's memory share its parameters, unless they
-- are replicas of a stream (m.streamed), which have room for new values beside them. The first copy
-- updates them, has the moments, and receives the gradients of copies elsewhere. Packed weights
-- have the versions of what they are made of.
local function fixed(m, s, i, j, stage, own, first)
  local parameters = sums.range(s.parameter_bytes, i, j)
  local there, received = (own and 1 or first) * (m.halves and 1.5 or 1), own and m.received or 0
  if m.streamed then there = 1 end
  local room = m.streamed and received * parameters or 0
  return there * parameters, (m.gradients + first * received) * parameters,
    first * m.moments_kept * parameters, (m.versions[stage] - 1) * parameters,
    m.versions[stage] * sums.range(s.packed_bytes, i, j),
    edge_bytes(m, s, j, stage, own, first) + room, sums.transient(s, i, j),
    own and stage == 0 and m.chunks * m.input_bytes or 0
end
local FIXED = { "parameters", "gradients", "optimizer", "versions", "packed", "edges",
  "workspace", "batch" }

local function fixed_sum(m, s, i, j, stage, own, first)
  local parameters, gradients, moments, versions, packed, edge, workspace, batch =
    fixed(m, s, i, j, stage, own, first)
  return parameters + gradients + moments + versions + packed + edge + workspace + batch
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
  local first = 1 / m.copies
  local stays = fixed_sum(m, s, i, j, stage, own, first)
  local before = edge_before(m, s, i, stage, own, first)
  local at = m.at
  at.live, at.held, at.share = m.live[stage], m.held[stage], m.share[stage + 1]
  at.carried, at.away = m.carried[stage], m.away[stage + 1]
  at.moments, at.plain = m.moments[stage], m.plain and m.plain[stage]
  at.times[4] = sums.range(s.carried_bytes, i, j)
  at.room = room - stays - before
  local again, kept = stage_cost.policies[m.policy].cost(s, i, j, at)
  return again, stays + before + kept, stays + kept
end

--- Bytes that a stage with layers i .. j takes at least; they grow with every layer on either side.
function device_bytes.least(m, s, i, j, stage)
  local policy = stage_cost.policies[m.policy]
  local count = m[policy.all] or {}
  local saved = sums.range(s[policy.kept or "saved_bytes"], i, j) - s.most_output
    - sums.range(s[policy.head or "head_bytes"], i, j)
  return (m.gradients + (1 + m.moments_kept) / m.copies) * sums.range(s.parameter_bytes, i, j)
    + (count[stage] or 0) * math.max(0, saved)
end

-- What the stages of a device hold at the fullest moment, of so many bytes for each number of a
-- row: what is saved, and what I leaves for W.
local function fullest(rows, times)
  local saved, carried = 0, 0
  for _, row in ipairs(rows) do
    local own, left = 0, 0
    for k = 1, #row, 4 do
      own = own + row[k] * times[k] + row[k + 1] * times[k + 1] + row[k + 2] * times[k + 2]
      left = left + row[k + 3] * times[k + 3]
    end
    if own + left > saved + carried then saved, carried = own, left end
  end
  return saved, carried
end

-- What a device's stages hold of each micro-batch, for the numbers of its rows, and once; whether
-- the rows are those of a schedule in which nothing runs again. Where one stage makes layers again
-- one by one and another all at once, in R, the moments of both may meet or not (in v_half they do,
-- in dualpipev they do not), so half of what is held once counts.
local function times_of(held)
  local times, once, plainly, all = {}, 0, true, true
  for _, one in ipairs(held) do plainly, all = plainly and one.plainly, all and one.once > 0 end
  for k, one in ipairs(held) do
    local mixed = one.plainly and not plainly -- beside stages that run again
    local live = mixed and one[2] + one[3] or one[1]
    times[4 * k - 3], times[4 * k - 2], times[4 * k - 1], times[4 * k] = live,
      mixed and 0 or one[2], mixed and 0 or one[3], one[4]
    once = math.max(once, one.once)
  end
  return times, all and once or once / 2, plainly
end

--- The parts of what the stages of a device take together; what its stages work with is needed by
--- one at a time.
---@param m gpipe.StageMemory
---@param s gpipe.LayerSums
---@param ranges {[1]: integer, [2]: integer}[] by stage + 1
---@param stages integer[] of the device, from 0
---@param place {own: boolean, room: number, first: table<integer, boolean>, moments: integer[][],
--- plain: integer[][]?} first: the device has the first copy of a stage; moments: of the lowered
--- schedule; plain: where nothing runs again
---@return table<string, number> parts
---@return number sum
function device_bytes.device(m, s, ranges, stages, place)
  local parts, sum, held, at = {}, 0, {}, m.at
  for _, name in ipairs(device_bytes.PARTS) do parts[name] = 0 end
  for k, stage in ipairs(stages) do
    local i, j = ranges[stage + 1][1], ranges[stage + 1][2]
    local first = place.first[stage] and 1 or 0
    for p, value in ipairs { fixed(m, s, i, j, stage, place.own, first) } do
      local name = FIXED[p]
      parts[name] = name == "workspace" and math.max(parts[name], value) or parts[name] + value
    end
    parts.edges = parts.edges + edge_before(m, s, i, stage, place.own, first)
    device_bytes.stage(m, s, i, j, stage, place.own, place.room / #stages)
    held[k] = table.move(at.times, 1, 4, 1, { once = at.once, plainly = at.plainly })
  end
  local times, once, plainly = times_of(held)
  parts.saved, parts.carried = fullest(plainly and place.plain or place.moments, times)
  parts.saved = parts.saved + once
  for _, name in ipairs(device_bytes.PARTS) do sum = sum + parts[name] end
  return parts, sum
end

return device_bytes
