-- tests/support/timelines.lua - makes timelines for specs: rows of text run in order at given
-- costs.
--
-- This is the shortest form of a simulator: an action starts when its device is free and its inputs
-- are there. The product's own simulator is tested elsewhere, and drawings must not depend on it.

local schedule = require("gpipe").schedule

local timelines = {}

local function parse_one(text)
  local stage, op, micro, version = text:match "^(%d+)(%a)(%d*)@?(%d*)$"
  return { op = op, stage = tonumber(stage), micro = tonumber(micro), version = tonumber(version) }
end

-- Returns the actions of a row; the first of an overlapped pair is joined.
local function parse(row)
  local list = {}
  for text in row:gmatch "[^,%s]+" do
    local first, second = text:match "^%((%w+);(%w+)%)"
    if first then
      local action = parse_one(first)
      action.joined = true
      list[#list + 1], list[#list + 2] = action, parse_one(second)
    else
      list[#list + 1] = parse_one(text)
    end
  end
  return list
end

-- Returns when the inputs of an action are there; nil while that is not known.
local function ready_at(done, a, last)
  local key = function(op, stage) return done[op .. stage .. "," .. a.micro] end
  if a.op == "F" then return a.stage == 0 and 0 or key("F", a.stage - 1) end
  if a.op == "W" then return key("I", a.stage) end
  if a.op == "B" or a.op == "I" then
    if a.stage == last then return key("F", a.stage) end
    return key("B", a.stage + 1) or key("I", a.stage + 1)
  end
  return 0
end

-- Runs the next action of a row, or the next pair; false where it must wait.
local function advance(row, done, costs, last)
  local group = { row[row.at] }
  if group[1] and group[1].joined then group[2] = row[row.at + 1] end
  if #group == 0 then return false end
  local begin, cost = row.free, 0
  for _, a in ipairs(group) do
    local ready = ready_at(done, a, last)
    if not ready then return false end
    begin, cost = math.max(begin, ready), cost + (costs[a.op] or 0)
  end
  for _, a in ipairs(group) do
    a.begin, a.finish = begin, begin + cost
    done[a.op .. a.stage .. "," .. (a.micro or "")] = a.finish
  end
  row.at, row.free = row.at + #group, begin + cost
  return true
end

--- Return the timeline of rows of text. Fails where they cannot be run.
---@param name string
---@param rows string[]
---@param costs? table<string, number> default: F = 1, B = 2, I = 1, W = 1
---@return table
function timelines.of(name, rows, costs)
  local made = { name = name, devices = #rows, unit = "", makespan = 0 }
  local last, done, moved = 0, {}, true
  for d, text in ipairs(rows) do
    made[d] = parse(text)
    made[d].at, made[d].free = 1, 0
    for _, a in ipairs(made[d]) do last = math.max(last, a.stage) end
  end
  while moved do
    moved = false
    for d = 1, #rows do
      while advance(made[d], done, costs or { F = 1, B = 2, I = 1, W = 1 }, last) do
        moved = true
      end
    end
  end
  for d, row in ipairs(made) do
    assert(row.at > #row, "device " .. d - 1 .. " is stuck")
    made.makespan = math.max(made.makespan, row.free)
    row.at, row.free = nil, nil
  end
  return made
end

--- Build a schedule; `more` holds its own options.
function timelines.build(name, devices, chunks, more)
  local opts = { devices = devices, chunks = chunks }
  for key, value in pairs(more or {}) do opts[key] = value end
  return schedule.build(name, opts)
end

--- Return the timeline of a schedule at given costs.
function timelines.scheduled(name, devices, chunks, costs)
  return timelines.of(name, timelines.build(name, devices, chunks):rows(), costs)
end

--- Turn a predicted timeline into a measured one: the same actions in seconds, each a little
--- shorter.
function timelines.measured(predicted, seconds)
  local made = { name = "run", devices = predicted.devices, unit = "s" }
  for d = 1, predicted.devices do
    made[d] = {}
    for i, a in ipairs(predicted[d]) do
      made[d][i] = {
        op = a.op, stage = a.stage, micro = a.micro, begin = a.begin * seconds,
        finish = (a.finish - 0.125) * seconds,
      }
    end
  end
  made.makespan = predicted.makespan * seconds
  return made
end

--- Make a few devices that work at random: drawings must also handle what no schedule has.
function timelines.random(seed)
  math.randomseed(seed)
  local made = { name = ("\u{fc}ber-%d"):format(seed), devices = math.random(1, 5), unit = "" }
  for d = 1, made.devices do
    local now, row = 0, {}
    for i = 1, math.random(0, 60) do
      now = now + (math.random() < 0.3 and math.random() * 3 or 0)
      local op = ({ "F", "B", "I", "W", "U", "R", "SEND" })[math.random(7)]
      local finish = now + math.random() ^ 3 * 4
      local version = math.random() < 0.1 and math.random(0, 9) or nil
      row[i] = {
        op = op, stage = math.random(0, 3), micro = math.random(0, 120), version = version,
        begin = now, finish = finish,
        joined = i > 1 and not row[i - 1].joined and math.random() < 0.1,
      }
      now = finish
    end
    if #row > 0 then row[#row].joined = nil end
    made[d] = row
  end
  return made
end

--- Call a drawing function with a temporary file; return what it wrote.
---@param write function
---@param ... any its arguments after the path
---@return string
function timelines.written(write, ...)
  local path = os.tmpname()
  assert(write(path, ...))
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  os.remove(path)
  return text
end

return timelines
