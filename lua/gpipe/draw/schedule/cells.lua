-- lua/gpipe/draw/schedule/cells.lua - the cells of an SVG figure, and the critical path.
--
-- To keep files small, only a cell with a number or a tooltip is an element of its own. Small cells
-- share one path per row and fill, and a row with more actions than can be told apart is drawn as a
-- raster.

local axis = require "gpipe.draw.axis"
local colours = require "gpipe.draw.colours"
local escape = require "gpipe.io.escape"
local raster = require "gpipe.draw.schedule.raster"
local timeline = require "gpipe.draw.schedule.timeline"

local cells = {}

local xml, place = escape.xml, escape.place

local DIGIT = 0.58      -- width of a digit, in font sizes
local TOOLTIPS = 6000   -- actions up to which cells carry a tooltip
local TELL_APART = 0.75 -- pixels: a row whose actions have a smaller mean width is a raster

--- Start the cells of a page.
---@param page table layout of svg.lua
function cells.new(page)
  local count, micros = 0, 1
  for _, view in ipairs(page.views) do
    count, micros = count + view.count, math.max(micros, view.micros)
  end
  return {
    page = page, digits = #tostring(micros - 1), boxes = {}, labels = {}, places = {},
    tooltips = count <= TOOLTIPS, wanted = page.opts.critical ~= nil,
  }
end

-- ---- one cell -----------------------------------------------------------------------------------

-- The gap between neighbours, which keeps cells of one colour apart.
local function hair(width) return width < 3 and 0 or math.min(0.9, width * 0.12) end

local function tooltip(view, action, begin, finish)
  return ("<title>%s  %s to %s (%s)</title>"):format(xml(timeline.label(action)),
    axis.time(begin, view.unit), axis.time(finish, view.unit),
    axis.time(finish - begin, view.unit))
end

