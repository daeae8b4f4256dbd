-- lua/gpipe/schedule/build/bubble_filling.lua - a trial of zero bubble: W goes where a device would
-- wait.
--
-- A trial places F, I and W of every device under a limit of activations, with given costs and
-- three yes-or-no choices. Which choices are best is not known beforehand, so zb_auto tries all
-- eight and keeps the shortest schedule.
-- Source: Qi et al. 2024 (zero bubble pipeline parallelism), section 3.1, and the authors'
-- implementation.

local Trial = {}
Trial.__index = Trial

-- A device: its list of ops, when the last of them ends, how many F, I and W the list holds, when
-- each ended, when the first F began, and how long the device has waited since.
local function new_device()
  local ended = { F = {}, I = {}, W = {} }
  return { ops = {}, clock = 0, F = 0, I = 0, W = 0, ended = ended, bubble = 0 }
end

-- ---- laying passes --------------------------------------------------------------------------

-- When the input of device d's next F or I arrives.
function Trial:arrival(d, op)
  local sender = op == "F" and self[d - 1] or op == "I" and self[d + 1]
  return sender and sender.ended[op][self[d][op]] + self.comm or 0
end

function Trial:lay(d, op)
  local device = self[d]
  local start = math.max(device.clock, self:arrival(d, op))
  if device.F > 0 then
    device.bubble = device.bubble + start - device.clock
    self.most_bubble = math.max(self.most_bubble, device.bubble)
  else
    device.begun = start
  end
  device.clock = start + self.cost[op][d]
  device.ended[op][device[op]] = device.clock
  device[op] = device[op] + 1
  device.ops[#device.ops + 1] = op
end

local function owes_w(device) return device.W < device.I end

-- Place every W that fits before the next F or I can begin. One that does not quite fit is placed
-- too, if the device has waited longer than others or with the choice `greedy`.
function Trial:fill(d, op)
  local device, arrival = self[d], self:arrival(d, op)
  local cost = self.cost.W[d]
  while owes_w(device) and device.clock + cost <= arrival do self:lay(d, "W") end
  local gap = arrival - device.clock
  if gap <= 0 or not owes_w(device) then return end
  if self.greedy or gap > self.most_bubble - device.bubble then self:lay(d, "W") end
end

function Trial:lay_forward(d)
  local device = self[d]
  while device.F - device.W >= self.memory do self:lay(d, "W") end
  self:fill(d, "F")
  self:lay(d, "F")
end

function Trial:lay_backward(d)
  local device = self[d]
  self:fill(d, "I")
  if d == 0 and device.F == self.m then
    while owes_w(device) do self:lay(d, "W") end
  end
  self:lay(d, "I")
end

-- ---- micro-batch 0 --------------------------------------------------------------------------

-- How many F more fit into memory and before the first I, which arrives at `back`; when they end.
function Trial:room_before(d, back)
  local device, cost = self[d], self.cost.F[d]
  local clock, count = device.clock, 0
  local most = math.min(self.m, self.memory) - device.F
  while count < most do
    if self.overrun and clock >= back or not self.overrun and clock + cost > back then break end
    clock, count = clock + cost, count + 1
  end
  return count, clock
end

-- Place the forwards ahead of the first backward: fewer on each device than on the one before,
-- unless that one has all of them.
function Trial:warm_up()
  local last, more = self.p - 1, {}
  for d = 0, last do self:lay(d, "F") end
  local back = self[last].clock + self.cost.I[last]
  more[last] = 0
  for d = last - 1, 0, -1 do
    local arrival = back + self.comm
    local count, clock = self:room_before(d, arrival)
    more[d], back = count, math.max(clock, arrival) + self.cost.I[d]
  end
  for d = 0, last do
    if d > 0 then
      local all = more[d] + 1 == self.m and 0 or 1
      more[d] = math.max(0, math.min(more[d], more[d - 1] - all))
    end
    for _ = 1, more[d] do self:lay(d, "F") end
  end
  for d = last, 0, -1 do self:lay(d, "I") end
end

-- ---- the others -----------------------------------------------------------------------------

-- Whether an F now would delay an I of device d that arrives soon, while the next device has enough
-- F to do.
function Trial:delays(d)
  local device, after = self[d], self[d + 1]
  if not after or device.F < after.F + 2 then return false end
  local back = after.clock + self.cost.F[d + 1] + self.cost.I[d + 1] + self.comm
  if device.clock >= back then return true end
  local first = math.max(0, device.F + 1 - device.W - self.memory) -- W that must run before it
  local done = device.clock + self.cost.F[d] + first * self.cost.W[d]
  return done > back and back - device.clock <= self.most_bubble - device.bubble
end

-- Place the next backward of every device, and before it a forward where one is left and wanted.
function Trial:round()
  local wanted, after = {}, true
  for d = self.p - 1, 0, -1 do
    after = after and self[d].F < self.m and not (self.backward_first and self:delays(d))
    wanted[d] = after
  end
  for d = 0, self.p - 1 do
    if wanted[d] then self:lay_forward(d) end
  end
  for d = self.p - 1, 0, -1 do self:lay_backward(d) end
end

--- Place a schedule. Fields of the trial: p, m, memory (activations per device), comm, cost.F, .I,
--- .W (each {[device] = cost} from 0), and the choices overrun (the last F before the first I may
--- delay it), backward_first (no F that would delay an I), greedy (W wherever a device would
--- wait).
---@param trial table
---@return table trial trial[d].ops are the lists now, d from 0
---@return number span the longest time from a device's first action to its last
return function(trial)
  setmetatable(trial, Trial).most_bubble = 0
  for d = 0, trial.p - 1 do trial[d] = new_device() end
  trial:warm_up()
  for _ = 1, trial.m - 1 do trial:round() end
  local span = 0
  for d = 0, trial.p - 1 do
    while owes_w(trial[d]) do trial:lay(d, "W") end
    span = math.max(span, trial[d].clock - trial[d].begun)
  end
  return trial, span
end
