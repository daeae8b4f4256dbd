-- lua/gpipe/plan/init.lua - `gp.plan`: which cut, schedule, number of micro-batches and policy of
-- recomputation is fastest on devices with so much memory.
--
-- For every number of devices and of micro-batches, schedule and policy the best cut that fits is
-- found (fit.lua), and its step simulated with the schedule's own order (rate.lua). The best few
-- are improved. Layers that are measured are measured again with the micro-batches of the best
-- row, and the search is repeated. Last, for a model the runtime plans the bytes of the winner
-- (settle.lua): where these are more than a device has, the search goes on with what was missing.

local call = require "gpipe.ranks.call"
local candidates = require "gpipe.plan.candidates"
local case_of = require "gpipe.plan.case"
local fastest = require "gpipe.plan.fastest"
local figures = require "gpipe.plan.figures"
local fit = require "gpipe.plan.fit"
local job = require "gpipe.plan.job"
local nothing = require "gpipe.plan.nothing"
local object = require "gpipe.plan.object"
local path = require "gpipe.plan.path"
local possible = require "gpipe.plan.possible"
local random = require "gpipe.random"
local rate = require "gpipe.plan.rate"
local reasons = require "gpipe.plan.reasons"
local replicas = require "gpipe.plan.replicas"
local request = require "gpipe.plan.request"
local settle = require "gpipe.plan.settle"
local stage_cost = require "gpipe.plan.stage_cost"
local tried = require "gpipe.plan.tried"

local plan = {}

local MOST_SEARCHES = 8 -- with what was measured again
local IMPROVED = 4 -- rows whose cuts are improved
local MOST_CELLS = 256 -- stages x micro-batches of rows behind the best whose bytes are planned

-- ---- one candidate ------------------------------------------------------------------------------

local function try(problem, shape, policy, faults)
  local case = case_of(problem, shape, candidates.lowered(shape, policy), policy)
  local balance, taken, bent = fit.cut(problem, case)
  if balance then
    faults.fits(shape.label, policy)
    return settle.row(problem, case, balance, taken, rate.run(problem, case, balance)), bent
  end
  faults.short(case)
end

-- ---- all of them --------------------------------------------------------------------------------

-- Seconds first, then what is simpler: fewer devices, fewer micro-batches, less recomputation.
local function before(a, b)
  if math.abs(a.seconds - b.seconds) > 1e-9 * b.seconds then return a.seconds < b.seconds end
  if a.devices ~= b.devices then return a.devices < b.devices end
  if a.chunks ~= b.chunks then return a.chunks < b.chunks end
  return a.number < b.number
end

-- The shape of what is tried; nil where these numbers do not allow it.
local function shape_of(problem, spec, faults)
  local shape, why = nil, spec.stages and possible.stages_fault(problem, spec.stages)
  if not why then shape, why = candidates.shape(spec.wanted, spec.devices, spec.each) end
  if shape and shape.chunks > problem.batch and shape.replicas > 1 then return nil end
  local fault = shape and possible.fault(problem, shape.schedule)
  if fault then shape, why = nil, fault end
  if shape then
    shape.asked = spec.each
  elseif why and spec.devices == problem.counts[1] then
    faults.impossible(candidates.label(spec.wanted), why)
  end
  return shape
end

