-- lua/gpipe/plan/request.lua - the options of gp.plan, checked, as the problem to be solved.

local candidates = require "gpipe.plan.candidates"
local catalog = require "gpipe.schedule.catalog"
local devices = require "gpipe.plan.devices"
local errors = require "gpipe.errors"
local figures = require "gpipe.plan.figures"
local is_tensor = require "gpipe.tensor.is"
local least = require "gpipe.plan.least"
local measured = require "gpipe.plan.measured"
local norms = require "gpipe.plan.norms"
local object = require "gpipe.profile.object"
local optimizer = require "gpipe.plan.optimizer"
local options = require "gpipe.options"
local possible = require "gpipe.plan.possible"
local precision = require "gpipe.pipeline.plan.precision"
local schedule = require "gpipe.schedule"
local stage_cost = require "gpipe.plan.stage_cost"
local windows = require "gpipe.pipeline.plan.partition.windows"

local request = {}

local WHO = "gp.plan"

-- An integer, or a list of integers from 1 on.
local function check_chunks(v)
  local list = type(v) == "table" and v or { v }
  for _, n in ipairs(list) do
    if not (math.type(n) and math.tointeger(n)) or n < 1 then
      return "an integer >= 1, or a list of them"
    end
  end
  return #list == 0 and "at least one number of micro-batches" or nil
end

local SPEC = {
  devices = { type = { "integer", "table" }, min = 1, max = 1 << 16 },
  batch = { type = "integer", min = 1 },
  chunks = { type = { "integer", "table" }, check = check_chunks },
  schedules = { type = { "string", "table" } },
  checkpoint = { type = { "string", "table" } },
  precision = precision.rule,
  optimizer = { type = { "string", "table" }, default = "AdamW" },
  profile = { type = "table" },
  loss = { type = "callable" },
  link = { type = "table" }, links = { type = "string" },
  together = { type = "table" }, pinned = { type = "table" },
  replicas = { type = "boolean", default = false },
  sync_batch_norm = { type = "boolean", default = false },
  repeats = { type = "integer", min = 1, default = 3 },
  verify = { type = "boolean", default = true },
}

--- The names of the options, for `gp.pipeline(model, {plan = "auto", ...})`.
request.SPEC = SPEC

-- ---- schedules and policies ---------------------------------------------------------------------

