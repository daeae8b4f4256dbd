-- lua/gpipe/draw/plot.lua - `gp.plot`: numbers as curves, in the terminal or as a figure.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local file = require "gpipe.draw.file"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local panel = require "gpipe.draw.curves.panel"
local screen = require "gpipe.screen"

-- ---- what is given -----------------------------------------------------------------------------

local MOST_CURVES = 64

-- The numbers of a list or of a tensor of one dimension.
local function numbers_of(values, what)
  if is_tensor(values) then
    if values:dim() ~= 1 then
      errors.raise("gp.plot: %s has %d dimensions, expected one (a tensor of two is given alone)",
        what, values:dim())
    end
    values = values:detach():to("cpu", "f64"):totable()
  end
  if type(values) ~= "table" then
    errors.raise("gp.plot: %s is %s, expected a list of numbers or a tensor", what,
      errors.show(values))
  end
  for i, value in ipairs(values) do
    if type(value) ~= "number" then
      errors.raise("gp.plot: %s, place %d, is %s, expected a number", what, i, errors.show(value))
    end
  end
  return values
end

local function curve_of(label, values, what)
  local x, y
  if type(values) == "table" and not is_tensor(values) and values.y ~= nil then
    x, y = numbers_of(values.x, what .. ".x"), numbers_of(values.y, what .. ".y")
    if #x ~= #y then
      errors.raise("gp.plot: %s has %d x and %d y, expected as many", what, #x, #y)
    end
    for i = 2, #x do
      if x[i] < x[i - 1] or x[i] ~= x[i] then
        errors.raise("gp.plot: %s.x goes from %g to %g at place %d, expected ascending numbers",
          what, x[i - 1], x[i], i)
      end
    end
  else
    y = numbers_of(values, what)
  end
  return { label = label, given_x = x, given_y = y }
end

-- A tensor of two dimensions has a curve in each column.
local function curves_of_columns(tensor)
  local list = {}
  for c = 1, tensor:size(2) do
    list[c] = curve_of(tostring(c), tensor:select(2, c), "column " .. c)
  end
  return list
end

local function curves_of_names(values)
  local names, list = {}, {}
  for name in pairs(values) do
    if type(name) ~= "string" then
      errors.raise("gp.plot: the values have the key %s, expected names of curves",
        errors.show(name))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    list[i] = curve_of(name, values[name], ("'%s'"):format(errors.name(name)))
  end
  return list
end

local function curves_of(values)
  if is_tensor(values) then
    if values:dim() == 2 then return curves_of_columns(values) end
    return { curve_of("", values, "the tensor") }
  end
  if type(values) ~= "table" then
    errors.raise("gp.plot: the values are %s, expected a tensor, a list of numbers, or names with "
      .. "one each", errors.show(values))
  end
  if #values > 0 or values.y ~= nil then return { curve_of("", values, "the list") } end
  return curves_of_names(values)
end

-- ---- points ------------------------------------------------------------------------------------

local function is_shown(value, log)
  return value == value and math.abs(value) ~= math.huge and (not log or value > 0)
end

-- Reduce a curve to at most `most` points; each has the mean, the least and the largest of the
-- values that fall on it.
local function condense(curve, most, log)
  local xs, ys, n = curve.given_x, curve.given_y, #curve.given_y
  local each = math.max(1, math.ceil(n / most))
  curve.x, curve.low, curve.high, curve.mean, curve.left_out = {}, {}, {}, {}, 0
  for first = 1, n, each do
    local count, sum, low, high, at = 0, 0, math.huge, -math.huge, 0
    for i = first, math.min(n, first + each - 1) do
      local x, y = xs and xs[i] or i, ys[i]
      if is_shown(y, log) and is_shown(x, false) then
        count, sum, at = count + 1, sum + y, at + x
        low, high = math.min(low, y), math.max(high, y)
      else
        curve.left_out = curve.left_out + 1
      end
    end
    if count > 0 then
      local k = #curve.x + 1
      curve.x[k], curve.mean[k], curve.low[k], curve.high[k] = at / count, sum / count, low, high
    end
  end
  curve.smooth, curve.last = curve.mean, ys[n]
  curve.given_x, curve.given_y = nil, nil
end

-- The panel of all curves that have something to show.
local function panel_of(list, most, o)
  local made = panel.new(o.title or "", { unit = o.x })
  for _, curve in ipairs(list) do
    condense(curve, most, o.log)
    if #curve.x > 0 then
      panel.add(made, curve)
      curve.hue, curve.dash = curve.place, 1
      curve.part, curve.name = curve.label, curve.label
    end
  end
  if #made.curves == 0 then
    errors.raise("gp.plot: there is nothing to show, expected at least one %snumber",
      o.log and "positive " or "finite ")
  end
  return made
end

-- ---- the function ------------------------------------------------------------------------------

local SPEC = {
  title = { type = "string" }, x = { type = "string", default = "place" },
  log = { type = "boolean", default = false },
  svg = { type = "string" }, force = { type = "boolean", default = false },
}
for name, rule in pairs(screen.PICTURE) do SPEC[name] = rule end

--- Draw numbers as curves: text for a terminal, or with `svg` a figure in a file.
--- Values: a tensor [N] or a list of numbers; a tensor [N, C] with a curve in each column (C <=
--- 64); or curves by name, each a list, a tensor [N], or {x = ..., y = ...} with ascending x.
--- Errors: raises for values that are no list of numbers, or of which none is finite; with `svg`
--- nil, message, code where the file cannot be written ("io") or exists and `force` was not given
--- ("exists").
--- ```lua
--- print(gp.plot(gp.linspace(0, 6, 100):sin()))
--- print(gp.plot({train = {3, 2, 1.5}, test = {3.1, 2.4, 2.2}}, {log = true, x = "epoch"}))
--- ```
---@param values gpipe.Tensor|table
---@param opts? {title?: string, x?: string, log?: boolean, width?: integer, height?: integer,
---  colour?: boolean, unicode?: boolean, svg?: string, force?: boolean} x: name of the axis;
---  width: columns, height: lines
---@return string|boolean|nil text; true where a file was written
---@return string? message
---@return string? code
return function(values, opts)
  local o = options.check("gp.plot", opts, SPEC)
  local list = curves_of(values)
  if #list > MOST_CURVES then
    errors.raise("gp.plot: there are %d curves, expected at most %d", #list, MOST_CURVES)
  end
  if o.svg then
    return file.write("gp.plot", o.svg, o.force, function()
      local svg = require "gpipe.draw.curves.svg"
      return svg.render({ panel_of(list, svg.POINTS, o) }, o)
    end)
  end
  local text = require "gpipe.draw.curves.text"
  screen.fill_in(o)
  return core.plain_numbers(function()
    return text.render({ panel_of(list, text.points(o.width), o) }, o)
  end)
end
