-- lua/gpipe/draw/sweep/figure.lua - figures of a sweep as SVG: points over two axes, and lines
-- over many.
--
-- Colours are classes of the page, q0 (the best tenth) to q9, so that they follow day and night.
-- Marks of a trial have its number, by which the page's script finds all of them.

local axis = require "gpipe.draw.axis"
local escape = require "gpipe.io.escape"
local text = require "gpipe.sweep.text"

local figure = {}

local place, xml = escape.place, escape.xml
local LOG_SPREAD = 10 -- from this quotient of largest and smallest value on an axis is logarithmic
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

local function line(class, x1, y1, x2, y2)
  return ('<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>'):format(class, place(x1), place(y1),
    place(x2), place(y2))
end

local function label(class, x, y, anchor, words)
  return ('<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>'):format(class, place(x),
    place(y), anchor, xml(words))
end

local LONGEST = 14 -- characters of a label below an axis

local function cut(words)
  return utf8.len(words) and utf8.len(words) > LONGEST
    and words:sub(1, utf8.offset(words, LONGEST) - 1) .. "…" or words
end

local function svg(width, height, parts)
  return ('<svg viewBox="0 0 %d %d" width="%d" height="%d" role="img">\n%s\n</svg>'):format(width,
    height, width, height, table.concat(parts, "\n"))
end

--- What is said of a trial where the mouse is.
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

--- A name with what its axis is.
local function titled(of) return of.log and of.name .. " (logarithmic)" or of.name end

