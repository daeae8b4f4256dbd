-- lua/gpipe/draw/sweep/figure.lua - figures of a sweep as SVG: points over two axes, and lines
-- over many.
--
-- Colours are classes of the page, q0 (the best tenth) to q9, so that they follow day and night.
-- All marks of a trial carry its number, by which the page's script finds them.

local axis = require "gpipe.draw.axis"
local escape = require "gpipe.io.escape"
local svg = require "gpipe.draw.svg"
local text = require "gpipe.sweep.text"

local figure = {}

local place, xml = escape.place, escape.xml
local LOG_SPREAD = 10 -- an axis is logarithmic if its largest value is this many times the smallest
local MARGIN = { left = 58, right = 16, top = 24, bottom = 40 }

-- ---- axes --------------------------------------------------------------------------------------

---@class gpipe.SweepAxis
---@field name string
---@field log boolean
---@field place fun(value: any): number from 0 to 1
---@field ticks {at: number, text: string}[] at: from 0 to 1

local function numbers_axis(name, values, most, scale)
  local low, high, whole = math.huge, -math.huge, true
  for _, value in ipairs(values) do
    low, high = math.min(low, value), math.max(high, value)
    whole = whole and math.type(value) == "integer"
  end
  local log = low > 0 and (scale == "log" or not scale and high / low >= LOG_SPREAD)
  local made = axis.new(low, high, { most = most, log = log })
  local ticks = {}
  for _, tick in ipairs(made.ticks) do
    if not whole or math.abs(tick.at - math.floor(tick.at + 0.5)) < 1e-9 then
      ticks[#ticks + 1] = { at = made:place(tick.at), text = tick.text }
    end
  end
  return { name = name, ticks = ticks, log = log,
    place = function(value) return made:place(value) end }
end

local function choices_axis(name, values)
  local seen, list = {}, {}
  for _, value in ipairs(values) do
    if not seen[tostring(value)] then
      list[#list + 1] = tostring(value)
      seen[tostring(value)] = true
    end
  end
  table.sort(list)
  local places, ticks = {}, {}
  for i, value in ipairs(list) do
    places[value] = (i - 0.5) / #list
    ticks[i] = { at = places[value], text = value }
  end
  return { name = name, ticks = ticks, is_choice = true, parts = #list,
    place = function(value) return places[tostring(value)] end }
end

--- The axis of values: numbers, else choices.
---@param name string
---@param values any[] at least one
---@param most integer ticks
---@param scale? "log"|"linear" by the values where it is left out
---@return gpipe.SweepAxis
function figure.axis(name, values, most, scale)
  for _, value in ipairs(values) do
    if type(value) ~= "number" then return choices_axis(name, values) end
  end
  return numbers_axis(name, values, most, scale)
end

-- ---- parts -------------------------------------------------------------------------------------

local function label(out, class, x, y, anchor, words)
  svg.text(out, x, y, words, ('class="%s" text-anchor="%s"'):format(class, anchor))
end

-- Append the line of a trial with the trial's number.
local function trial_line(out, class, trial, d, tip)
  out[#out + 1] = ('<path class="t %s" data-t="%d" d="%s"><title>%s</title></path>'):format(class,
    trial.number, d, xml((tip(trial):gsub("\n", ", "))))
end

local LONGEST = 14 -- characters of a label below an axis

local function cut(words)
  return utf8.len(words) and utf8.len(words) > LONGEST
    and words:sub(1, utf8.offset(words, LONGEST) - 1) .. "…" or words
end

--- The tooltip of a trial.
---@param sweep gpipe.Sweep
---@param trial gpipe.SweepTrial
---@return string
function figure.tip(sweep, trial)
  local value = trial.value and ("%s %s"):format(sweep.objective, text.short(trial.value))
    or trial.state
  return ("trial %d: %s\n%s"):format(trial.number, value,
    text.params(trial.params):gsub(" ", "\n"))
end

-- ---- a plane -----------------------------------------------------------------------------------

-- The title of an axis.
local function titled(of) return of.log and of.name .. " (logarithmic)" or of.name end

-- Grid, ticks and names of two axes, and where their shares lie.
local function plane(o)
  local width, height = o.width - MARGIN.left - MARGIN.right, o.height - MARGIN.top - MARGIN.bottom
  local function x_at(share) return MARGIN.left + share * width end
  local function y_at(share) return MARGIN.top + (1 - share) * height end
  local out = {}
  for _, tick in ipairs(o.y.ticks) do
    local y = y_at(tick.at)
    svg.line(out, MARGIN.left, y, MARGIN.left + width, y, "grid")
    label(out, "tick", MARGIN.left - 6, y + 4, "end", cut(tick.text))
  end
  for _, tick in ipairs(o.x.ticks) do
    local x = x_at(tick.at)
    svg.line(out, x, MARGIN.top, x, MARGIN.top + height, "grid")
    label(out, "tick", x, MARGIN.top + height + 15, "middle", cut(tick.text))
  end
  label(out, "name", MARGIN.left + width / 2, o.height - 8, "middle", titled(o.x))
  label(out, "name", 2, 12, "start", titled(o.y))
  return out, x_at, y_at
end

-- ---- points ------------------------------------------------------------------------------------

-- Spread the points of a choice beside each other, by the golden ratio and the trial's number, so
-- that a point is always at the same place.
local function spread(of, trial)
  if not of.is_choice then return 0 end
  return ((trial.number * 0.6180339887) % 1 - 0.5) * 0.6 / of.parts
end

--- Points of trials: {trial, x, y, class}; `under` is SVG that lies below them.
---@param o {width: integer, height: integer, x: gpipe.SweepAxis, y: gpipe.SweepAxis,
---  points: table[], under: (fun(out: string[], x: function, y: function))?, tip: function}
---@return string
function figure.points(o)
  local out, x_at, y_at = plane(o)
  if o.under then o.under(out, x_at, y_at) end
  for _, point in ipairs(o.points) do
    local x = x_at(o.x.place(point.x) + spread(o.x, point.trial))
    out[#out + 1] = ('<circle class="t %s" data-t="%d" cx="%s" cy="%s" r="4"><title>%s</title>'
      .. "</circle>"):format(point.class, point.trial.number, place(x), place(y_at(point.y)),
        xml((o.tip(point.trial):gsub("\n", ", "))))
  end
  return svg.inline(o.width, o.height, out)
end

-- ---- curves ------------------------------------------------------------------------------------

--- A line for each trial over its steps; the first of the list are drawn last, above the others.
---@param o {width: integer, height: integer, x: gpipe.SweepAxis, y: gpipe.SweepAxis,
---  curves: {trial: table, class: string, points: {step: number, value: number?}[]}[],
---  tip: function}
---@return string
function figure.curves(o)
  local out, x_at, y_at = plane(o)
  for i = #o.curves, 1, -1 do
    local curve = o.curves[i]
    local d = svg.through(#curve.points, function(p)
      local step, value = curve.points[p].step, curve.points[p].value
      -- a value that is no number, or is beyond the axis, breaks the line
      if not value or value - value ~= 0 or o.y.log and value <= 0 then return nil end
      return x_at(o.x.place(step)), y_at(o.y.place(value))
    end)
    trial_line(out, curve.class, curve.trial, d, o.tip)
  end
  svg.line(out, x_at(0), y_at(0), x_at(1), y_at(0), "axis") -- lines in front stay below
  return svg.inline(o.width, o.height, out)
end

-- ---- parallel coordinates ----------------------------------------------------------------------

local TOP, BOTTOM = 34, 22

--- A line for each trial over all axes; the first of the list are drawn last, above the others.
---@param o {width: integer, height: integer, axes: gpipe.SweepAxis[], trials: gpipe.SweepTrial[],
---  value: (fun(trial: table, name: string, i: integer): any), class: (fun(i: integer): string),
---  tip: function}
---@return string
function figure.lines(o)
  local left, right = 70, o.width - 70
  local function x_at(i) return left + (right - left) * (i - 1) / math.max(1, #o.axes - 1) end
  local function y_at(share) return TOP + (1 - share) * (o.height - TOP - BOTTOM) end
  local out = {}
  for i = #o.trials, 1, -1 do
    local trial = o.trials[i]
    local d = svg.through(#o.axes, function(a)
      local of = o.axes[a]
      local value = o.value(trial, of.name, a)
      if value == nil then return nil end
      return x_at(a), y_at(of.place(value) + spread(of, trial))
    end)
    trial_line(out, o.class(i), trial, d, o.tip)
  end
  for i, of in ipairs(o.axes) do
    svg.line(out, x_at(i), TOP, x_at(i), o.height - BOTTOM, "axis")
    label(out, "name", x_at(i), 18, "middle", cut(of.name) .. (of.log and " (log)" or ""))
    for _, tick in ipairs(of.ticks) do
      svg.line(out, x_at(i) - 4, y_at(tick.at), x_at(i), y_at(tick.at), "axis")
      label(out, "tick halo", x_at(i) - 7, y_at(tick.at) + 4, "end", cut(tick.text))
    end
  end
  return svg.inline(o.width, o.height, out)
end

return figure
