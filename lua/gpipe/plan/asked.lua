-- lua/gpipe/plan/asked.lua - what a pipeline would take that a script has set itself: its own
-- balance, schedule, micro-batches and policy, beside which the planner's table can be read.

local candidates = require "gpipe.plan.candidates"
local case_of = require "gpipe.plan.case"
local counted = require "gpipe.counted"
local demand = require "gpipe.plan.demand"
local device_bytes = require "gpipe.plan.device_bytes"
local exact = require "gpipe.plan.exact"
local rate = require "gpipe.plan.rate"
local sizes = require "gpipe.sizes"
local stage_cost = require "gpipe.plan.stage_cost"
local text = require "gpipe.plan.text"

local asked = {}

---@class gpipe.AskedPipeline
---@field balance integer[]
---@field schedule string|table
---@field devices integer
---@field chunks integer
---@field checkpoint string
---@field options table<string, any> other options that change what the runtime plans
---@field moments integer of the optimizer; 0: there is none
---@field own_moments boolean[] per device: its cap does not count them

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

-- The bytes of a row; one whose policy fills the memory may find no way that fits: then it is
-- "always", as in a pipeline.
local function bytes_of(problem, row)
  local policy = stage_cost.policies[row.checkpoint]
  if policy and policy.fills then
    local bytes, parts, host = exact.filled(problem, row)
    if bytes then return bytes, parts, host end
    row = setmetatable({ checkpoint = "always" }, { __index = row })
  end
  return exact.bytes(problem, row)
end

--- The row of a pipeline as it is set; nil and why where its schedule cannot be built.
---@param problem gpipe.PlanProblem
---@param pipe gpipe.AskedPipeline
---@return gpipe.PlanRow?
---@return string? why
function asked.row(problem, pipe)
  local chunks = math.min(pipe.chunks, problem.batch)
  local shape, why = candidates.shape(pipe.schedule, pipe.devices, chunks)
  if not shape then return nil, why end
  shape.asked = chunks
  problem = setmetatable({ moments = pipe.moments }, { __index = problem })
  local policy = policy_of(problem, pipe.checkpoint)
  local case = case_of(problem, shape, candidates.lowered(shape, policy), policy)
  local taken = demand.devices(problem, case, pipe.balance)
  local ran = rate.run(problem, case, pipe.balance)
  local row = {
    balance = pipe.balance, schedule = shape.wanted, label = shape.label, devices = shape.devices,
    replicas = shape.replicas, gradients = case.memory.gradients,
    received = case.memory.received,
    chunks = chunks, asked = chunks, rows = case.rows, checkpoint = pipe.checkpoint,
    seconds = ran.seconds, bubble = ran.bubble, recompute = ran.recompute, taken = taken,
    options = pipe.options, own_moments = pipe.own_moments, case = case,
  }
  case.lowered, shape.lowered = nil, nil -- the exact plan of a large one needs the room
  row.peak, row.parts, row.host = bytes_of(problem, row)
  return row
end

-- "; 3.0 GiB wait in the host's memory", and a remark where that is more than may.
local function host_text(device, bytes)
  if bytes == 0 then return "" end
  local over = device.host_memory and bytes > device.host_memory
  return ("; %s wait in the host's memory%s"):format(sizes.text(bytes), over
    and (" of at most %s, which DOES NOT FIT"):format(sizes.text(device.host_memory)) or "")
end

-- Whether a device's bytes fit, in words; nothing where they do.
local function fit_text(device, row, d)
  if row.peak[d] <= device.memory then return "" end
  local seen = row.peak[d] - exact.apart(row, d, row.parts[d])
  return seen > device.memory and ", which DOES NOT FIT"
    or ", a cap that does not count this optimizer"
end

-- "sim:0: 1.2 GiB of 8.0 GiB (saved 800.0 MiB, ...)", and a remark where it does not fit.
local function device_line(problem, row, d)
  local device, parts = problem.devices[d], {}
  for _, name in ipairs(device_bytes.SHOWN) do
    local bytes = row.parts[d][name] or 0
    if bytes >= 1 then parts[#parts + 1] = name .. " " .. sizes.text(math.floor(bytes)) end
  end
  return ("    %s: %s of %s%s (%s)%s"):format(device.name, sizes.text(row.peak[d]),
    sizes.text(device.memory), fit_text(device, row, d),
    table.concat(parts, ", "), host_text(device, row.host[d]))
end

-- "... and 240 more devices, at most 1.2 GiB of 8.0 GiB", and how many of them do not fit.
local function rest_line(problem, row)
  local fullest, over = exact.SHOWN + 1, 0
  local function full(d)
    return (row.peak[d] - exact.apart(row, d, row.parts[d])) / problem.devices[d].memory
  end
  for d = exact.SHOWN + 1, row.devices do
    if full(d) > full(fullest) then fullest = d end
    over = over + (full(d) > 1 and 1 or 0)
  end
  return ("    ... and %d more devices, at most %s of %s%s"):format(row.devices - exact.SHOWN,
    sizes.text(row.peak[fullest]), sizes.text(problem.devices[fullest].memory),
    over > 0 and (": %d DO NOT FIT"):format(over) or "")
end

--- The row as text.
---@param problem gpipe.PlanProblem
---@param row gpipe.PlanRow
---@return string
function asked.text(problem, row)
  local lines = {
    ("  as it is set: %s, %s on %s, %s of %s, checkpoint %s"):format(row.label,
      counted(#row.balance, "stage"), counted(row.devices, "device"),
      counted(row.chunks, "micro-batch"), counted(row.rows, "row"), row.checkpoint),
    "    layers per stage: " .. text.balance(row.balance),
    ("    step %s by the cost model; bubble %.1f %%; recomputation %.1f %% of the step"):format(
      text.time(row.seconds), 100 * row.bubble, 100 * row.recompute / row.seconds),
  }
  for d = 1, math.min(row.devices, exact.SHOWN) do
    lines[#lines + 1] = device_line(problem, row, d)
  end
  if row.devices > exact.SHOWN then lines[#lines + 1] = rest_line(problem, row) end
  return table.concat(lines, "\n")
end

return asked
