-- scripts/bench/trace.lua - actions of a step from its Chrome trace, and what a schedule makes of them.
--
-- The prediction is the longest path through the order of each device and the values that actions hand
-- on: nothing waits for anything else, so what a real step takes longer is the engine's.

local trace = {}

---@class Action
---@field name string "0F3"
---@field op string
---@field stage integer
---@field micro integer
---@field seconds number

-- One line of the trace is one action; the writer is runtime/engine/record.c.
local PATTERN = '"name":"((%d+)(%a)(%d+))","pid":%d+,"tid":(%d+),"ts":[%d.]+,"dur":([%d.]+)'

--- The actions of the last step, a list per device in the order in which they ran.
---@param pipe gpipe.Pipeline
---@return Action[][]
function trace.actions(pipe)
  local path, devices = os.tmpname(), {}
  assert(pipe:trace(path))
  for line in io.lines(path) do
    local name, stage, op, micro, device, duration = line:match(PATTERN)
    if name then
      local row = tonumber(device) + 1
      devices[row] = devices[row] or {}
      table.insert(devices[row], {
        name = name, op = op, stage = tonumber(stage), micro = tonumber(micro),
        seconds = 1e-6 * tonumber(duration),
      })
    end
  end
  os.remove(path)
  return devices
end

-- Actions whose values an action reads and another device may make; by name, where there are such.
local function sources(action)
  if action.op == "F" then return ("%dF%d"):format(action.stage - 1, action.micro) end
  if action.op == "B" or action.op == "I" then
    return ("%dB%d"):format(action.stage + 1, action.micro),
      ("%dI%d"):format(action.stage + 1, action.micro)
  end
end

-- Run what can be run of one device; returns whether anything could.
local function advance(device, state, ends, known)
  local before = state.next
  while device[state.next] do
    local action, start = device[state.next], state.free
    for _, source in ipairs { sources(action) } do
      if known[source] and not ends[source] then return state.next > before end
      start = math.max(start, ends[source] or 0)
    end
    state.free, state.next = start + action.seconds, state.next + 1
    ends[action.name] = state.free
  end
  return state.next > before
end

--- Seconds from the first begin to the last end when no device waits for anything but its inputs.
---@param devices Action[][]
---@return number
function trace.makespan(devices)
  local ends, known, states, moved, longest = {}, {}, {}, true, 0
  for d, device in ipairs(devices) do
    states[d] = { next = 1, free = 0 }
    for _, action in ipairs(device) do known[action.name] = true end
  end
  while moved do
    moved = false
    for d, device in ipairs(devices) do
      moved = advance(device, states[d], ends, known) or moved
    end
  end
  for d, device in ipairs(devices) do
    assert(not device[states[d].next], "the actions wait for each other")
    longest = math.max(longest, states[d].free)
  end
  return longest
end

return trace
