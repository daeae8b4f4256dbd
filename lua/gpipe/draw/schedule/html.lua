-- lua/gpipe/draw/schedule/html.lua - timelines as one page with zoom, tooltips and figures.
--
-- The actions are embedded as compact JSON and drawn on a canvas by page/script.lua, which looks
-- only at the visible ones: a hundred thousand actions move smoothly. Texts are embedded as JSON
-- too, so that no text of a user's can become markup.

local axis = require "gpipe.draw.axis"
local colours = require "gpipe.draw.colours"
local escape = require "gpipe.io.escape"
local page = require "gpipe.draw.page"
local canvas = require "gpipe.draw.page.canvas"
local scale = require "gpipe.draw.schedule.scale"
local timeline = require "gpipe.draw.schedule.timeline"

local html = {}

local xml, json, number = escape.xml, escape.json, escape.number

-- ---- data ---------------------------------------------------------------------------------------

-- A row as arrays: ops by their number in `ops`, stages by their place on the device, micro-batches
-- and versions (-1: none), begins, durations, halves of pairs. Versions and halves are empty where
-- there are none.
local function row_json(view, d, op_numbers)
  local columns = { {}, {}, {}, {}, {}, {}, {} }
  local paired, versions, n = false, false, 0
  view:each(d, function(action, begin, finish, half)
    n = n + 1
    columns[1][n], columns[2][n] = op_numbers[action.op], view:chunk(d, action.stage) - 1
    columns[3][n], columns[4][n] = action.micro or -1, action.version or -1
    columns[5][n], columns[6][n] = number(begin), number(finish - begin, 6)
    columns[7][n] = half
    paired, versions = paired or half > 0, versions or action.version ~= nil
  end)
  local parts = {}
  for i, column in ipairs(columns) do
    local empty = i == 4 and not versions or i == 7 and not paired
    parts[i] = "[" .. (empty and "" or table.concat(column, ",")) .. "]"
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function list_json(list, form)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = form(value) end
  return "[" .. table.concat(parts, ",") .. "]"
end

-- A timeline as JSON. `factor` converts its unit to that of the axis, which all timelines share.
local function view_json(view, factor, op_numbers)
  local rows, names, stages = {}, {}, {}
  for d = 1, view.devices do
    rows[d], names[d] = row_json(view, d, op_numbers), json(view:device_name(d))
    stages[d] = list_json(view.stages[d], tostring)
  end
  local text = '{"name":%s,"unit":%s,"factor":%s,"makespan":%s,"names":[%s],"stages":[%s],'
    .. '"rows":[\n%s]}'
  return text:format(json(view.name), json(view.unit), number(factor, 12), number(view.makespan),
      table.concat(names, ","), table.concat(stages, ","), table.concat(rows, ",\n"))
end

-- The ops of all views with names and colours as JSON; and the number of each op, from 0.
local function op_table(views)
  local present, list, numbers = timeline.ops(views), {}, {}
  for op in pairs(present) do list[#list + 1] = op end
  table.sort(list)
  local parts = {}
  for i, op in ipairs(list) do
    local entry = colours.op(op)
    numbers[op] = i - 1
    parts[i] = ("[%s,%s,%s,%s,%s]"):format(json(op), json(entry.name), json(entry.fill),
      json(entry.dark or entry.fill), number(entry.tint or 1))
  end
  return "[" .. table.concat(parts, ",") .. "]", numbers, present
end

local function data_json(views, time)
  local ops, numbers, present = op_table(views)
  local parts = {}
  for k, view in ipairs(views) do parts[k] = view_json(view, time.factors[k], numbers) end
  return ('{"unit":%s,"extent":%s,"ops":%s,"timelines":[%s]}'):format(json(time.unit),
    number(time.extent, 12), ops, table.concat(parts, ",\n")), present
end

-- ---- words --------------------------------------------------------------------------------------

local function overview(views)
  local lines = { page.row("th",
    { "timeline", "devices", "micro-batches", "actions", "makespan", "span",
    "mean bubble", "peak alive" }) }
  for _, view in ipairs(views) do
    local peak, device = view:highest_peak()
    lines[#lines + 1] = page.row("td", { view.name, tostring(view.devices), tostring(view.micros),
      tostring(view.count), axis.time(view.makespan, view.unit), axis.time(view.span, view.unit),
      timeline.percent(view:mean_bubble()),
      ("%s (device %d)"):format(view:activations(peak), device) })
  end
  return "<table>" .. table.concat(lines, "\n") .. "</table>"
end

local function devices_table(views)
  local head = { "device" }
  for _, view in ipairs(views) do
    local of = #views > 1 and view.name .. ": " or ""
    head[#head + 1], head[#head + 2] = of .. "bubble", of .. "peak alive"
    head[#head + 1] = of .. "stages"
  end
  local lines = { page.row("th", head) }
  for d = 1, views[1].devices do
    local row = { views[1]:device_name(d) }
    for _, view in ipairs(views) do
      row[#row + 1] = timeline.percent(view.bubble[d])
      row[#row + 1] = tostring(view.peak[d])
      row[#row + 1] = table.concat(view.stages[d], ", ")
    end
    lines[#lines + 1] = page.row("td", row)
  end
  return "<table>" .. table.concat(lines, "\n") .. "</table>"
end

-- The legend; it explains tints where there are any.
local function legend(views, present)
  local parts, several = {}, false
  for _, view in ipairs(views) do several = several or view.several end
  for _, entry in ipairs(colours.legend(present)) do
    parts[#parts + 1] = ('<span><i style="--light:%s;--dark:%s"></i>%s</span>'):format(entry.fill,
      entry.dark or entry.fill, entry.name)
  end
  parts[#parts + 1] = '<span><i class="idle"></i>idle</span>'
  if several then
    parts[#parts + 1] = '<span class="faint">strong to faint: first to last stage of a '
      .. 'device</span>'
  end
  return table.concat(parts, "\n")
end

--- Draw timelines as a page.
---@param views gpipe.View[]
---@param opts {title: string?, scale: number?}
---@return string
function html.render(views, opts)
  local time = scale.common(views, opts.scale)
  local data, present = data_json(views, time)
  local names = {}
  for i, view in ipairs(views) do names[i] = view.name end
  return page.render {
    title = opts.title or table.concat(names, " and "), data = data,
    body = require "gpipe.draw.schedule.page.body",
    parts = { NOTE = xml(time.note or ""), LEGEND = legend(views, present),
      OVERVIEW = overview(views), DEVICES = devices_table(views) },
    script = page.enclose(require "gpipe.draw.page.axis", canvas.script,
      require "gpipe.draw.schedule.page.script", require "gpipe.draw.schedule.page.events"),
  }
end

return html
