-- lua/gpipe/plan/object.lua - a plan as a script holds it, and what gp.pipeline takes of it.

local candidates = require "gpipe.plan.candidates"
local job = require "gpipe.plan.job"
local text = require "gpipe.plan.text"

---@class gpipe.PlanRow
---@field balance integer[] layers per stage
---@field schedule string|table what option `schedule` of gp.pipeline takes
---@field label string of the schedule
---@field devices integer how many of the list are used
---@field chunks integer of each replica
---@field replicas integer
---@field rows integer of a micro-batch
---@field checkpoint string
---@field seconds number of a step
---@field bubble number idle share of the step, mean over the devices
---@field recompute number seconds of a step that the busiest device spends making values again
---@field peak integer[] bytes per device
---@field parts table<string, number>[] of them, per device
---@field exact boolean the runtime has planned these bytes

---@class gpipe.Plan
---@field best gpipe.PlanRow
---@field rows gpipe.PlanRow[] all that fit, best first
---@field rejected {what: string, why: string}[]
---@field lower_bound number seconds
---@field devices gpipe.PlanDevice[] of those given, the ones that were planned for
---@field without? string[] names of slower ones that were left out
---@field alike boolean a profile's times were taken for devices of several sorts
---@field batch integer
---@field untried integer combinations that were not simulated, because a large problem has too many
local Plan = {}
Plan.__index = Plan
Plan.__name = "gpipe.Plan"
Plan.__tostring = text.of

local object = { SHOWN = text.SHOWN }

--- Make the object.
---@param fields table
---@return gpipe.Plan
function object.new(fields) return setmetatable(fields, Plan) end

--- Whether a value is a plan.
function object.is(value) return getmetatable(value) == Plan end

-- The devices of a row, as gp.pipeline takes them.
local function devices_of(plan, count)
  local list = {}
  for d = 1, count do
    local one = plan.devices[d]
    list[d] = { one.name, threads = one.kind == "cpu" and one.threads or nil,
      memory = one.given_memory, host_link = one.host_link, host_memory = one.host_memory }
  end
  return list
end

--- The options of gp.pipeline that carry out a row: the best one unless another is given.
---@param plan gpipe.Plan
---@param row? gpipe.PlanRow
---@return table
function object.options(plan, row)
  row = row or plan.best
  local schedule, replicas = candidates.apart(row.schedule)
  return {
    balance = table.move(row.balance, 1, #row.balance, 1, {}), schedule = schedule,
    replicas = replicas > 1 and replicas or nil,
    sync_batch_norm = plan.synced and replicas > 1 or nil,
    chunks = row.asked, checkpoint = row.checkpoint, devices = devices_of(plan, row.devices),
    precision = plan.precision, loss = plan.loss,
  }
end

--- The options of gp.pipeline that carry out a row of the plan, for scripts that change some of
--- them; gp.pipeline(model, plan) takes those of the best row as they are.
--- ```lua
--- local profile = gp.profile {layers = {{forward = 1, weight = 1}, {forward = 1, weight = 1}}}
--- local device = {"sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e12}
--- local plan = assert(gp.plan(profile, nil, {devices = {device, device}, batch = 8}))
--- assert(plan:options().chunks == plan.best.chunks)
--- ```
---@param row? gpipe.PlanRow the best one
---@return table
function Plan:options(row) return object.options(self, row) end

Plan.simulate, Plan.compare = job.simulate, job.compare

object.methods = Plan

return object
