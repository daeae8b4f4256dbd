-- tests/support/in_order.lua - computes a schedule's time and memory from its text alone.
--
-- The product has a simulator; this one shares no code with it, so that an error in either one
-- shows. Every device runs its list in order, each action as soon as its inputs are there; a pair
-- is one action.

local in_order = {}

-- Parses "(0F4;3B1)OVERLAP_F_B" to {{op=, stage=, micro=}, ...}, and also a single action.
local function parse(cell)
  local parts = {}
  for stage, op, micro, version in cell:gsub("%).*", ""):gmatch "(%d+)(%a)(%d+)@?(%d*)" do
    parts[#parts + 1] = { op = op, stage = math.tointeger(stage), micro = math.tointeger(micro),
      version = math.tointeger(version) }
  end
  return parts
end

--- Return the actions of each device as lists of parts; a pair has two parts.
---@param rows string[]
function in_order.parse(rows)
  local lists = {}
  for d, row in ipairs(rows) do
    local list = {}
    for cell in row:gsub("%b()", function(pair) return (pair:gsub(";", "+")) end):gmatch "[^,]+" do
      list[#list + 1] = parse(cell)
    end
    lists[d] = list
  end
  return lists
end

--- Return the most activations alive on each device, each of one (stage, micro-batch), from F to B
--- or W.
---@param rows string[]
---@return integer[]
function in_order.peaks(rows)
  local peaks = {}
  for d, list in ipairs(in_order.parse(rows)) do
    local live = 0
    peaks[d] = 0
    for _, parts in ipairs(list) do
      for _, part in ipairs(parts) do
        live = live + (part.op == "F" and 1 or (part.op == "B" or part.op == "W") and -1 or 0)
        peaks[d] = math.max(peaks[d], live)
      end
    end
  end
  return peaks
end

-- Returns what a part needs, as keys of (op, stage, micro-batch); B counts as I.
local function needs(part, last)
  local list = {}
  local function need(op, stage) list[#list + 1] = op .. stage .. ":" .. part.micro end
  if part.op == "F" and part.stage > 0 then need("F", part.stage - 1) end
  if part.op == "B" or part.op == "I" then
    need("F", part.stage)
    if part.stage < last then need("I", part.stage + 1) end
  elseif part.op == "W" then
    need("I", part.stage)
  end
  return list
end

-- Returns when an action can begin, or nil while one of its inputs has not been made.
local function ready(state, d, parts)
  local begin = state.clock[d]
  for _, part in ipairs(parts) do
    for _, key in ipairs(needs(part, state.last)) do
      local done = state.ended[key]
      if not done then return nil end
      begin = math.max(begin, done + (state.owner[key] ~= d and state.comm or 0))
    end
  end
  return begin
end

local function finish(state, d, parts, begin)
  local cost = 0
  for _, part in ipairs(parts) do cost = cost + state.cost[part.op] end
  state.begun[d] = state.begun[d] or begin
  state.clock[d] = begin + cost
  for _, part in ipairs(parts) do
    local key = (part.op == "B" and "I" or part.op) .. part.stage .. ":" .. part.micro
    state.ended[key], state.owner[key] = state.clock[d], d
  end
end

--- Return the makespan, and the longest time from a device's first action to its last.
---@param schedule gpipe.Schedule
---@param cost {F: number, I: number, W: number, comm: number?} of a device's share of the model; B = I + W
---@return number makespan
---@return number span
function in_order.time(schedule, cost)
  local share = schedule.stages // schedule.devices
  local state = {
    last = schedule.stages - 1, comm = cost.comm or 0, clock = {}, begun = {}, ended = {},
    owner = {},
    cost = { F = cost.F / share, I = cost.I / share, W = cost.W / share,
      B = (cost.I + cost.W) / share },
  }
  local lists, next, left = in_order.parse(schedule:rows()), {}, 0
  for d, list in ipairs(lists) do next[d], state.clock[d], left = 1, 0, left + #list end
  while left > 0 do
    local before = left
    for d, list in ipairs(lists) do
      local begin = list[next[d]] and ready(state, d, list[next[d]])
      if begin then
        finish(state, d, list[next[d]], begin)
        next[d], left = next[d] + 1, left - 1
      end
    end
    assert(left < before, "the schedule deadlocks")
  end
  local makespan, span = 0, 0
  for d, clock in ipairs(state.clock) do
    makespan, span = math.max(makespan, clock), math.max(span, clock - state.begun[d])
  end
  return makespan, span
end

return in_order
