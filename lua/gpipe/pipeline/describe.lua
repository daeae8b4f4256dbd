-- lua/gpipe/pipeline/describe.lua - shows what a pipeline's plan will run and what ran: lowered
-- schedule, timeline, costs.

local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local draw = require "gpipe.draw.schedule"
local median = require "gpipe.pipeline.median"
local gathers = require "gpipe.pipeline.gathers"
local options = require "gpipe.options"
local passes = require "gpipe.pipeline.passes"
local readable = require "gpipe.readable"
local share = require "gpipe.ranks.share"
local sizes = require "gpipe.sizes"

local describe = {}

-- The step plan that was used last.
local function step_plan(pipe, who)
  local newest
  for _, plan in pairs(pipe.plans) do
    if plan.kind == "step" and (not newest or plan.used > newest.used) then newest = plan end
  end
  if newest then return newest end
  errors.raise("%s: the pipeline has not planned a step yet, expected one step before (or option "
    .. "'sample')", who)
end

-- ---- the lowered schedule -----------------------------------------------------------------------

local function edge_line(number, edge)
  local to = table.concat(edge.to, " ")
  return ("  e%d: %s of %s: stage %d -> %s, %s of %s"):format(number,
    edge.backward and "gradient" or "value", edge.label, edge.from, to,
    counted(edge.slots, "slot"), sizes.text(edge.bytes))
end

