-- lua/gpipe/plan/apply.lua - `gp.pipeline(model, plan)` and `gp.pipeline(model, {plan = "auto"})`:
-- the options of a pipeline from a plan.

local devices = require "gpipe.plan.devices"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local object = require "gpipe.plan.object"
local request = require "gpipe.plan.request"

local apply = {}

local WHO = "gp.pipeline"

-- What a plan decides; a script that sets it beside a finished plan means something else.
local DECIDED = {
  "balance", "schedule", "chunks", "checkpoint", "devices", "precision", "replicas",
}

-- A pipeline runs on devices that are there.
local function check_devices(plan)
  for d = 1, plan.best.devices do
    if plan.devices[d].sim then
      errors.raise("%s: the plan is for device '%s', which is not there, expected a plan for "
        .. "devices of this machine (gp.devices())", WHO, errors.name(plan.devices[d].name))
    end
  end
end

-- The options that carry out a plan, beside those that the script gives.
local function carried(plan, opts, dry)
  if not dry then check_devices(plan) end
  local all = object.options(plan)
  for d = 1, dry and plan.best.devices or 0 do
    all.devices[d] = devices.modelled(plan.devices[d])
  end
  for key, value in pairs(opts) do
    if key ~= "plan" then all[key] = value end
  end
  return all
end

local function of_plan(plan, opts, dry)
  for _, key in ipairs(DECIDED) do
    if opts[key] ~= nil then
      errors.raise("%s: option '%s' stands beside a plan, which decides it: expected only one of "
        .. "them", WHO, key)
    end
  end
  return carried(plan, opts, dry)
end

-- The options of gp.plan among those of gp.pipeline; a schedule or a policy that is set is the only
-- one that is tried.
local function planned(opts)
  local wanted, rest = {}, {}
  for key, value in pairs(opts) do
    if key == "schedule" then
      wanted.schedules = { value }
    elseif request.SPEC[key] then
      wanted[key] = value
    elseif key ~= "plan" then
      rest[key] = value
    end
  end
  rest.loss = opts.loss
  return wanted, rest
end

local function rows_of(sample)
  local first = is_tensor(sample) and sample or sample[1]
  first = is_tensor(first) and first or first and first[1]
  return is_tensor(first) and first.shape[1]
end

local function automatic(model, opts, dry)
  if opts.sample == nil then
    errors.raise('%s: plan = "auto" needs option \'sample\', expected {x, y}: a batch to plan for',
      WHO)
  end
  if opts.balance ~= nil then
    errors.raise('%s: option \'balance\' stands beside plan = "auto", which decides it: expected '
      .. "only one of them", WHO)
  end
  local wanted, rest = planned(opts)
  if dry then wanted.devices = devices.all_modelled(WHO, wanted.devices) end
  local plan, message = require("gpipe.plan").plan(model, opts.sample, wanted)
  if not plan then errors.raise_as("memory", "%s", message) end
  local full = not is_tensor(opts.sample) and opts.sample[2] ~= nil and opts.loss
    and rows_of(opts.sample) == plan.batch
  rest.sample = full and opts.sample or nil
  return carried(plan, rest, dry)
end

--- Turn what gp.pipeline was given into its options: a plan, "auto", or a table with option `plan`.
--- Anything else stays as it is.
---@param model any
---@param opts any
---@param dry? boolean the pipeline will not run, so its devices need not be there
---@return any
function apply.options(model, opts, dry)
  if opts == "auto" then return automatic(model, {}, dry) end
  if object.is(opts) then return of_plan(opts, {}, dry) end
  local plan = type(opts) == "table" and opts.plan
  if not plan then return opts end
  if object.is(plan) then return of_plan(plan, opts, dry) end
  if plan == "auto" then return automatic(model, opts, dry) end
  errors.raise("%s: option 'plan' is %s, expected \"auto\" or what gp.plan returned", WHO,
    errors.show(plan))
end

return apply
