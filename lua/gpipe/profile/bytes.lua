-- lua/gpipe/profile/bytes.lua - the planned bytes and FLOP of each layer, from plans that do not
-- run.
--
-- What is kept comes from a plan of all layers in one stage, where backward reads across layers;
-- so the layers' saved_bytes add up to what that stage keeps. What crosses a cut, and what a layer
-- works with, comes from a plan with a stage for each layer. A user's loss belongs to the last
-- layer, whose stage computes it.

local dry_run = require "gpipe.pipeline.plan.dry_run"
local request = require "gpipe.profile.request"
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
  for _, one in ipairs(dry.core:saved(dry.core)) do
    local layer = wanted.loss and math.min(one.layer, wanted.layers) or one.layer
    if sums[layer] then sums[layer] = sums[layer] + one.bytes end
  end
  return sums
end

-- ---- figures of a stage for each layer ----------------------------------------------------------

--- The bytes that cross a cut after each layer: its output, and skips that pass by.
function bytes.crossing(edges, layers)
  local sums = {}
  for i = 1, layers do sums[i] = 0 end
  for _, edge in ipairs(edges) do
    local last = edge.from
    for _, to in ipairs(edge.to) do last = math.max(last, to) end
    for i = edge.from + 1, edge.backward and 0 or math.min(last, layers) do
      sums[i] = sums[i] + edge.bytes
    end
  end
  return sums
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
  local kept_some = bytes.kept(wanted, plan(wanted, false, own, { checkpoint = "selective" }))
  for i, row in ipairs(rows) do
    row.selective = { saved_bytes = kept_some[i] }
    local kept = dry.core:stage(dry.core, i - 1, 0).kept_bytes
    row.output_bytes, row.saved_bytes = crosses[i], infos[i].kept_bytes
    row.parameter_bytes = bytes.parameters(wanted.model, i, seen)
    row.workspace_bytes = math.max(0, whole[i] - slots[i] - padded(kept))
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
