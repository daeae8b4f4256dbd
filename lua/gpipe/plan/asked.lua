-- lua/gpipe/plan/asked.lua - what a pipeline would take that a script has set itself: its own
-- balance, schedule, micro-batches and policy, beside which the planner's table can be read.

local candidates = require "gpipe.plan.candidates"
local demand = require "gpipe.plan.demand"
local device_bytes = require "gpipe.plan.device_bytes"
local exact = require "gpipe.plan.exact"
local fit = require "gpipe.plan.fit"
local rate = require "gpipe.plan.rate"
local sizes = require "gpipe.sizes"
local stage_cost = require "gpipe.plan.stage_cost"
local text = require "gpipe.plan.text"

local asked = {}

local SHOWN = 16 -- devices

---@class gpipe.AskedPipeline
---@field balance integer[]
---@field schedule string|table
---@field devices integer
---@field chunks integer
---@field checkpoint string

-- The policy by which the time is estimated. What is said layer by layer takes no less than
-- "never", and so does "offload" where a device does not say how it reaches the host's memory.
local function policy_of(problem, checkpoint)
  local policy = stage_cost.policies[checkpoint]
  if not policy then return "never" end
  for _, device in ipairs(problem.devices) do
    if policy.offloads and not device.host_bandwidth then return "never" end
  end
  return checkpoint
end

--- The row of a pipeline as it is set; nil and why where its schedule cannot be built.
---@param problem gpipe.PlanProblem
---@param pipe gpipe.AskedPipeline
---@return gpipe.PlanRow?
---@return string? why
function asked.row(problem, pipe)
  local chunks = math.min(pipe.chunks, problem.batch)
  local shape, why = candidates.shape(pipe.schedule, pipe.devices, chunks, true)
  if not shape then return nil, why end
  shape.asked = chunks
  local policy = policy_of(problem, pipe.checkpoint)
  local case = fit.case(problem, shape, candidates.lowered(shape, policy), policy)
  local taken = demand.devices(problem, case, pipe.balance)
  local ran = rate.run(problem, case, pipe.balance)
  local row = {
    balance = pipe.balance, schedule = shape.wanted, label = shape.label, devices = shape.devices,
    replicas = shape.replicas, gradients = case.memory.gradients,
    moments = case.memory.moments,
    chunks = chunks, asked = chunks, rows = case.rows, checkpoint = pipe.checkpoint,
    seconds = ran.seconds, bubble = ran.bubble, recompute = ran.recompute, taken = taken,
  }
  row.peak, row.parts, row.host = exact.bytes(problem, row)
  return row
end

-- "; 3.0 GiB wait in the host's memory", and a remark where that is more than may.
local function host_text(device, bytes)
  if bytes == 0 then return "" end
  local over = device.host_memory and bytes > device.host_memory
  return ("; %s wait in the host's memory%s"):format(sizes.text(bytes), over
    and (" of at most %s, which DOES NOT FIT"):format(sizes.text(device.host_memory)) or "")
end

-- "sim:0: 1.2 GiB of 8.0 GiB (saved 800.0 MiB, ...)", and a remark where it does not fit.
local function device_line(problem, row, d)
  local device, parts = problem.devices[d], {}
  for _, name in ipairs(device_bytes.SHOWN) do
    local bytes = row.parts[d][name] or 0
    if bytes >= 1 then parts[#parts + 1] = name .. " " .. sizes.text(math.floor(bytes)) end
  end
  return ("    %s: %s of %s%s (%s)%s"):format(device.name, sizes.text(row.peak[d]),
    sizes.text(device.memory), row.peak[d] > device.memory and ", which DOES NOT FIT" or "",
    table.concat(parts, ", "), host_text(device, row.host[d]))
end

--- The row as text.
---@param problem gpipe.PlanProblem
---@param row gpipe.PlanRow
---@return string
function asked.text(problem, row)
  local lines = {
    ("  as it is set: %s, %d stages on %d device%s, %d micro-batch%s of %d row%s, checkpoint %s")
      :format(row.label, #row.balance, row.devices, row.devices == 1 and "" or "s", row.chunks,
        row.chunks == 1 and "" or "es", row.rows, row.rows == 1 and "" or "s", row.checkpoint),
    "    layers per stage: " .. text.balance(row.balance),
    ("    step %s by the cost model; bubble %.1f %%; recomputation %.1f %% of the step"):format(
      text.time(row.seconds), 100 * row.bubble, 100 * row.recompute / row.seconds),
  }
  for d = 1, math.min(row.devices, SHOWN) do lines[#lines + 1] = device_line(problem, row, d) end
  if row.devices > SHOWN then
    lines[#lines + 1] = ("    ... and %d more devices"):format(row.devices - SHOWN)
  end
  return table.concat(lines, "\n")
end

return asked
