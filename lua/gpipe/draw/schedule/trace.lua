-- lua/gpipe/draw/schedule/trace.lua - timelines as Chrome trace JSON, for ui.perfetto.dev.
--
-- A timeline is a process, a device a thread, an action a complete event. Arrows lead from the
-- producer of a value to a consumer on another device: activations to the next stage, gradients
-- back.
-- Source: Trace Event Format (Google); flow events bind to the slice that encloses their time.

local escape = require "gpipe.io.escape"
local timeline = require "gpipe.draw.schedule.timeline"

local trace = {}

local SECOND, UNIT = 1e6, 1e3 -- microseconds: a unit of cost is shown as a millisecond

-- Viewers colour by name and filter by category; the words are those of a pipeline's own trace.
local CATEGORIES = {
  F = "forward", B = "backward", I = "input gradient", W = "weight gradient", R = "recompute",
  U = "update", P = "prepare", C = "count", S = "buffers",
}

local function time(value) return ("%.3f"):format(value) end

-- ---- metadata -----------------------------------------------------------------------------------

local function metadata(out, kind, process, thread, value)
  local where = thread and (',"tid":%d'):format(thread) or ""
  out[#out + 1] = ('{"ph":"M","name":"%s","pid":%d%s,"args":{%s}}'):format(kind, process, where,
    value)
end

local function name_rows(out, view, process)
  metadata(out, "process_name", process, nil, '"name":' .. escape.json(view.name))
  metadata(out, "process_sort_index", process, nil, ('"sort_index":%d'):format(process))
  for d = 1, view.devices do
    local name = view.names and view:device_name(d) or "device " .. d - 1
    metadata(out, "thread_name", process, d - 1, '"name":' .. escape.json(name))
    metadata(out, "thread_sort_index", process, d - 1, ('"sort_index":%d'):format(d - 1))
  end
end

-- ---- actions ------------------------------------------------------------------------------------

local function arguments(action, wait)
  local list = { ('"stage":%d'):format(action.stage or -1) }
  if action.micro then list[#list + 1] = ('"micro":%d'):format(action.micro) end
  if action.version then list[#list + 1] = ('"version":%d'):format(action.version) end
  list[#list + 1] = '"wait":' .. time(wait)
  return table.concat(list, ",")
end

local function complete_event(out, process, d, action, from, to, wait)
  local form = '{"ph":"X","cat":"%s","name":%s,"pid":%d,"tid":%d,"ts":%s,"dur":%s,"args":{%s}}'
  out[#out + 1] = form:format(CATEGORIES[action.op] or "other", escape.json(timeline.label(action)),
    process, d - 1, time(from), time(to - from), arguments(action, wait))
end

-- Append the rows of device d, and note in `places` where and when each action ran. Each action of
-- an overlapped pair gets one half of its time: slices of one thread may not overlap.
local function rows_of(out, view, process, d, per_time, places)
  local last, middle = 0, nil
  view:each(d, function(action, begin, finish, half)
    local from, to = begin * per_time, finish * per_time
    if half == 1 then
      middle = (from + to) / 2
      to = middle
    elseif half == 2 then
      from = middle
    end
    complete_event(out, process, d, action, from, to, math.max(0, from - last))
    last = to
    if action.stage and action.micro then
      local key = ("%s%d,%d"):format(action.op, action.stage, action.micro)
      places[key] = { device = d, from = from, to = to, op = action.op }
    end
  end)
end

-- ---- arrows -------------------------------------------------------------------------------------

local function flow_event(out, ph, flow, process, place, at, name)
  local text = '{"ph":"%s","cat":"flow","name":"%s","id":%d,"pid":%d,"tid":%d,"ts":%s%s}'
  out[#out + 1] = text:format(ph, name, flow, process, place.device - 1, time(at),
    ph == "f" and ',"bp":"e"' or "")
end

-- An arrow starts just before its producer ends: at the end itself the slice is closed already.
local function arrow(out, flows, process, producer, consumer, name)
  if not producer or not consumer or producer.device == consumer.device then return end
  flows.count = flows.count + 1
  local inside = math.max(producer.from, producer.to - 0.001)
  flow_event(out, "s", flows.count, process, producer, inside, name)
  flow_event(out, "f", flows.count, process, consumer, consumer.from, name)
end

local function arrows_of(out, flows, view, process, places)
  local function at(op, stage, micro) return places[("%s%d,%d"):format(op, stage, micro)] end
  for d = 1, view.devices do
    view:each(d, function(action)
      local op, stage, micro = action.op, action.stage, action.micro
      if not stage or not micro then return end
      local consumer = at(op, stage, micro)
      if op == "F" then
        arrow(out, flows, process, at("F", stage - 1, micro), consumer, "activation")
      elseif op == "B" or op == "I" then
        local producer = at("B", stage + 1, micro) or at("I", stage + 1, micro)
        arrow(out, flows, process, producer, consumer, "gradient")
      end
    end)
  end
end

--- Timelines as the text of a Chrome trace.
---@param views gpipe.View[]
---@return string
function trace.render(views)
  local out, flows = {}, { count = 0 }
  for k, view in ipairs(views) do
    local places, per_time = {}, view.unit == "s" and SECOND or UNIT
    name_rows(out, view, k - 1)
    for d = 1, view.devices do rows_of(out, view, k - 1, d, per_time, places) end
    arrows_of(out, flows, view, k - 1, places)
  end
  return '{"displayTimeUnit":"ms","traceEvents":[\n' .. table.concat(out, ",\n") .. "\n]}\n"
end

return trace