-- Grid, ticks and names of two axes, and where their shares lie.
local function plane(o)
  local width, height = o.width - MARGIN.left - MARGIN.right, o.height - MARGIN.top - MARGIN.bottom
  local function x_at(share) return MARGIN.left + share * width end
  local function y_at(share) return MARGIN.top + (1 - share) * height end
  local parts = {}
  for _, tick in ipairs(o.y.ticks) do
    local y = y_at(tick.at)
    parts[#parts + 1] = line("grid", MARGIN.left, y, MARGIN.left + width, y)
    parts[#parts + 1] = label("tick", MARGIN.left - 6, y + 4, "end", cut(tick.text))
  end
  for _, tick in ipairs(o.x.ticks) do
    local x = x_at(tick.at)
    parts[#parts + 1] = line("grid", x, MARGIN.top, x, MARGIN.top + height)
    parts[#parts + 1] = label("tick", x, MARGIN.top + height + 15, "middle", cut(tick.text))
  end
  parts[#parts + 1] = label("name", MARGIN.left + width / 2, o.height - 8, "middle", titled(o.x))
  parts[#parts + 1] = label("name", 2, 12, "start", titled(o.y))
  return parts, x_at, y_at
end

-- ---- points ------------------------------------------------------------------------------------

-- Where choices are, points stand beside each other: by the golden ratio, always at the same place.
local function spread(of, trial)
  if not of.is_choice then return 0 end
  return ((trial.number * 0.6180339887) % 1 - 0.5) * 0.6 / of.parts
end

--- Points of trials: {trial, x, y, class}; `under` is SVG that lies below them.
---@param o {width: integer, height: integer, x: gpipe.SweepAxis, y: gpipe.SweepAxis,
---  points: table[], under: (fun(x: function, y: function): string)?, tip: function}
---@return string
function figure.points(o)
  local parts, x_at, y_at = plane(o)
  if o.under then parts[#parts + 1] = o.under(x_at, y_at) end
  for _, point in ipairs(o.points) do
    local x = x_at(o.x.place(point.x) + spread(o.x, point.trial))
    parts[#parts + 1] = ('<circle class="t %s" data-t="%d" cx="%s" cy="%s" r="4"><title>%s</title>'
      .. "</circle>"):format(point.class, point.trial.number, place(x), place(y_at(point.y)),
        xml((o.tip(point.trial):gsub("\n", ", "))))
  end
  return svg(o.width, o.height, parts)
end

-- ---- curves ------------------------------------------------------------------------------------

-- A line through points; a value that is no number, or is beyond the axis, breaks it.
local function curve_of(points, x, y)
  local parts, open = {}, false
  for _, point in ipairs(points) do
    local value = point.value
    if not value or value - value ~= 0 or y.log and value <= 0 then open = false
    else
      parts[#parts + 1] = ("%s%s %s"):format(open and "L" or "M", place(x(point.step)),
        place(y.at(y.place(value))))
      open = true
    end
  end
  return table.concat(parts)
end

--- A line for each trial over its steps; the first of the list are drawn last, above the others.
---@param o {width: integer, height: integer, x: gpipe.SweepAxis, y: gpipe.SweepAxis,
---  curves: {trial: table, class: string, points: {step: number, value: number?}[]}[],
---  tip: function}
---@return string
function figure.curves(o)
  local parts, x_at, y_at = plane(o)
  local y = { log = o.y.log, place = o.y.place, at = y_at }
  for i = #o.curves, 1, -1 do
    local curve = o.curves[i]
    local path = curve_of(curve.points, function(step) return x_at(o.x.place(step)) end, y)
    parts[#parts + 1] = ('<path class="t %s" data-t="%d" d="%s"><title>%s</title></path>'):format(
      curve.class, curve.trial.number, path, xml((o.tip(curve.trial):gsub("\n", ", "))))
  end
  parts[#parts + 1] = line("axis", x_at(0), y_at(0), x_at(1), y_at(0)) -- lines in front stay below
  return svg(o.width, o.height, parts)
end

-- ---- parallel coordinates ----------------------------------------------------------------------

local TOP, BOTTOM = 34, 22

-- The line of a trial from axis to axis; where it has no value the line is broken.
local function path_of(trial, axes, value_of, x_at, y_at)
  local parts, open = {}, false
  for i, of in ipairs(axes) do
    local value = value_of(trial, of.name, i)
    if value == nil then open = false
    else
      local y = y_at(of.place(value) + spread(of, trial))
      parts[#parts + 1] = ("%s%s %s"):format(open and "L" or "M", place(x_at(i)), place(y))
      open = true
    end
  end
  return table.concat(parts)
end

--- A line for each trial over all axes; the first of the list are drawn last, above the others.
---@param o {width: integer, height: integer, axes: gpipe.SweepAxis[], trials: gpipe.SweepTrial[],
---  value: (fun(trial: table, name: string, i: integer): any), class: (fun(i: integer): string),
---  tip: function}
---@return string
function figure.lines(o)
  local left, right = 70, o.width - 70
  local function x_at(i) return left + (right - left) * (i - 1) / math.max(1, #o.axes - 1) end
  local function y_at(share) return TOP + (1 - share) * (o.height - TOP - BOTTOM) end
  local parts = {}
  for i = #o.trials, 1, -1 do
    local trial = o.trials[i]
    parts[#parts + 1] = ('<path class="t %s" data-t="%d" d="%s"><title>%s</title></path>'):format(
      o.class(i), trial.number, path_of(trial, o.axes, o.value, x_at, y_at),
      xml((o.tip(trial):gsub("\n", ", "))))
  end
  for i, of in ipairs(o.axes) do
    parts[#parts + 1] = line("axis", x_at(i), TOP, x_at(i), o.height - BOTTOM)
    local name = cut(of.name) .. (of.log and " (log)" or "")
    parts[#parts + 1] = label("name", x_at(i), 18, "middle", name)
    for _, tick in ipairs(of.ticks) do
      parts[#parts + 1] = line("axis", x_at(i) - 4, y_at(tick.at), x_at(i), y_at(tick.at))
      parts[#parts + 1] = label("tick halo", x_at(i) - 7, y_at(tick.at) + 4, "end", cut(tick.text))
    end
  end
  return svg(o.width, o.height, parts)
end

return figure
