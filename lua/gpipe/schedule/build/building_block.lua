-- lua/gpipe/schedule/build/building_block.lua - a V schedule grown from the slots of one
-- micro-batch.
--
-- A block says in which slot (of equal length) each device runs F and I of both its stages for
-- micro-batch 0. Micro-batch k does the same 6k slots later: a period has F, I and W of two stages.
-- The shorter activations live in the block, the less memory the schedule needs. From the block, W
-- goes into free slots; then everything before and after the steady state moves to the earliest
-- slot that needs no more memory; this is repeated, with W placed anew each time.
-- Source: Qi et al. 2024 (pipeline parallelism with controllable memory), sections 3 and 4.

local building_block = {}

-- What a slot holds. A device runs stages r (0) and 2p-1-r (1); a micro-batch passes in this order.
local F0, F1, I1, I0, W = 1, 2, 3, 4, 5
local from = { [F0] = -1, [F1] = 1, [I1] = -1, [I0] = 1 } -- the neighbour that its input comes from

local PERIOD = 6

-- A device: slots[time] = kind, the end of the slots, at[kind][k] = time, and the times of both
-- stages' I in order. A plan is {p =, m =, [d] = device}.
local function empty_device()
  return { slots = {}, stop = 0, at = { {}, {}, {}, {}, {} }, inner = {} }
end

local function place(device, kind, k, time)
  device.slots[time], device.at[kind][k] = kind, time
  device.stop = math.max(device.stop, time + 1)
  if kind ~= I1 and kind ~= I0 then return end
  local inner = device.inner
  local i = #inner + 1
  while i > 1 and inner[i - 1] > time do
    inner[i], i = inner[i - 1], i - 1
  end
  inner[i] = time
end

-- Visit all passes of a plan in order of time; at one time in order of devices. The visitor may
-- move a pass to an earlier slot, never to a later one.
local function each(plan, visit)
  local seen, stop = {}, 0
  for d = 0, plan.p - 1 do
    seen[d], stop = { 0, 0, 0, 0, 0 }, math.max(stop, plan[d].stop)
  end
  for time = 0, stop - 1 do
    for d = 0, plan.p - 1 do
      local kind = plan[d].slots[time]
      if kind then
        local k = seen[d][kind]
        seen[d][kind] = k + 1
        visit(d, kind, k, time)
      end
    end
  end
end

-- The first slot after everything that a pass needs.
local function earliest(plan, d, kind, k)
  local at, time = plan[d].at, -1
  local neighbour = kind ~= W and plan[d + from[kind]]
  if neighbour then time = neighbour.at[kind][k] end
  if kind == W then
    time = plan[d].inner[k + 1]
  elseif kind > F0 then
    time = math.max(time, at[kind - 1][k])
  end
  return math.max(time, k > 0 and at[kind][k - 1] or -1) + 1
end

-- ---- W --------------------------------------------------------------------------------------

-- Put W into free slots, the oldest first.
local function lay_w(plan)
  for d = 0, plan.p - 1 do
    local device, waiting, k, time = plan[d], 0, 0, 0
    local stop = device.stop
    while time < stop or waiting > 0 do
      local kind = device.slots[time]
      if kind == I1 or kind == I0 then
        waiting = waiting + 1
      elseif not kind and waiting > 0 then
        place(device, W, k, time)
        waiting, k = waiting - 1, k + 1
      end
      time = time + 1
    end
  end
end

-- A copy of the plan with everything as early as the order of each device allows, without W.
local function run(plan)
  local made = { p = plan.p, m = plan.m }
  for d = 0, plan.p - 1 do made[d] = empty_device() end
  each(plan, function(d, kind, k)
    local device = made[d]
    place(device, kind, k, math.max(device.stop, earliest(made, d, kind, k)))
  end)
  for d = 0, made.p - 1 do
    for _, time in pairs(made[d].at[W]) do made[d].slots[time] = nil end
    made[d].at[W] = {}
  end
  return made
end

-- ---- squeezing ------------------------------------------------------------------------------

-- Activations alive and W waiting after a slot; while W is not placed (`lax`), assume that one runs
-- in every free slot.
local function step(kind, live, waiting, lax)
  if kind == F0 or kind == F1 then return live + 1, waiting end
  if kind == W then return live - 1, waiting end
  if kind then return live, waiting + 1 end
  if lax and waiting > 0 then return live - 1, waiting - 1 end
  return live, waiting