-- The number that fits into a cell: with the version of the weights, alone, or none. Every number
-- counts as long as the longest one, so that equal cells get equal labels.
local function number_of(drawn, action, width, height)
  local size = math.min(11, height * 0.66)
  local words = tostring(action.micro or action.op)
  local length = math.max(#words, drawn.digits)
  local version = action.version and "v" .. action.version
  if version and (length + 0.75 * (drawn.digits + 1) + 0.4) * DIGIT * size + 3 <= width then
    return words, size, version
  end
  for _, smaller in ipairs { size, size * 0.82, size * 0.7 } do
    if smaller >= 5.5 and length * DIGIT * smaller + 2 <= width then return words, smaller end
  end
end

local function add_label(drawn, box, words, size, version)
  local ink = colours.ink(box.fill)
  local list = drawn.labels[ink] or {}
  drawn.labels[ink] = list
  local small = ""
  if version then
    small = ('<tspan font-size="%s" dx="1">%s</tspan>'):format(place(size * 0.75), version)
  end
  list[#list + 1] = ('<text x="%s" y="%s" font-size="%s">%s%s</text>'):format(
    place(box.x + box.width / 2), place(box.y + box.height / 2 + size * 0.36), place(size),
    xml(words),
    small)
end

local function add_rect(drawn, box, inner)
  local radius = box.width >= 8 and box.height >= 8 and ' rx="1.8"' or ""
  local edge = hair(box.width)
  drawn.boxes[#drawn.boxes + 1] =
    ('<rect x="%s" y="%s" width="%s" height="%s"%s fill="%s">%s</rect>')
    :format(place(box.x + edge / 2), place(box.y), place(box.width - edge), place(box.height),
      radius,
      box.fill, inner)
end

-- Add a cell to the path of its fill.
local function add_to_path(paths, box)
  local list = paths[box.fill]
  if not list then
    list = {}
    paths[box.fill], paths[#paths + 1] = list, box.fill
  end
  local width = box.width - hair(box.width)
  list[#list + 1] = ("M%s %sh%sv%sh-%sz"):format(place(box.x), place(box.y), place(width),
    place(box.height), place(width))
end

local function close_paths(drawn, paths)
  local form = '<path fill="%s" shape-rendering="crispEdges" d="%s"/>'
  for _, fill in ipairs(paths) do
    drawn.boxes[#drawn.boxes + 1] = form:format(fill, table.concat(paths[fill]))
  end
end

-- ---- rows ---------------------------------------------------------------------------------------

local function key_of(action)
  return ("%s%s,%s"):format(action.op, action.stage or "", action.micro or "")
end

-- Draw the actions of a row one by one.
local function draw_actions(drawn, d, k, top, height)
  local page, paths = drawn.page, {}
  local view, factor = page.views[k], page.time.factors[k] * page.per_time
  view:each(d, function(action, begin, finish, half)
    if finish <= begin then return end
    local chunk, chunks = view:chunk(d, action.stage)
    local box = {
      x = page.left + begin * factor, width = (finish - begin) * factor, y = top, height = height,
      row = top,
      fill = colours.fill(action.op, chunk, chunks),
    }
    if half > 0 then box.height = height / 2 - 0.4 end
    if half == 2 then box.y = top + height / 2 + 0.4 end
    if drawn.wanted and k == 1 then drawn.places[key_of(action)] = box end
    local words, size, version = number_of(drawn, action, box.width, box.height)
    if words or drawn.tooltips then
      add_rect(drawn, box, drawn.tooltips and tooltip(view, action, begin, finish) or "")
    elseif box.width > 0 then
      add_to_path(paths, box)
    end
    if words then add_label(drawn, box, words, size, version) end
  end)
  close_paths(drawn, paths)
end

-- Draw a row with more actions than pixels: each column shows one of them, by their shares.
local function draw_raster(drawn, d, k, top, height)
  local page, paths = drawn.page, {}
  local view, factor = page.views[k], page.time.factors[k] * page.per_time
  local columns = math.floor(page.plot)
  local function fill_of(action)
    return action and colours.fill(action.op, view:chunk(d, action.stage))
  end
  local function same(a, b) return fill_of(a) == fill_of(b) end
  raster.runs(raster.row(view, d, factor, columns, true), columns, same,
    function(action, first, width)
    if not action then return end
    add_to_path(paths, {
      x = page.left + first, width = width, y = top, height = height, fill = fill_of(action),
    })
  end)
  close_paths(drawn, paths)
end

--- Draw device d of timeline k with its upper edge at `top`.
---@param drawn table
---@param d integer from 1
---@param k integer from 1
---@param top number
function cells.row(drawn, d, k, top)
  local page = drawn.page
  local height = page.bar - (#page.views > 1 and 1 or 0)
  if page.plot / math.max(1, #page.views[k].rows[d]) < TELL_APART then
    draw_raster(drawn, d, k, top, height)
  else
    draw_actions(drawn, d, k, top, height)
  end
end

-- ---- the critical path --------------------------------------------------------------------------

-- The boxes of the path; boxes that touch in a row are joined.
local function path_boxes(drawn)
  local list = {}
  for _, action in ipairs(drawn.page.opts.critical) do
    local box, last = drawn.places[key_of(action)], list[#list]
    local beside = box and last and last.y == box.y and last.height == box.height
    if beside and math.abs(last.x + last.width - box.x) < 0.5 then
      last.width = box.x + box.width - last.x
    elseif box then
      list[#list + 1] = {
        x = box.x, y = box.y, width = box.width, height = box.height, row = box.row,
      }
    end
  end
  return list
end

-- The line from the end of a box to the upper or lower edge of the next one.
local function arrow_between(from, to)
  local down = from.y < to.y
  return ("M%s %sL%s %s"):format(place(from.x + from.width - 0.6),
    place(from.y + from.height * (down and 0.6 or 0.4)), place(to.x + math.min(1.2, to.width / 3)),
    place(down and to.y + 1 or to.y + to.height - 1))
end

local ARROW_HEAD = '<defs><marker id="arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="4" '
  .. 'markerHeight="4" orient="auto"><path d="M0 0L6 3L0 6z" fill="%s"/></marker></defs>'

-- Draw frames around the actions of the path, and arrows where it goes from device to device.
local function critical_path(drawn, out)
  local frames, arrows, boxes = {}, {}, path_boxes(drawn)
  for i, box in ipairs(boxes) do
    local width = place(math.max(0, box.width - 1.2))
    frames[i] = ("M%s %sh%sv%sh-%sz"):format(place(box.x + 0.6), place(box.y + 0.6), width,
      place(box.height - 1.2), width)
    if i > 1 and boxes[i - 1].row ~= box.row then
      arrows[#arrows + 1] = ('<path d="%s" stroke-width="1.4" marker-end="url(#arrow)"/>')
        :format(arrow_between(boxes[i - 1], box))
    end
  end
  out[#out + 1] = ARROW_HEAD:format(colours.day.mark)
  out[#out + 1] = ('<g fill="none" stroke="%s" stroke-linejoin="round">'
    .. '<path d="%s" stroke-width="1.8"/>'):format(colours.day.mark, table.concat(frames))
  table.move(arrows, 1, #arrows, #out + 1, out)
  out[#out + 1] = "</g>"
end

--- Put all cells into the document: boxes, numbers above them, the critical path above all.
---@param drawn table
---@param out string[]
function cells.finish(drawn, out)
  table.move(drawn.boxes, 1, #drawn.boxes, #out + 1, out)
  for _, ink in ipairs { "#ffffff", "#000000" } do
    local list = drawn.labels[ink]
    if list then
      out[#out + 1] = ('<g fill="%s" text-anchor="middle" pointer-events="none">'):format(ink)
      table.move(list, 1, #list, #out + 1, out)
      out[#out + 1] = "</g>"
    end
  end
  if drawn.page.opts.critical then critical_path(drawn, out) end
end

return cells
