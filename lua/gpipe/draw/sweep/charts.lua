-- lua/gpipe/draw/sweep/charts.lua - the figures in the page of a sweep: history, parameters,
-- learning curves. html.lua makes the view that they are drawn from.

local escape = require "gpipe.io.escape"
local figure = require "gpipe.draw.sweep.figure"
local svg = require "gpipe.draw.svg"

local charts = {}

local place = escape.place

--- Trials in the figures and with pages of their own; of more, the best.
charts.MOST = 1000
--- Pixels of a figure that is as wide as the page.
charts.WIDE = 1120

-- The class of the i-th best trial of n.
local function class_of(trial, i, n)
  local class = "q" .. math.min(9, 10 * (i - 1) // math.max(1, n))
  return trial.state == "stopped" and class .. " early" or class
end

local function values_of(trials, get)
  local list = {}
  for _, trial in ipairs(trials) do
    local value = get(trial)
    if value ~= nil then list[#list + 1] = value end
  end
  return list
end

--- The axis of the objective.
---@param sweep gpipe.Sweep
---@param trials gpipe.SweepTrial[]
---@param most integer ticks
---@return gpipe.SweepAxis
function charts.value_axis(sweep, trials, most)
  return figure.axis(sweep.objective, values_of(trials, function(t) return t.value end), most)
end

-- The axis of a parameter: logarithmic if its domain is. Where a function of the script gives the
-- domain, the values decide.
local function axis_of(view, name)
  local from = view.sweep.space.given[name]
  local kind = type(from) == "table" and from.kind
  local scale = kind and (kind:find "log" and "log" or "linear") or nil
  return figure.axis(name, values_of(view.shown, function(t) return t.params[name] end), 5, scale)
end

-- ---- figures -----------------------------------------------------------------------------------

-- The best so far, from trial to trial, as steps.
local function best_line(view)
  return function(out, x_at, y_at)
    local best, parts = nil, {}
    for _, trial in ipairs(view.trials) do
      if trial.state == "complete" and math.abs(trial.value) < math.huge then
        local better = not best or view.sweep.sign * trial.value < view.sweep.sign * best
        best = better and trial.value or best
        local x, y = x_at(view.numbers.place(trial.number)), y_at(view.y.place(best))
        parts[#parts + 1] = (#parts == 0 and "M%s %s" or "H%s V%s"):format(place(x), place(y))
      end
    end
    parts[#parts + 1] = "H" .. place(x_at(1)) -- it holds to the last trial
    svg.path(out, table.concat(parts), 'class="best"')
  end
end

--- The values of all trials in their order, and the best so far.
---@param view table of html.lua
---@return string
function charts.history(view)
  local points, rank = {}, {}
  for i, trial in ipairs(view.settled) do rank[trial.number] = i end
  for i, trial in ipairs(view.trials) do
    local at = rank[trial.number]
    points[i] = { trial = trial, x = trial.number, y = at and view.y.place(trial.value) or 0,
      class = at and class_of(trial, at, #view.settled) or "failed" }
  end
  return figure.points { width = charts.WIDE, height = 260, x = view.numbers, y = view.y,
    points = points, under = best_line(view), tip = view.tip }
end

--- A parameter against the objective.
---@param view table
---@param name string
---@return string
function charts.against(view, name)
  local x = axis_of(view, name)
  local points = {}
  for i = #view.shown, 1, -1 do
    local trial = view.shown[i]
    if trial.params[name] ~= nil then
      points[#points + 1] = { trial = trial, x = trial.params[name], y = view.y.place(trial.value),
        class = class_of(trial, i, #view.shown) }
    end
  end
  return figure.points { width = 370, height = 230, x = x, y = view.y, points = points,
    tip = view.tip }
end

--- All parameters and the objective side by side.
---@param view table
---@return string
function charts.parallel(view)
  local axes = {}
  for i, name in ipairs(view.names) do axes[i] = axis_of(view, name) end
  axes[#axes + 1] = charts.value_axis(view.sweep, view.shown, 5)
  return figure.lines {
    width = math.max(charts.WIDE, 120 * #axes), height = 320, axes = axes, trials = view.shown,
    value = function(trial, name, i) return i == #axes and trial.value or trial.params[name] end,
    class = function(i) return class_of(view.shown[i], i, #view.shown) end, tip = view.tip,
  }
end

-- ---- learning curves ---------------------------------------------------------------------------

--- A learning curve for each trial with reports: the best first, then those that are not settled.
---@param view table
---@return {trial: gpipe.SweepTrial, points: table[], class: string}[]
function charts.curves(view)
  local rank, list = {}, {}
  for i, trial in ipairs(view.settled) do rank[trial.number] = i end
  local order = table.move(view.trials, 1, #view.trials, 1, {})
  table.sort(order, function(a, b)
    local x, y = rank[a.number] or math.huge, rank[b.number] or math.huge
    return x < y or x == y and a.number < b.number
  end)
  for _, trial in ipairs(order) do
    local points = #list < charts.MOST and view.sweep.store:reports(trial.number) or {}
    local at = rank[trial.number]
    if #points > 0 then
      list[#list + 1] = { trial = trial, points = points,
        class = at and class_of(trial, at, #view.settled) or "lost" }
    end
  end
  return list
end

-- Finite values and steps of curves.
local function range_of(curves)
  local steps, values = {}, {}
  for _, curve in ipairs(curves) do
    for _, point in ipairs(curve.points) do
      steps[#steps + 1] = point.step
      if point.value and point.value - point.value == 0 then values[#values + 1] = point.value end
    end
  end
  return steps, values
end

--- Learning curves; nil where none has a finite value.
---@param view table
---@param curves table[] of charts.curves
---@param width integer
---@param height integer
---@return string?
function charts.learning(view, curves, width, height)
  local steps, values = range_of(curves)
  if #values == 0 then return nil end
  if #steps == 1 then steps[2] = steps[1] + 1 end
  return figure.curves { width = width, height = height, curves = curves, tip = view.tip,
    x = figure.axis("step", steps, 8, "linear"),
    y = figure.axis(view.sweep.objective, values, 6) }
end

return charts
