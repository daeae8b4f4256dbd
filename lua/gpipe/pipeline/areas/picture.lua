-- lua/gpipe/pipeline/areas/picture.lua - the memory of a device over its tasks, as plain data for
-- gpipe.draw.memory.
--
-- The runtime says how many bytes of each kind are alive during each task. Whose they are follows
-- from the order of the tasks: what a micro-batch keeps in a stage begins with one of its tasks and
-- is gone after the last of them. So the bytes of a kind are exact at every task, and how they are
-- shared out among micro-batches is so up to padding.

local picture = {}

-- The kinds of the runtime's list that micro-batches own; the fourth is temporaries of a task.
local KINDS, TRANSIENT = { "saved", "recomputed", "carried" }, 4
local MOVING = { saved = true, recomputed = true, carried = true, transient = true }

-- ---- tasks --------------------------------------------------------------------------------------

-- The names of a device's tasks, as pipe:lowered() prints them: "0F0", "0B1", "0P". What tasks send
-- and receive belongs to them.
local function names_of(core, plan, d)
  local names = {}
  for line in core:page(plan, d - 1):gmatch "[^\n]+" do names[#names + 1] = line:match "^[^:]*" end
  return names
end

-- Whose the values of a task are: those of a micro-batch in a stage, or the task's own.
local function owner_of(name)
  local stage, micro = name:match "^%(?(%d+)%u[%u_]*(%d+)"
  return stage and ("stage %s, micro-batch %s"):format(stage, micro) or name
end

local function owners_of(names)
  local owners, last = {}, {}
  for t, name in ipairs(names) do
    owners[t] = owner_of(name)
    last[owners[t]] = t
  end
  return owners, last
end

-- ---- shares of a kind ---------------------------------------------------------------------------

-- What each owner holds of one kind. `set` ends the span so far and begins the next.
local function holder(spans, area)
  local held = { sum = 0, bytes = {}, since = {} }
  function held.set(owner, t, bytes)
    local before = held.bytes[owner] or 0
    if before > 0 and held.since[owner] < t then
      spans[#spans + 1] = { label = owner, area = area, first = held.since[owner], last = t - 1,
        bytes = before }
    end
    held.sum = held.sum + bytes - before
    held.bytes[owner], held.since[owner] = bytes > 0 and bytes or nil, t
  end
  return held
end

local function first_owner(held)
  local first
  for owner in pairs(held.bytes) do
    if not first or owner < first then first = owner end
  end
  return first
end

-- Bring the sum to what the runtime says: the task's owner gains or loses the difference, and what
-- it cannot lose the others do.
local function settle(held, owner, t, wanted)
  local own = (held.bytes[owner] or 0) + wanted - held.sum
  held.set(owner, t, math.max(0, own))
  while held.sum > wanted do
    local other = first_owner(held)
    held.set(other, t, math.max(0, held.bytes[other] - (held.sum - wanted)))
  end
end

local function add_kind(spans, moments, kind, owners, last)
  local held = holder(spans, KINDS[kind])
  for t, moment in ipairs(moments) do
    local before = owners[t - 1]
    if before and last[before] == t - 1 then held.set(before, t, 0) end
    if moment[kind] ~= held.sum then settle(held, owners[t], t, moment[kind]) end
  end
  while next(held.bytes) do held.set(first_owner(held), #moments + 1, 0) end
end

-- ---- a device -----------------------------------------------------------------------------------

-- What lies there from the first task to the last.
local function add_areas(spans, areas, tasks)
  for name, bytes in pairs(areas) do
    if not MOVING[name] then
      spans[#spans + 1] = { label = name, area = name, first = 1, last = tasks, bytes = bytes }
    end
  end
end

local function add_temporaries(spans, moments, names)
  for t, moment in ipairs(moments) do
    if moment[TRANSIENT] > 0 then
      spans[#spans + 1] = { label = names[t], area = "transient", first = t, last = t,
        bytes = moment[TRANSIENT] }
    end
  end
end

--- The picture of a device.
---@param core table the pipeline or plan of the runtime
---@param plan any
---@param d integer from 1
---@param one gpipe.DeviceMemory
---@return gpipe.MemoryDevice
function picture.device(core, plan, d, one)
  local names, spans = names_of(core, plan, d), {}
  local moments, tasks = core:alive(plan, d - 1), #names
  if tasks > 0 then add_areas(spans, one.areas, tasks) end
  local owners, last = owners_of(names)
  for kind in ipairs(KINDS) do add_kind(spans, moments, kind, owners, last) end
  add_temporaries(spans, moments, names)
  return { name = one.name, cap = one.cap, times = names, spans = spans,
    measured = one.measured and tasks > 0 and { { 1, one.measured } } or nil }
end

return picture
