-- lua/gpipe/run_writer/memory.lua - the memory that the devices of a pipeline hold and that a step
-- would take, for memory.json and for --dry-run.

local checkpoint = require "gpipe.checkpoint.contents"
local dry_run = require "gpipe.pipeline.plan.dry_run"
local object = require "gpipe.pipeline.object"
local shared = require "gpipe.ranks.state"
local sizes = require "gpipe.sizes"

local memory = {}

---@class gpipe.HeldMemory bytes of a device
---@field device string
---@field parts table<string, integer> bytes that stay allocated, by what they hold
---@field measured integer? the most bytes that steps have taken in addition
---@field planned integer? bytes that a step was planned to take

-- The device (from 1) of a stage (from 0); the first one where the stage has several copies.
local function device_of(pipe, stage)
  local inner = object.inside(pipe)
  return inner.placement[stage * inner.copies + 1] + 1
end

-- Replicas hold parameters and gradients on all of their devices, and moments with their owners: as
-- the runtime counts them. Moments of an optimizer that the script steps itself are not among them.
local function count_replicas(pipe, list)
  for d, device in ipairs(pipe:memory()) do
    local areas = device.areas
    list[d].parts = { model = (areas.parameters or 0) + (areas.buffers or 0),
      gradients = areas.gradients or 0, optimizer = areas.optimizer or 0 }
  end
  return list
end

--- List what stays allocated on each device, and the most that steps have taken there so far.
---@param pipe gpipe.Pipeline
---@param opt? gpipe.Optimizer
---@return gpipe.HeldMemory[]
function memory.held(pipe, opt)
  local list, peaks = {}, pipe.stats and pipe.stats.peak_bytes or {}
  for d, device in ipairs(pipe.devices) do
    list[d] = { device = device.name, parts = { model = 0, gradients = 0, optimizer = 0 },
      measured = peaks[d] }
  end
  if pipe.replicas > 1 then return count_replicas(pipe, list) end
  for _, entry in ipairs(checkpoint.entries { pipe = pipe, model = pipe.model, opt = opt }) do
    local parts = list[device_of(pipe, entry.stage)].parts
    local part = entry.name:match "^%w+"
    parts[part] = parts[part] + sizes.of(shared.like(entry))
  end
  for _, entry in ipairs(pipe:parameters()) do
    local parts = list[device_of(pipe, entry.stage)].parts
    parts.gradients = parts.gradients + sizes.of(entry.param)
  end
  return list
end

-- Plan the same pipeline for a batch without allocating its memory.
local function plan(pipe, x, y)
  local inner, devices = object.inside(pipe), {}
  for d, device in ipairs(pipe.devices) do devices[d] = { own = device.kind ~= "cpu" } end
  return dry_run(pipe.model, {
    balance = inner.balance, chunks = inner.chunks, schedule = inner.schedule,
    replicas = inner.sum_group and inner.replicas, sum_group = inner.sum_group,
    checkpoint = inner.checkpoint, loss = inner.loss, precision = inner.precision.name,
    deferred_batch_norm = inner.deferred, sync_batch_norm = (inner.synced or 1) > 1,
    barrier = inner.barrier, devices = devices, sample = { x, y },
  })
end

--- List the same, and what a step with this batch was planned to take.
---@param pipe gpipe.Pipeline
---@param opt? gpipe.Optimizer
---@param x any
---@param y any
---@return gpipe.HeldMemory[]
function memory.compare(pipe, opt, x, y)
  local list = memory.held(pipe, opt)
  local good, dry = pcall(plan, pipe, x, y) -- a pipeline without a loss has no step
  for d, bytes in ipairs(good and dry:bytes() or {}) do list[d].planned = bytes end
  return list
end

--- Describe what a step with this batch would run and hold.
---@param pipe gpipe.Pipeline
---@param opt? gpipe.Optimizer
---@param x any
---@param y any
---@return string
function memory.plan(pipe, opt, x, y)
  local dry = plan(pipe, x, y)
  local lines = { tostring(pipe), tostring(dry) }
  local form = "%-10s %12s %12s %12s %12s %12s"
  lines[#lines + 1] = form:format("device", "model", "gradients", "optimizer", "a step", "in all")
  local taken = dry:bytes()
  for d, one in ipairs(memory.held(pipe, opt)) do
    local parts = one.parts
    local all = parts.model + parts.gradients + parts.optimizer + taken[d]
    lines[#lines + 1] = form:format(one.device, sizes.text(parts.model),
      sizes.text(parts.gradients), sizes.text(parts.optimizer), sizes.text(taken[d]),
      sizes.text(all))
  end
  return table.concat(lines, "\n")
end

return memory