-- A list of names and {name, option = ...} from one of them, or a list.
local function schedules_of(given)
  if given == nil then return nil end
  local one = type(given) == "string" or schedule.is(given) or type(given[1]) == "string"
    and next(given, #given) ~= nil
  local list = one and { given } or given
  if #list == 0 then
    errors.raise('%s: schedules is empty, expected names such as "1f1b"', WHO)
  end
  for _, wanted in ipairs(list) do
    local name = type(wanted) == "table" and not schedule.is(wanted) and wanted[1] or wanted
    if not schedule.is(wanted) and not catalog.find(name) then
      errors.raise("%s: there is no schedule %s%s", WHO, errors.show(name),
        errors.hint(name, schedule.names(), "schedules"))
    end
  end
  return list
end

local function known_policy(name)
  for _, known in ipairs(stage_cost.names()) do
    if known == name then return true end
  end
  return stage_cost.policies[name] ~= nil
end

-- The policies that are tried: those asked for, else all that need no more than is known. A profile
-- that was made by hand need not say what selective recomputation keeps, and devices need not say
-- how they reach the host's memory.
local function policies_of(given, profile, list_of_devices)
  local links = true
  for _, device in ipairs(list_of_devices) do links = links and device.host_bandwidth end
  local list = given and (type(given) == "table" and given or { given }) or stage_cost.names()
  if #list == 0 then
    errors.raise("%s: option 'checkpoint' is empty, expected one of %s, or a list of them", WHO,
      errors.list(stage_cost.names(), 9))
  end
  local kept = {}
  for _, name in ipairs(list) do
    if not known_policy(name) then
      errors.raise("%s: option 'checkpoint' names %s, expected one of %s%s", WHO, errors.show(name),
        errors.list(stage_cost.names(), 9),
        type(name) == "string" and errors.hint(name, stage_cost.names(), "policies") or "")
    end
    local lacks = stage_cost.policies[name].needs_selective
      and profile and not profile.layers[1].selective
    if stage_cost.policies[name].offloads and not links then
      lacks = true
      if given then
        errors.raise("%s: option 'checkpoint' names %s, and not every device says how fast it "
          .. "reaches the host's memory, expected host_link = {bandwidth = 25e9} of each", WHO,
          errors.show(name))
      end
    end
    if given or not lacks then kept[#kept + 1] = name end
  end
  return kept
end

-- ---- the model ----------------------------------------------------------------------------------

local function figures_of(model, sample, o)
  local given = object.is(model) and model or o.profile
  if given and not object.is(given) then
    errors.raise("%s: option 'profile' is %s, expected what gp.profile returned", WHO,
      errors.show(given))
  end
  if object.is(model) and sample ~= nil then
    errors.raise("%s: the sample is %s beside a profile, expected nil", WHO, errors.show(sample))
  end
  if given then
    if given ~= model and #given.layers ~= #model then
      errors.raise("%s: the profile has %d layers, the model %d: expected the model's own", WHO,
        #given.layers, #model)
    end
    local both = given ~= model and sample ~= nil and figures.of(WHO, model, sample, o)
    return figures.of_profile(given, both or nil), given
  end
  local list = is_tensor(sample) and { sample } or sample
  if type(list) == "table" and o.loss and list[2] == nil then
    errors.raise("%s: the sample has no target, expected {x, y} where there is a loss", WHO)
  end
  return figures.of(WHO, model, sample, o)
end

-- The rows of a mini-batch: those of the option, of the sample, or of as many micro-batches of a
-- profile alone as there will be.
local function batch_of(o, made, profile, count)
  if o.batch then return o.batch end
  local of_sample = profile and made.planned or not profile and made
  if of_sample then return of_sample.most end
  local chunks = type(o.chunks) == "table" and math.max(table.unpack(o.chunks)) or o.chunks
  return profile.rows * (chunks or 4 * count)
end

-- Devices that are not there need rates, unless a profile says the times.
local function check_profile_devices(list, given)
  if given then return end
  for _, d in ipairs(list) do
    if not d.flops and d.sim then
      errors.raise("%s: device '%s' says no rates, expected flops and bandwidth", WHO, d.name)
    end
  end
end

-- Bound the rows of the micro-batches that will be asked for.
local function bound_rows(problem)
  local fewest, most = math.huge, 1
  for _, p in ipairs(problem.counts) do
    for _, m in ipairs(candidates.chunks(problem.chunks, p, problem.pieces)) do
      local rows = math.ceil(problem.batch / math.min(m, problem.batch))
      fewest, most = math.min(fewest, rows), math.max(most, rows)
    end
  end
  figures.bound(problem.figures, fewest, most, problem.devices)
end

--- Read the arguments of gp.plan.
---@param model any
---@param sample any
---@param opts? table
---@return gpipe.PlanProblem
function request.read(model, sample, opts)
  local o = options.check(WHO, opts, SPEC)
  local computes = precision.resolve(WHO, { precision = o.precision }, false)
  local list = devices.read(WHO, o.devices)
  if o.links then measured.join(WHO, list, o.links) end
  local made, profile = figures_of(model, sample, o)
  check_profile_devices(list, profile)
  local moments, name = optimizer.moments(WHO, o.optimizer)
  local problem = {
    who = WHO, model = not object.is(model) and model or nil, figures = made, devices = list,
    batch = batch_of(o, made, profile, #list), chunks = o.chunks, moments = moments,
    optimizer = name, halves = computes.half ~= nil, precision = o.precision, loss = o.loss,
    link = o.link and options.check(WHO .. ": link", o.link, devices.link_spec),
    schedules = schedules_of(o.schedules),
    ties = object.is(model) and {} or possible.ties(model), together = o.together,
    pinned = o.pinned,
    conditions = (o.together or o.pinned) and windows.conditions(WHO, made.count, o) or nil,
    replicas = o.replicas, sums = {},
    norms = o.sync_batch_norm and not object.is(model) and norms.of(model) or nil,
    verify = o.verify and made.sample ~= nil,
  }
  problem.counts, problem.between = candidates.devices(#list, made.count,
    o.replicas or o.schedules ~= nil)
  local fewest = problem.model and least.rows(model, made) or 1
  problem.pieces = math.max(1, problem.batch // fewest)
  if not profile then bound_rows(problem) end
  figures.link_hosts(made, list)
  problem.policies = policies_of(o.checkpoint, profile, list)
  return problem
end

return request
