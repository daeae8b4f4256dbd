-- lua/gpipe/plan/modelled.lua - what each layer computes, moves and keeps, without running it: the
-- cost model for devices that are not there.
--
-- Figures are those of plans, so no parameter is drawn and no kernel runs. Two plans are made: all
-- layers in one stage, where backward reads across layers (kept bytes), and a stage for each layer
-- with the gradients of inputs and of weights apart (FLOP and bytes moved, workspace).

local bytes = require "gpipe.profile.bytes"
local dry_run = require "gpipe.pipeline.plan.dry_run"
local request = require "gpipe.profile.request"
local scope = require "gpipe.nn.scope"

local modelled = {}

---@class gpipe.LayerCounts
---@field name string
---@field layer string
---@field work table<string, {flop: number, bytes: number}> of F, I and W
---@field output_bytes integer
---@field gradient_bytes integer
---@field saved_bytes integer
---@field head_bytes integer
---@field parameter_bytes integer
---@field workspace_bytes integer
---@field carried_bytes integer
---@field packed_bytes integer
---@field scratch_bytes integer
---@field selective {saved_bytes: integer, head_bytes: integer, work: {flop: number, bytes: number}} what runs again

--- Plan a micro-batch: all layers in one stage, or a stage for each. Errors: as a step raises them.
---@param wanted gpipe.ProfileRequest
---@param own boolean for devices with their own memory
---@param stages? integer 1
---@param checkpoint? string
function modelled.plan(wanted, own, stages, checkpoint)
  local model, loss = request.shared(wanted)
  local balance, devices = {}, {}
  for s = 1, stages or #model do
    balance[s], devices[s] = stages and #model or 1, { own = own }
  end
  return dry_run(model, {
    balance = balance, devices = devices, schedule = bytes.apart(#balance),
    checkpoint = checkpoint or "never", loss = loss, precision = wanted.precision,
    sample = { wanted.inputs, wanted.targets },
  }, true)
end

local function work_of(dry, stage)
  local work = {}
  for _, op in ipairs { "F", "I", "W" } do
    local flop, moved = dry.core:cost(dry.core, stage, op)
    work[op] = { flop = flop, bytes = moved }
  end
  -- the first stage sends no gradient back, so lowering runs its I and W as one B
  local flop, moved = dry.core:cost(dry.core, stage, "B")
  work.W = { flop = work.W.flop + flop, bytes = work.W.bytes + moved }
  return work
end

-- The most that a layer works with in one of its actions, alone on a device.
local function workspace_of(dry, i)
  local most = 0
  for _, alive in ipairs(dry.core:alive(dry.core, i - 1)) do most = math.max(most, alive[4]) end
  return most
end

-- What the selective policy makes again of all layers: by how much its backward is more. Layers
-- have their shares of it by the bytes that they no longer keep.
local function set_selective(wanted, own, one, rows)
  local some, all = modelled.plan(wanted, own, 1, "selective"), { flop = 0, bytes = 0 }
  for _, op in ipairs { "B", "I", "W", "R" } do
    local flop, moved = some.core:cost(some.core, 0, op)
    local plain_flop, plain_moved = one.core:cost(one.core, 0, op)
    all.flop, all.bytes = all.flop + flop - plain_flop, all.bytes + moved - plain_moved
  end
  local kept, dropped = bytes.kept(wanted, some), 0
  local _, head = bytes.between(wanted, own, "selective")
  for i, row in ipairs(rows) do dropped = dropped + math.max(0, row.saved_bytes - kept[i]) end
  for i, row in ipairs(rows) do
    local share = dropped > 0 and math.max(0, row.saved_bytes - kept[i]) / dropped or 0
    row.selective = { saved_bytes = kept[i], head_bytes = math.min(head[i], kept[i]),
      work = { flop = math.max(0, all.flop) * share, bytes = math.max(0, all.bytes) * share } }
  end
end

--- What each layer of a model takes for a micro-batch of the request's rows.
---@param wanted gpipe.ProfileRequest
---@param own boolean for devices with their own memory
---@return gpipe.LayerCounts[]
function modelled.layers(wanted, own)
  local n, seen, rows = wanted.layers, {}, {}
  local one, each = modelled.plan(wanted, own, 1), modelled.plan(wanted, own)
  local infos = one.core:layers(one.core, n + 1)
  if wanted.loss then infos[n].kept_bytes = infos[n].kept_bytes + infos[n + 1].kept_bytes end
  local crosses, back = bytes.crossing(each:edges(), n)
  local carried, head = bytes.between(wanted, own)
  local staying = bytes.staying(each, n)
  for i = 1, n do
    rows[i] = {
      name = wanted.model:attribute_name(i), layer = scope.describe(wanted.model[i]),
      work = work_of(each, i - 1), output_bytes = crosses[i], gradient_bytes = back[i],
      saved_bytes = infos[i].kept_bytes,
      parameter_bytes = bytes.parameters(wanted.model, i, seen),
      workspace_bytes = workspace_of(each, i),
      carried_bytes = carried[i], head_bytes = math.min(head[i], infos[i].kept_bytes),
      packed_bytes = staying[i].packed, scratch_bytes = staying[i].scratch,
    }
  end
  if wanted.loss then rows[n].output_bytes, rows[n].gradient_bytes = 0, 0 end
  set_selective(wanted, own, one, rows)
  return rows
end

--- The seconds of an amount of work on a device: what takes longer, computing or moving.
---@param work {flop: number, bytes: number}
---@param device gpipe.PlanDevice
---@return number
function modelled.seconds(work, device)
  local rate = device.efficiency
  return math.max(work.flop / (rate * device.flops), work.bytes / (rate * device.bandwidth))
end

-- ---- on a device -------------------------------------------------------------------------------

--- Layers of the cost model, with the seconds of a device.
---@param counts gpipe.LayerCounts[]
---@param device gpipe.PlanDevice
---@return table[]
function modelled.on_device(counts, device)
  local layers = {}
  for i, count in ipairs(counts) do
    local seconds = {}
    for op, work in pairs(count.work) do seconds[op] = modelled.seconds(work, device) end
    layers[i] = {
      name = count.name, layer = count.layer, forward = seconds.F, input = seconds.I,
      weight = seconds.W, backward = seconds.I + seconds.W, forward_dropped = seconds.F,
      recompute = seconds.F, output_bytes = count.output_bytes,
      gradient_bytes = count.gradient_bytes,
      saved_bytes = count.saved_bytes, parameter_bytes = count.parameter_bytes,
      workspace_bytes = count.workspace_bytes, carried_bytes = count.carried_bytes,
      head_bytes = count.head_bytes, packed_bytes = count.packed_bytes,
      scratch_bytes = count.scratch_bytes,
      selective = { saved_bytes = count.selective.saved_bytes,
        head_bytes = count.selective.head_bytes,
        recompute = modelled.seconds(count.selective.work, device) },
    }
  end
  return layers
end

-- Bytes as whole numbers, which is what profiles have.
local WHOLE = { "output_bytes", "gradient_bytes", "saved_bytes", "parameter_bytes",
  "workspace_bytes", "head_bytes", "carried_bytes", "packed_bytes", "scratch_bytes" }

--- The layers of a request on a device with rates, as a profile has them.
---@param wanted gpipe.ProfileRequest
---@param device gpipe.PlanDevice
---@return table[]
function modelled.profile(wanted, device)
  local counts = modelled.layers(wanted, device.own)
  local layers = modelled.on_device(counts, device)
  for i, layer in ipairs(layers) do
    for _, key in ipairs(WHOLE) do layer[key] = math.tointeger(layer[key] // 1) end
    layer.flop = counts[i].work.F.flop
    layer.selective.saved_bytes = math.tointeger(layer.selective.saved_bytes // 1)
    layer.selective.head_bytes = math.tointeger(layer.selective.head_bytes // 1)
  end
  return layers
end

return modelled
