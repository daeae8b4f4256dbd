-- lua/gpipe/plan/exact.lua - asks the runtime for the bytes of a plan: the same passes that a
-- pipeline's own plan comes from, on devices that need not be there.
--
-- The planner's own sums are quick and near; these are exact. What they lack goes back into the
-- search as bytes that the device does not have.

local candidates = require "gpipe.plan.candidates"
local create = require "gpipe.tensor.create"
local dry_run = require "gpipe.pipeline.plan.dry_run"
local figures = require "gpipe.plan.figures"
local profile_request = require "gpipe.profile.request"

local exact = {}

-- The plan of a step; without a loss the mean of the outputs stands for one, in a layer of its own.
local function plan(problem, row)
  local sample = figures.sample(problem.figures.sample, problem.batch)
  local wanted = {
    who = problem.who, model = problem.model, loss = problem.loss, inputs = sample[1],
    targets = problem.loss and sample[2] or { create.zeros { problem.batch } },
  }
  local model, loss = profile_request.shared(wanted)
  local balance, described = table.move(row.balance, 1, #row.balance, 1, {}), {}
  if #model > problem.figures.count then balance[#balance] = balance[#balance] + 1 end
  for d = 1, row.devices do
    local device = problem.devices[d]
    described[d] = { own = device.own, host_link = device.host_link }
  end
  local schedule, replicas = candidates.apart(row.schedule)
  return dry_run(model, {
    balance = balance, chunks = row.asked, schedule = schedule, checkpoint = row.checkpoint,
    replicas = replicas > 1 and replicas or nil,
    loss = loss, precision = problem.precision, devices = described,
    sample = { wanted.inputs, wanted.targets },
  })
end

--- The exact bytes on each device: parameters, gradients and moments as they were added up before,
--- and what the runtime plans for a step.
---@param problem gpipe.PlanProblem
---@param row gpipe.PlanRow
---@return integer[] bytes per device
---@return integer[] host of the host's memory, in which saved values wait
function exact.bytes(problem, row)
  local dry = plan(problem, row)
  local step, list, host = dry:bytes(), {}, {}
  for d = 1, row.devices do host[d] = dry.core:on_host(dry.core, d - 1) end
  for d, one in ipairs(row.taken) do
    local parts = one.parts
    -- without halves and partial sums, which are in the step's; a replica receives the gradients
    -- that it owns from the others
    local parameters = parts.gradients / row.gradients
    local received = problem.devices[d].own and (row.replicas - 1) / row.replicas or 0
    list[d] = math.ceil((2 + received) * parameters + parts.optimizer) + step[d]
  end
  return list, host
end

return exact