-- Add the rows of a shape, one for each policy that may be the best. Where all values can be kept
-- with the cut that is best in time, nothing else is faster; where memory bends the cut, a policy
-- that spares memory may be. Returns how many were tried, and the least seconds.
local function add_rows(problem, shape, faults, rows)
  local kept, count, best = false, 0, math.huge
  for _, policy in ipairs(problem.policies) do
    local tries = not (kept and stage_cost.policies[policy].spares)
    local row, bent
    if tries then row, bent = try(problem, shape, policy, faults) end
    count = count + (tries and 1 or 0)
    if row then
      kept = kept or policy == "never" and not bent
      rows[#rows + 1] = row
      row.number, best = #rows, math.min(best, row.seconds)
    end
  end
  return count, best
end

-- Returns the rows that fit, and how many shapes were not tried.
local function search(problem, faults)
  local rows = {}
  local left = tried.each(problem, function(spec)
    local shape = shape_of(problem, spec, faults)
    if not shape then return 0, math.huge end
    return add_rows(problem, shape, faults, rows)
  end)
  table.sort(rows, before)
  return rows, left
end

local function improve(problem, rows)
  for i = 1, math.min(IMPROVED, #rows) do
    local row = rows[i]
    local balance, ran, taken = rate.improve(problem, row.case, row.balance,
      { seconds = row.seconds, bubble = row.bubble, recompute = row.recompute,
        simulation = row.simulation }, row.taken)
    local better = settle.row(problem, row.case, balance, taken, ran)
    better.number, rows[i] = row.number, better
  end
  table.sort(rows, before)
end

-- Search, measure the layers with the rows of the best plan and the stages of its cut, and search
-- again, until a plan is best that was measured.
local function search_measured(problem)
  for pass = 1, MOST_SEARCHES do
    local faults = reasons.collect(problem)
    local rows, left = search(problem, faults)
    improve(problem, rows)
    local again = pass < MOST_SEARCHES and rows[1]
      and figures.confirm(problem.figures, rows[1].rows, rows[1].balance)
    if not again then return rows, left, faults end
    problem.sums = {}
  end
end

-- ---- exact bytes --------------------------------------------------------------------------------

-- A row that keeps everything has fallen, so the policies that were left out beside it are tried.
local function try_spared(problem, rows, fallen, faults)
  for i, policy in ipairs(problem.policies) do
    local row = stage_cost.policies[policy].spares
      and try(problem, fallen.case.shape, policy, faults)
    if row then
      row.number = fallen.number + i / (#problem.policies + 1) -- of whole ones: where it would be
      rows[#rows + 1] = row
    end
  end
end

-- Settle a row in its place, or take it out and say why.
local function replace(problem, rows, i, faults)
  local row = table.remove(rows, i)
  local settled, short = settle.exactly(problem, row)
  if settled then return table.insert(rows, i, settled) end
  if short then faults.short(short) end
  if row.checkpoint == "never" then try_spared(problem, rows, row, faults) end
end

-- Settle rows from the best on until one is exact and no other estimate is better.
local function verify(problem, rows, faults)
  while rows[1] and not rows[1].exact do
    replace(problem, rows, 1, faults)
    table.sort(rows, before)
  end
end

-- The first of the rows that are printed whose bytes can be planned in little time: it has few
-- actions, and its policy does not search.
local function next_shown(rows)
  for i = 2, math.min(object.SHOWN, #rows) do
    local row = rows[i]
    if not row.exact and #row.balance * row.chunks <= MOST_CELLS
      and not stage_cost.policies[row.checkpoint].fills then return i end
  end
end

-- Settle rows that are printed. The rest stay estimates, and the text marks them.
local function verify_shown(problem, rows, faults)
  local tries, i = 2 * object.SHOWN, next_shown(rows)
  while i and tries > 0 do
    replace(problem, rows, i, faults)
    table.sort(rows, before)
    tries, i = tries - 1, next_shown(rows)
  end
end

-- ---- the plan -----------------------------------------------------------------------------------

local function bound_of(problem, rows)
  local least, seen = math.huge, {}
  for _, row in ipairs(rows) do
    if not seen[row.chunks] then
      seen[row.chunks] = true
      least = math.min(least, rate.bound(problem, row.chunks))
    end
  end
  return least
end

local function made_of(problem, rows, faults, left)
  local best = rows[1]
  local made = {
    best = best, rows = rows, rejected = faults.list(), lower_bound = bound_of(problem, rows),
    devices = problem.devices, link = problem.link, batch = problem.batch,
    precision = problem.precision, loss = problem.loss, critical = path.text(best.simulation),
    untried = left, synced = problem.norms ~= nil,
    alike = figures.takes_alike(problem.figures, problem.devices),
  }
  if problem.replicas then made.replicated = replicas.of(problem, best.rows) end
  for _, row in ipairs(rows) do
    job.remember(row, problem, row.case)
    row.case, row.taken, row.number = nil, nil, nil
  end
  return object.new(made)
end

-- The plan for the devices of a problem, or their first ones.
local function solve_in_order(problem)
  local rows, left, faults = search_measured(problem)
  if problem.verify then
    verify(problem, rows, faults)
    verify_shown(problem, rows, faults)
  end
  if #rows == 0 then
    local near = nothing.nearest(problem, faults)
    if not near or not near.fits then return nil, nothing.text(problem, faults, near), "memory" end
    faults.fits(near.case.shape.label, near.case.policy)
    rows[1] = near.row
  end
  return made_of(problem, rows, faults, left)
end

--- Solve a problem, on its devices or on the fastest of them.
---@param problem gpipe.PlanProblem
---@return gpipe.Plan?
---@return string? message
---@return string? code
function plan.solve(problem)
  local made, message, code = solve_in_order(problem)
  for _, other in ipairs(fastest.problems(problem)) do
    local best = made and made.best.seconds
    local found = fastest.may_win(other, best) and solve_in_order(other)
    if found and (not best or found.best.seconds < best) then
      found.lower_bound = math.min(found.lower_bound, made and made.lower_bound or math.huge)
      found.without, made = other.without, found
    end
  end
  if made then return made end
  return nil, message, code
end

plan.problem = request.read

--- Plan the training of a model on devices with so much memory: search over cuts, schedules,
--- numbers of micro-batches and policies of recomputation.
---
--- sample: {x, y} or {x}, of any number of rows; with a profile of gp.profile in place of the model
--- it is nil. devices: a number, or a list of names and descriptions {"cpu:0", memory = "8GiB"},
--- {"sim:0", memory =, flops =, bandwidth =, link =}, gp.cluster{...}; a device with rates is
--- modelled, others are measured. batch: rows of a mini-batch (those of the sample). chunks: a
--- number of micro-batches, or a list to choose from. schedules: names, or {name, option = ...}.
--- checkpoint: a policy, or a list of them. optimizer: "AdamW", {"SGD", momentum = 0.9}, or an
--- optimizer: what it keeps. precision and loss: as in gp.pipeline. profile: measured before. link:
--- {latency =, bandwidth =} between all devices. links: a file of `gpipe-lua links --save`, which
--- has the ways between the ranks that run this script, or "measure": do so now. together: groups
--- of layers for one stage; pinned: {[layer] = stage}. replicas: also 2, 4, ... replicas that share
--- the devices, and PipeDream's stages on several devices; sync_batch_norm as in gp.pipeline.
--- repeats: measured steps (3). verify = false: leave out the runtime's own plan of the winner. In
--- a job of several ranks every rank has to call: a rank of each host measures, and all get the
--- same plan.
---
--- Returns nil, message, "memory" where nothing fits: what is largest, and what would fit.
--- Errors: a model that is none, devices that are not there, bad options.
--- ```lua
--- local model = nn.Sequential {nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)}
--- local sample = {gp.zeros {32, 64}, gp.zeros({32}, {dtype = "i64"})}
--- local device = {"sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e11}
--- local plan = assert(gp.plan(model, sample, {
---   devices = {device, device}, loss = nn.CrossEntropyLoss(), optimizer = "SGD",
--- }))
--- print(plan)
--- assert(plan.best.seconds >= plan.lower_bound)
--- ```
---@param model nn.Sequential|gpipe.ModelProfile
---@param sample? gpipe.Tensor|table
---@param opts? table
---@return gpipe.Plan?
---@return string? message
---@return string? code
function plan.plan(model, sample, opts)
  local _ <close> = call.enter "gp.plan"
  local state = random.state() -- tracing may draw, and a parameter is declared
  local _1 <close> = setmetatable({}, { __close = function() random.restore(state) end })
  return plan.solve(request.read(model, sample, opts))
end

return plan
