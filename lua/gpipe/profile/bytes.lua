-- lua/gpipe/profile/bytes.lua - the planned bytes and FLOP of each layer, from plans that do not
-- run.
--
-- What is kept comes from a plan of all layers in one stage, where backward reads across layers;
-- so the layers' saved_bytes add up to what that stage keeps. What crosses a cut, and what a layer
-- works with, comes from a plan with a stage for each layer. A user's loss belongs to the last
-- layer, whose stage computes it.

local dry_run = require "gpipe.pipeline.plan.dry_run"
local request = require "gpipe.profile.request"
local schedule = require "gpipe.schedule"
local sizes = require "gpipe.sizes"

local bytes = {}

local BLOCK = 256 -- every part of a device's memory begins at a multiple (GP_PLAN_ALIGNMENT)

local function padded(n) return (n + BLOCK - 1) // BLOCK * BLOCK end

-- ---- plans --------------------------------------------------------------------------------------

-- Plan one micro-batch, with all layers in one stage or each in its own, on devices that share the
-- host's memory or have their own.
local function plan(wanted, apart, own, o)
  local model, loss = request.shared(wanted, o and o.bare)
  local balance, devices = {}, {}
  for s = 1, apart and #model or 1 do
    balance[s], devices[s] = apart and 1 or #model, { own = own }
  end
  return dry_run(model, {
    balance = balance, devices = devices, schedule = "gpipe", loss = loss,
    checkpoint = o and o.checkpoint or "never",
    sample = { wanted.inputs, wanted.targets }, precision = wanted.precision,
  }, true)
end

-- ---- figures of one stage -----------------------------------------------------------------------

-- What the runtime plans of each layer in one stage; the loss is the plan's next layer.
local function infos_of(wanted, own)
  local dry, n = plan(wanted, false, own), wanted.layers
  local infos = dry.core:layers(dry.core, n + 1)
  local last, loss = infos[n], table.remove(infos)
  if wanted.loss then
    last.kept_bytes, last.flop = last.kept_bytes + loss.kept_bytes, last.flop + loss.flop
  end
  return infos
end

--- The bytes of each layer that a plan of one stage keeps, whatever its policy; those of the loss
--- belong to the last layer.
function bytes.kept(wanted, dry)
  local sums = {}
  for i = 1, wanted.layers do sums[i] = 0 end
  for _, one in ipairs(dry.core:left(dry.core)) do
    local layer = wanted.loss and math.min(one.layer, wanted.layers) or one.layer
    if one.maker == "F" and sums[layer] then sums[layer] = sums[layer] + one.bytes end
  end
  return sums
end

-- ---- figures of a stage for each layer ----------------------------------------------------------

--- The bytes that cross a cut after each layer: its output, and skips that pass by; and those of
--- the gradients that come back, one for each layer behind the cut that reads a value.
---@return integer[] forward
---@return integer[] backward
function bytes.crossing(edges, layers)
  local forward, backward = {}, {}
  for i = 1, layers do forward[i], backward[i] = 0, 0 end
  for _, edge in ipairs(edges) do
    local sums = edge.backward and backward or forward
    local first, last = edge.from, edge.from
    for _, to in ipairs(edge.to) do first, last = math.min(first, to), math.max(last, to) end
    for i = first + 1, math.min(last, layers) do sums[i] = sums[i] + edge.bytes end
  end
  return forward, backward
end

--- The bytes of the slots of edges on each stage's device: of those that it makes and, on devices
--- with their own memory, also of those that it reads.
function bytes.slots(edges, layers, own)
  local sums = {}
  for i = 1, layers do sums[i] = 0 end
  local function add(stage, edge)
    local layer = stage + 1
    if sums[layer] then sums[layer] = sums[layer] + padded(edge.slots * edge.bytes) end
  end
  for _, edge in ipairs(edges) do
    add(edge.from, edge)
    for _, to in ipairs(own and edge.to or {}) do add(to, edge) end
  end
  return sums
end

--- The bytes of a layer's parameters; those that an earlier layer has count there.
function bytes.parameters(model, i, seen)
  local sum = 0
  for _, entry in ipairs(model[i]:parameters()) do
    local param = entry.param
    if not seen[param] then
      seen[param] = true
      sum = sum + sizes.bytes(param.shape, param.dtype)
    end
  end
  return sum
end

-- ---- I and W apart ------------------------------------------------------------------------------

--- A schedule of one micro-batch through stages on devices of their own, and back with I and W
--- apart.
function bytes.apart(stages)
  local rows, placement = {}, {}
  for s = 0, stages - 1 do
    placement[s] = s
    rows[s + 1] = { { op = "F", stage = s, micro = 0 }, { op = "I", stage = s, micro = 0 },
      { op = "W", stage = s, micro = 0 } }
  end
  return schedule.wrap("costs", { placement = placement, rows = rows }, 1)