-- Describe what a stage holds beside its parameters.
local function stage_line(pipe, plan, stage, copy)
  local info = pipe.core:stage(plan.handle, stage, copy)
  local parts = {}
  local function add(format, ...) parts[#parts + 1] = format:format(...) end
  if info.versions > 1 then add("%d versions of the weights", info.versions) end
  local plural = info.kept > 1 and "es" or ""
  if info.kept > 0 then
    add("%d micro-batch%s kept, %s each", info.kept, plural, sizes.text(info.kept_bytes))
  end
  if info.recomputed > 0 and info.recomputed_bytes > 0 then
    add("%d recomputed, %s", info.recomputed, sizes.text(info.recomputed_bytes))
  elseif info.recomputed > 0 and pipe.checkpoint ~= "offload" then -- R hands nothing on
    add("recomputed within the backward pass")
  end
  if info.held > 0 and info.held_bytes > 0 then
    add("%d x %s held of what is recomputed", info.held, sizes.text(info.held_bytes))
  end
  if info.away_bytes > 0 then
    add("saved values go to the host's memory, %s each", sizes.text(info.away_bytes))
  end
  if info.carried > 0 then
    add("I and W apart: %d x %s carried from one to the other", info.carried,
      sizes.text(info.carried_bytes))
  end
  if info.partials > 0 then
    add("%s of gradients", counted(info.partials, "partial sum"))
  end
  if pipe.replicas > 1 then
    add("updates %s of %s", sizes.text(info.owned_bytes), sizes.text(info.gradient_bytes))
  end
  local name = pipe.copies > 1 and ("stage %d, copy %d"):format(stage, copy) or "stage " .. stage
  return ("  %s: %s"):format(name, #parts > 0 and table.concat(parts, "; ") or "nothing kept")
end

-- More tasks than a reader would follow are printed only on request.
local MOST_TASKS = 400

local LOWERED = { tasks = { type = "boolean" } }

-- Print what each task waits for, reads, adds to and writes.
local function print_tasks(pipe, plan, asked)
  local count = 0
  for d = 1, #pipe.devices do count = count + pipe.core:tasks(plan.handle, d - 1) end
  if asked == false then return end
  if not asked and count > MOST_TASKS then
    print(("tasks: %d (lowered {tasks = true} prints what each touches)"):format(count))
    return
  end
  for d, device in ipairs(pipe.devices) do
    print(("tasks of device %d (%s):"):format(d - 1, device.name))
    for line in pipe.core:page(plan.handle, d - 1):gmatch "[^\n]+" do print("  " .. line) end
  end
end

--- Print what the workers run in a step: for each device its actions, with recomputation, updates,
--- sends and receives, then the edges with their capacities, what each stage keeps, and for each
--- task what it waits for, reads, adds to and writes (up to 400 tasks; `tasks` prints all, or
--- none). Sends and receives name the stage they belong to, with ">3" if the value goes to another
--- stage than the next. Edges are named by their number, and slots stand in brackets.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 4), nn.Linear(4, 2)},
---   {balance = {1, 1}, loss = nn.MSELoss()})
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
--- assert(pipe:lowered()[1]:find("0F0,0SEND_F0", 1, true))
--- ```
---@param opts? {tasks: boolean?}
---@return string[] rows one string per device
function describe.lowered(pipe, opts)
  local o = options.check("lowered", opts or {}, LOWERED)
  local plan = step_plan(pipe, "lowered")
  local rows = {}
  for d, device in ipairs(pipe.devices) do
    rows[d] = pipe.core:row(plan.handle, d - 1)
    print(("device %d (%s): %s"):format(d - 1, device.name, rows[d]))
  end
  local edges = pipe.core:edges(plan.handle)
  print(#edges > 0 and "edges:" or "edges: none")
  for e, edge in ipairs(edges) do print(edge_line(e - 1, edge)) end
  print "stages:"
  for stage = 0, pipe.stages - 1 do
    for copy = 0, pipe.copies - 1 do print(stage_line(pipe, plan, stage, copy)) end
  end
  print_tasks(pipe, plan, o.tasks)
  return rows
end

-- ---- the last run -------------------------------------------------------------------------------

-- The events of each device; over ranks also how far their clocks may be apart.
local function events_of(pipe)
  if pipe.spread then return require("gpipe.ranks.timeline").of(pipe) end
  local events = {}
  for d = 1, #pipe.devices do events[d] = passes.events(pipe, d) end
  return events
end

-- "1f1b (measured)"; over ranks with what is known of their clocks.
local function title_of(pipe, apart)
  local clocks = ""
  if apart then
    clocks = apart > 0 and (", clocks to within %.0f us"):format(1e6 * apart) or " on one clock"
  end
  return ("%s (measured%s)"):format(pipe.schedule_name, clocks)
end

-- See pipe:timeline.
function describe.timeline(pipe)
  local events, apart = events_of(pipe)
  local timeline = {
    name = title_of(pipe, apart), devices = #pipe.devices, unit = "s", makespan = 0, names = {},
    clock_error = apart,
  }
  for d = 1, #pipe.devices do
    timeline.names[d], timeline[d] = pipe.devices[d].name, events[d]
    for _, event in ipairs(timeline[d]) do
      timeline.makespan = math.max(timeline.makespan, event.finish)
    end
  end
  if timeline.makespan == 0 then
    errors.raise "timeline: the pipeline has not run yet, expected a step before"
  end
  return timeline
end

-- ---- drawing: what ran, as predictions are drawn ------------------------------------------------

-- Over ranks, rank 0 writes the file.
local function to_file(pipe, what, write)
  local timeline = describe.timeline(pipe)
  return share.on_first(pipe, what, function() return write(timeline) end)
end

--- The last step as a text grid; see s:draw.
function describe.draw(pipe, opts) return draw.text(describe.timeline(pipe), opts, "draw") end

--- Write the last step as SVG; see s:svg. Over ranks every rank has to call, and rank 0 writes.
function describe.svg(pipe, path, opts)
  return to_file(pipe, "svg", function(timeline) return draw.svg(path, timeline, opts, "svg") end)
end

--- Write the last step as a page with zoom and tooltips; see s:html. Over ranks as svg.
function describe.html(pipe, path, opts)
  return to_file(pipe, "html", function(timeline)
    return draw.html(path, timeline, opts, "html")
  end)
end

--- Write the last training pass as a Chrome trace (ui.perfetto.dev opens it), with arrows where
--- values cross devices. Over ranks as svg.
---@param path string
---@param opts? table see s:trace
---@return boolean? true, or nil, message, code
function describe.trace(pipe, path, opts)
  return to_file(pipe, "trace", function(timeline)
    return draw.trace(path, timeline, opts, "trace")
  end)
end

-- ---- costs --------------------------------------------------------------------------------------

local OPS = { "F", "B", "I", "W", "R", "U", "REDUCE", "TIE", "NORM", "CLIP", "P" }
-- names that differ in the text form
local NAMES = { REDUCE = "REDUCE_GRAD", TIE = "REDUCE_TIED" }

local function sum(list)
  local total = 0
  for _, value in ipairs(list) do total = total + value end
  return total
end

-- The median time of an op's actions for each stage in the last step; for P the sum, because each
-- happens once.
local function measured(pipe)
  local times = {}
  local events = share.by_device(pipe, "costs", function(d) return passes.events(pipe, d) end)
  for d = 1, #pipe.devices do
    for _, event in ipairs(events[d]) do
      local key = event.op .. event.stage
      times[key] = times[key] or {}
      table.insert(times[key], event.finish - event.begin)
    end
  end
  if next(times) == nil then
    errors.raise 'costs: the pipeline has not run yet, expected a step before (or from = "model")'
  end
  return function(op, stage)
    local list = times[op .. stage]
    return list and (op == "P" and sum(list) / pipe.copies or median(list))
  end
end

-- Estimate costs from FLOP and bytes of the programs and from the rates of the device.
local function modelled(pipe, o)
  local plan = step_plan(pipe, "costs")
  return function(op, stage)
    if #op > 1 or op == "U" then return nil end
    local flop, moved = pipe.core:cost(plan.handle, stage, op)
    if flop == 0 and moved == 0 then return nil end
    return math.max(flop / o.flops, moved / o.bandwidth)
  end
end

local SPEC = {
  from = { choices = { "measured", "model" }, default = "measured" },
  flops = { type = "number", min = 1, default = 1e11 },
  bandwidth = { type = "number", min = 1, default = 1e10 },
}

-- Complete the costs of backward: the plan ran B, or I and W; the other form is computed from it.
local function complete(costs, s)
  local i, w = costs.I[s], costs.W[s]
  costs.B[s] = costs.B[s] or (i or 0) + (w or 0)
  if not i and not w then costs.I[s], costs.W[s] = costs.B[s] / 2, costs.B[s] / 2 end
  costs.I[s], costs.W[s] = costs.I[s] or 0, costs.W[s] or 0
  costs.R[s] = costs.R[s] or costs.F[s]
  for _, op in ipairs(OPS) do costs[op][s] = costs[op][s] or 0 end
end

--- The cost of the actions of each stage, for s:simulate(pipe:costs()): lists of seconds per stage
--- (element 1 is stage 0). They come from the last step (medians), or from the cost model: FLOP and
--- bytes of the programs divided by the device's rates. With sync_batch_norm `gathers` says how
--- often the actions of a stage wait for those of other replicas.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 4), nn.Linear(4, 2)},
---   {balance = {1, 1}, chunks = 2, loss = nn.MSELoss()})
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
--- local predicted = gp.schedule.build("gpipe", {devices = 2, chunks = 2}):simulate(pipe:costs())
--- assert(predicted.makespan > 0)
--- ```
---@param opts? {from: "measured"|"model", flops: number?, bandwidth: number?}
---@return table {F, B, I, W, R, U, REDUCE, P, unit = "s"}
function describe.costs(pipe, opts)
  local o = options.check("costs", opts, SPEC)
  step_plan(pipe, "costs")
  local cost = o.from == "measured" and measured(pipe) or modelled(pipe, o)
  local costs = readable { unit = "s" }
  for _, op in ipairs(OPS) do
    costs[op] = {}
    for stage = 0, pipe.stages - 1 do costs[op][stage + 1] = cost(NAMES[op] or op, stage) end
  end
  for s = 1, pipe.stages do complete(costs, s) end
  costs.gathers = gathers.of(pipe, step_plan(pipe, "costs"))
  return costs
end

return describe