end

-- Note for every slot of a device how many activations are alive and how many W wait; returns the
-- most alive.
local function measure(device, lax)
  local live, waiting, most = { [-1] = 0 }, { [-1] = 0 }, 0
  for time = 0, device.stop - 1 do
    live[time], waiting[time] = step(device.slots[time], live[time - 1], waiting[time - 1], lax)
    most = math.max(most, live[time])
  end
  device.live, device.waiting = live, waiting
  return most
end

-- Move a pass from slot `old` to slot `new`, if the device then stays within its memory; returns
-- whether it did.
local function try(device, kind, old, new, plan)
  local slots, time = device.slots, new
  local live, waiting = device.live[new - 1], device.waiting[new - 1]
  local lives, waits = {}, {}
  slots[old], slots[new] = nil, kind
  while time < device.stop do
    live, waiting = step(slots[time], live, waiting, plan.lax)
    if live > plan.limit then
      slots[old], slots[new] = kind, nil
      return false
    end
    if time > old and live == device.live[time] and waiting == device.waiting[time] then break end
    lives[time], waits[time], time = live, waiting, time + 1
  end
  for t = new, time - 1 do device.live[t], device.waiting[t] = lives[t], waits[t] end
  return true
end

-- Move one pass to the first free slot that memory allows.
local function advance(plan, d, kind, k, time)
  local device, slots = plan[d], plan[d].slots
  local new = earliest(plan, d, kind, k)
  while new < time and (slots[new] or not try(device, kind, time, new, plan)) do new = new + 1 end
  return new
end

-- Squeeze the parts before (where W is placed) and after the steady state, which begins with the
-- first I that comes back to device 0 and ends with its last F.
local function squeeze(plan, lax)
  plan.lax, plan.limit = lax, 0
  for d = 0, plan.p - 1 do plan.limit = math.max(plan.limit, measure(plan[d], lax)) end
  for d = 0, plan.p - 1 do plan[d].inner = {} end
  local phase = 0
  each(plan, function(d, kind, k, time)
    if kind == I0 and d == 0 and phase == 0 then phase = 1 end
    local moves = phase == 2 or (phase == 0 and not lax)
    if phase == 1 and kind == F0 and k == plan.m - 1 then phase = 2 end
    place(plan[d], kind, k, moves and advance(plan, d, kind, k, time) or time)
  end)
  return plan
end

-- ---- the schedule ---------------------------------------------------------------------------

-- Append the passes of a device in order of time; free slots get W, of stage 1 first.
local function append(rows, plan, d)
  local stages = { [0] = d, 2 * plan.p - 1 - d }
  local ops, chunks = { "F", "F", "I", "I" }, { 0, 1, 1, 0 }
  local passed, done, back, time = { 0, 0, 0, 0 }, { [0] = 0, 0 }, { [0] = 0, 0 }, 0
  while time < plan[d].stop or done[0] + done[1] < 2 * plan.m do
    local kind = plan[d].slots[time]
    if kind then
      local chunk, micro = chunks[kind], passed[kind]
      rows[ops[kind]](rows, d, stages[chunk], micro)
      passed[kind] = micro + 1
      if kind >= I1 then back[chunk] = micro + 1 end
    else
      local chunk = done[1] < back[1] and 1 or 0
      if done[chunk] < back[chunk] then
        rows:W(d, stages[chunk], done[chunk])
        done[chunk] = done[chunk] + 1
      end
    end
    time = time + 1
  end
end

--- Append a V schedule to rows.
---@param rows userdata for p devices
---@param p integer
---@param m integer
---@param block fun(r: integer): integer, integer, integer, integer the slots in which device r runs
--- F of stage r, F of stage 2p-1-r, I of that, I of stage r; all different modulo 6
function building_block.fill(rows, p, m, block)
  local plan = { p = p, m = m }
  for d = 0, p - 1 do
    plan[d] = empty_device()
    local starts = { block(d) }
    for k = 0, m - 1 do
      for kind = F0, I0 do place(plan[d], kind, k, starts[kind] + PERIOD * k) end
    end
  end
  lay_w(plan)
  plan = squeeze(run(squeeze(plan, false)), true)
  lay_w(plan)
  plan = run(plan)
  for d = 0, p - 1 do append(rows, plan, d) end
end

return building_block