end

--- What the I of each layer leaves for its W, and what the layer saves that W does not read. The
--- first stage has no I, so the first layer is one of its own.
---@param wanted gpipe.ProfileRequest
---@param own boolean
---@param checkpoint? string what it saves under another policy than "never"
---@return integer[] carried
---@return integer[] head
function bytes.between(wanted, own, checkpoint)
  local model, loss = request.shared(wanted)
  local list, head, n = {}, {}, wanted.layers
  for i = 1, n do list[i], head[i] = 0, 0 end
  if #model == 1 then return list, head end
  local dry = dry_run(model, {
    balance = { 1, #model - 1 }, devices = { { own = own }, { own = own } },
    schedule = bytes.apart(2), loss = loss, checkpoint = checkpoint or "never",
    sample = { wanted.inputs, wanted.targets }, precision = wanted.precision,
  }, true)
  for i, info in ipairs(dry.core:layers(dry.core, n + 1)) do
    local layer = math.min(i, n)
    list[layer] = list[layer] + info.carried_bytes
  end
  for _, one in ipairs(dry.core:left(dry.core)) do
    local layer = math.min(one.layer, n)
    if one.maker == "F" and one.last == "I" then head[layer] = head[layer] + one.bytes end
  end
  return list, head
end

-- Areas that stay, and whether dry:bytes counts them too.
local STAYS = { packed = false, buffers = false, prepared = true, constants = true,
  ["kernel states"] = true }

--- What stays on the device of each layer beside its parameters, how much of it dry:bytes counts,
--- and the scratch of a thread: of a plan with a stage for each layer.
---@param dry gpipe.DryRun
---@param layers integer
---@return {packed: integer, counted: integer, scratch: integer}[]
function bytes.staying(dry, layers)
  local list = {}
  for i, one in ipairs(dry:memory()) do
    local sum, counted = 0, 0
    for name, is_counted in pairs(STAYS) do
      local size = one.areas[name] or 0
      sum, counted = sum + size, counted + (is_counted and size or 0)
    end
    local at = math.min(i, layers)
    local before = list[at] or { packed = 0, counted = 0, scratch = 0 }
    list[at] = { packed = before.packed + sum, counted = before.counted + counted,
      scratch = math.max(before.scratch, one.areas["thread scratch"] or 0) }
  end
  return list
end

-- ---- all of it ----------------------------------------------------------------------------------

--- Set the planned figures of each layer.
---@param wanted gpipe.ProfileRequest
---@param own boolean the device has its own memory
---@param rows table[] one per layer
function bytes.plan(wanted, own, rows)
  local n, seen = wanted.layers, {}
  local infos, dry = infos_of(wanted, own), plan(wanted, true, false)
  local edges, whole = dry:edges(), dry:bytes()
  local out = wanted.loss and plan(wanted, true, false, { bare = true }):edges() or edges
  local crosses, slots = bytes.crossing(out, n), bytes.slots(edges, n)
  local _, back = bytes.crossing(edges, n)
  local carried, head = bytes.between(wanted, own)
  local shared = bytes.staying(dry, n)
  local staying = own and bytes.staying(plan(wanted, true, true), n) or shared
  local kept_some = bytes.kept(wanted, plan(wanted, false, own, { checkpoint = "selective" }))
  local _, some = bytes.between(wanted, own, "selective")
  for i, row in ipairs(rows) do
    row.selective = { saved_bytes = kept_some[i], head_bytes = math.min(some[i], kept_some[i]) }
    local kept = dry.core:stage(dry.core, i - 1, 0).kept_bytes
    row.output_bytes, row.saved_bytes = crosses[i], infos[i].kept_bytes
    row.gradient_bytes = back[i]
    row.parameter_bytes = bytes.parameters(wanted.model, i, seen)
    row.workspace_bytes = math.max(0, whole[i] - slots[i] - padded(kept) - shared[i].counted)
    row.carried_bytes, row.head_bytes = carried[i], math.min(head[i], row.saved_bytes)
    row.packed_bytes, row.scratch_bytes = staying[i].packed, staying[i].scratch
    row.flop, row.reads_input = infos[i].flop, infos[i].reads_input
  end
end

--- Set only saved_bytes and parameter_bytes of each layer.
---@param wanted gpipe.ProfileRequest
---@param own boolean
---@param rows table[]
function bytes.sizes(wanted, own, rows)
  local seen = {}
  for i, info in ipairs(infos_of(wanted, own)) do
    rows[i].saved_bytes = info.kept_bytes
    rows[i].parameter_bytes = bytes.parameters(wanted.model, i, seen)
  end
end

return bytes
