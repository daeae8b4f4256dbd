-- lua/gpipe/draw/memory/html.lua - memory over time as one page: zoom, and what is alive at a
-- moment.
--
-- Everything is embedded as compact JSON and drawn on a canvas by page/script.lua. Labels and areas
-- are numbers there, because a big plan has each of them thousands of times.

local escape = require "gpipe.io.escape"
local page = require "gpipe.draw.page"
local canvas = require "gpipe.draw.page.canvas"
local scale = require "gpipe.draw.memory.scale"
local sizes = require "gpipe.sizes"

local html = {}

local json, number, xml = escape.json, escape.number, escape.xml

local function list_json(list, form)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = form(value) end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function time(value) return number(value, 9) end
local function bytes(value) return number(value, 17) end

-- Texts by number, from 0.
local function texts()
  local list, numbers = {}, {}
  return list, function(words)
    if not numbers[words] then
      list[#list + 1] = words
      numbers[words] = #list - 1
    end
    return tostring(numbers[words])
  end
end

-- The spans of a view as five arrays of one length: label, area, begin, finish, bytes.
local function spans_json(view, number_of_area)
  if not view.spans then return "null", "[]" end
  local labels, number_of = texts()
  local columns = { {}, {}, {}, {}, {} }
  for i, span in ipairs(view.spans) do
    columns[1][i], columns[2][i] = number_of(span.label), tostring(number_of_area[span.area])
    columns[3][i], columns[4][i] = time(span.begin), time(span.finish)
    columns[5][i] = bytes(span.bytes)
  end
  local parts = {}
  for i, column in ipairs(columns) do parts[i] = "[" .. table.concat(column, ",") .. "]" end
  return "[" .. table.concat(parts, ",") .. "]", list_json(labels, json)
end

local function view_json(made, view, number_of_area)
  local stacks = {}
  for i, area in ipairs(made.areas) do
    stacks[i] = list_json(view.level[area.name] or {}, bytes)
  end
  local spans, labels = spans_json(view, number_of_area)
  local probes = list_json(view.measured, function(entry)
    return ("[%s,%s]"):format(time(entry.at), bytes(entry.bytes))
  end)
  local form = '{"name":%s,"figures":%s,"cap":%s,"begin":%s,"finish":%s,"levels":[%s],'
    .. '"measured":%s,"spans":%s,"labels":%s,"tasks":%s,"peak":%d}'
  return form:format(json(view.name), json(scale.figures(view)),
    scale.shows_cap(made, view) and bytes(view.cap) or "null", list_json(view.begin, time),
    #view.begin > 0 and time(view.finish) or "0", table.concat(stacks, ","), probes, spans, labels,
    view.names and list_json(view.names, json) or "null", math.max(0, view.peak_step - 1))
end

local function data_json(made)
  local number_of_area, views = {}, {}
  for i, area in ipairs(made.areas) do number_of_area[area.name] = i - 1 end
  for i, view in ipairs(made.views) do views[i] = view_json(made, view, number_of_area) end
  local areas = list_json(made.areas, function(area)
    return ("[%s,%s,%s]"):format(json(area.name), json(area.day), json(area.night))
  end)
  return ('{"from":%s,"to":%s,"unit":%s,"most":%s,"areas":%s,"tasks":%s,"devices":[\n%s]}'):format(
    time(made.from), time(made.to), json(made.unit), bytes(made.most), areas,
    made.names and list_json(made.names, json) or "null", table.concat(views, ",\n"))
end

local function legend(made)
  local parts, probed, capped = {}, false, false
  for i, area in ipairs(made.areas) do
    parts[i] = ('<span><i style="--light:%s;--dark:%s"></i>%s</span>'):format(area.day, area.night,
      xml(area.name))
  end
  for _, view in ipairs(made.views) do
    probed, capped = probed or #view.measured > 0, capped or scale.shows_cap(made, view)
  end
  if probed then parts[#parts + 1] = '<span><b class="probe"></b>measured</span>' end
  if capped then parts[#parts + 1] = '<span><b class="cap"></b>cap</span>' end
  return table.concat(parts, "\n")
end

local function devices_table(made)
  local lines = { page.row("th", { "device", "peak", "at", "measured", "cap" }) }
  local levels = require "gpipe.draw.memory.levels"
  for _, view in ipairs(made.views) do
    local measured = levels.measured_peak(view)
    lines[#lines + 1] = page.row("td", { view.name, sizes.text(view.peak),
      view.peak_step > 0 and scale.moment(view, view.begin[view.peak_step]) or "",
      measured and sizes.text(measured) or "", view.cap and sizes.text(view.cap) or "" })
  end
  return "<table>" .. table.concat(lines, "\n") .. "</table>"
end

--- Draw memory over time as a page.
---@param made gpipe.MemoryScale
---@param o {title?: string}
---@return string
function html.render(made, o)
  return page.render {
    title = o.title or "memory over time", data = data_json(made),
    style = require "gpipe.draw.memory.page.style", body = require "gpipe.draw.memory.page.body",
    parts = { LEGEND = legend(made), DEVICES = devices_table(made) },
    script = page.enclose(require "gpipe.draw.page.axis", canvas.script,
      require "gpipe.draw.memory.page.script", require "gpipe.draw.memory.page.events"),
  }
end

return html
