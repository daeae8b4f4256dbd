-- lua/gpipe/run_reader/curves.lua - collect the curves of a picture of runs, with their points.
--
-- A picture is a list of panels, one above the other. A panel shows one name, or several names
-- joined by commas, of every run that logged them, or of every group of runs.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local folder = require "gpipe.run_reader.folder"
local groups = require "gpipe.run_reader.groups"
local panel = require "gpipe.draw.curves.panel"

local curves = {}

-- ---- names -------------------------------------------------------------------------------------

--- The names that any of the runs logged, in alphabetical order.
---@param runs gpipe.RunFolder[]
---@return string[]
function curves.names(runs)
  local seen, list = {}, {}
  for _, run in ipairs(runs) do
    for _, name in ipairs(core.records_names(folder.log(run))) do
      if not seen[name] then seen[name], list[#list + 1] = true, name end
    end
  end
  table.sort(list)
  return list
end

-- All losses in one panel; without a loss, the first name.
local function default_panels(names)
  local losses = {}
  for _, name in ipairs(names) do
    if name == "loss" or name:find "[_/.]loss$" then losses[#losses + 1] = name end
  end
  return { #losses > 0 and losses or { names[1] } }
end

-- Split "loss,val_loss" at its commas, unless the whole text is a name that was logged.
local function split(text, known)
  if known[text] then return { text } end
  local parts = {}
  for part in text:gmatch "[^,]+" do parts[#parts + 1] = part end
  return parts
end

--- The names of each panel. Errors: nil and the fault where no run has logged a name.
---@param runs gpipe.RunFolder[]
---@param wanted string[] "loss,val_loss" is one panel of two
---@return string[][]?
---@return string? fault
function curves.panels(runs, wanted)
  local names, known, panels = curves.names(runs), {}, {}
  if #names == 0 then return nil, "nothing was logged yet" end
  if #wanted == 0 then return default_panels(names) end
  for _, name in ipairs(names) do known[name] = true end
  for i, text in ipairs(wanted) do
    panels[i] = split(text, known)
    for _, name in ipairs(panels[i]) do
      if not known[name] then
        return nil, ("no run logged '%s'%s"):format(name, errors.hint(name, names, "names"))
      end
    end
  end
  return panels
end

-- ---- points ------------------------------------------------------------------------------------

-- Label runs by their names; runs with the same name are told apart by their folders.
local function labels_of(runs)
  local count, labels = {}, {}
  for _, run in ipairs(runs) do count[run.name] = (count[run.name] or 0) + 1 end
  for i, run in ipairs(runs) do labels[i] = count[run.name] > 1 and run.path or run.name end
  return labels
end

local function curve_of(run, name, opts)
  local clock = opts.time and folder.timing(run) or nil
  if clock and not core.records_last(clock, "time") then return nil end
  local x, low, high, mean, smooth, left_out = core.records_curve(folder.log(run), name, opts.most,
    opts.smooth or 0, clock, opts.log == true)
  if not x or #x == 0 then return nil, left_out end
  return { x = x, low = low, high = high, mean = mean, smooth = smooth, left_out = left_out,
    last = (core.records_last(folder.log(run), name)) }
end

-- The value of a list at x, interpolated between the points of a curve; nil outside of them.
local function value_at(curve, list, x)
  local low, high = 1, #curve.x
  if x < curve.x[1] or x > curve.x[high] then return nil end
  while high - low > 1 do
    local middle = (low + high) // 2
    if curve.x[middle] <= x then low = middle else high = middle end
  end
  local span = curve.x[high] - curve.x[low]
  local share = span > 0 and (x - curve.x[low]) / span or 0
  return list[low] * (1 - share) + list[high] * share
end

-- Join curves into one: their mean, least and largest value at the points of the longest.
local function joined(list)
  if #list == 1 then return list[1] end
  local longest, left_out, last = list[1], 0, 0
  for _, curve in ipairs(list) do
    if #curve.x > #longest.x then longest = curve end
    left_out, last = left_out + curve.left_out, last + curve.last / #list
  end
  local made = { x = longest.x, low = {}, high = {}, mean = {}, smooth = {}, left_out = left_out,
    last = last }
  for i, x in ipairs(longest.x) do
    local count, sum, smooth, low, high = 0, 0, 0, math.huge, -math.huge
    for _, curve in ipairs(list) do
      local value = value_at(curve, curve.mean, x)
      if value then
        count, sum, smooth = count + 1, sum + value, smooth + value_at(curve, curve.smooth, x)
        low, high = math.min(low, value), math.max(high, value)
      end
    end
    made.mean[i], made.smooth[i], made.low[i], made.high[i] = sum / count, smooth / count, low, high
  end
  return made
end

local function curve_of_all(runs, name, opts)
  local list = {}
  for _, run in ipairs(runs) do list[#list + 1] = curve_of(run, name, opts) end
  return #list > 0 and joined(list) or nil
end

local function panel_of(parts, names, opts)
  local made = panel.new(table.concat(names, ", "),
    { names = #parts > 1 and #names > 1 and names or nil })
  for p, part in ipairs(parts) do
    for n, name in ipairs(names) do
      local curve = curve_of_all(part.runs, name, opts)
      if curve then
        curve.label = #names == 1 and part.label or #parts == 1 and name
          or part.label .. " " .. name
        curve.part, curve.name = part.label, name
        curve.hue, curve.dash = #parts == 1 and n or p, #parts == 1 and 1 or n
        panel.add(made, curve, opts.lines)
      end
    end
  end
  return made
end

-- The parts that get a curve each: runs, or groups labelled with the number of their runs.
local function parts_of(runs, by)
  local parts = {}
  if by then
    for i, group in ipairs(groups.of(runs, by) or {}) do
      parts[i] = { runs = group.runs, label = ("%s (%d)"):format(group.label, #group.runs) }
    end
    return parts
  end
  local labels = labels_of(runs)
  for i, run in ipairs(runs) do parts[i] = { runs = { run }, label = labels[i] } end
  return parts
end

--- The panels of a picture with their points; panels without points are left out.
---@param runs gpipe.RunFolder[]
---@param panels string[][]
---@param opts {most: integer, smooth?: number, time?: boolean, log?: boolean, lines?: boolean,
---  by?: string|string[]} most: points of a curve; lines: nothing but the smoothed lines is drawn
---@return gpipe.Panel[]
function curves.gather(runs, panels, opts)
  local list, parts = {}, parts_of(runs, opts.by)
  for _, names in ipairs(panels) do
    local made = panel_of(parts, names, opts)
    if #made.curves > 0 then list[#list + 1] = made end
  end
  return list
end

return curves
