-- lua/gpipe/schedule/build/eight_steps.lua - the steps that a device goes through in DualPipe(V).
--
-- Two phases share a device: phase 0 enters at its near end, phase 1 comes back from the far end.
-- F and B of opposite phases are one action, so that the messages of one travel while the other
-- computes.
-- Source: DeepSeek-V3 technical report (2024), section 3.2.1, and DualPipe's `step`.

local eight_steps = {}

-- ---- one device's list ----------------------------------------------------------------------

local Lane = {}
Lane.__index = Lane

--- A lane appends the actions of one device to rows.
--- phases: [0] and [1] are {stage =, first =, count =}: micro-batches first .. first+count-1 run
--- there. The steps need a least number of micro-batches: those beyond `count` are counted, but
--- leave no action.
---@param rows userdata
---@param device integer
---@param phases table
function eight_steps.lane(rows, device, phases)
  local lane = { rows = rows, device = device, waiting = {}, oldest = 1, next = { F = {}, B = {} } }
  for phase = 0, 1 do
    lane[phase], lane.next.F[phase], lane.next.B[phase] = phases[phase], 0, 0
  end
  return setmetatable(lane, Lane)
end

-- The stage and micro-batch that a phase runs next in direction "F" or "B"; the micro-batch is nil
-- where it is left out.
function Lane:take(direction, phase)
  local k, at = self.next[direction][phase], self[phase]
  self.next[direction][phase] = k + 1
  return at.stage, k < at.count and at.first + k
end

function Lane:F(phase)
  local stage, micro = self:take("F", phase)
  if micro then self.rows:F(self.device, stage, micro) end
end

-- Append a backward: B, or with `apart` I now and W later.
function Lane:B(phase, apart)
  local stage, micro = self:take("B", phase)
  if apart then self.waiting[#self.waiting + 1] = { stage, micro } end
  if micro then self.rows[apart and "I" or "B"](self.rows, self.device, stage, micro) end
end

-- Append the oldest W that waits.
function Lane:W()
  local stage, micro = table.unpack(self.waiting[self.oldest])
  self.oldest = self.oldest + 1
  if micro then self.rows:W(self.device, stage, micro) end
end

-- Append F of one phase and B of the other, as one action if both are there.
function Lane:pair(forward, backward)
  local f, b = self.next.F[forward], self.next.B[backward]
  if f >= self[forward].count or b >= self[backward].count then
    self:F(forward)
    return self:B(backward)
  end
  local stage, micro = self:take("F", forward)
  self.rows:join(self.device, "F", stage, micro, "B", self:take("B", backward))
end

-- ---- the steps ------------------------------------------------------------------------------

--- Append all actions of a device.
---@param lane table of the device
---@param h integer its distance from the near end
---@param half integer devices that a phase passes on its side: p/2 in DualPipe, p in DualPipeV
---@param count integer micro-batches per phase; at least 2 * half
function eight_steps.run(lane, h, half, count)
  local away = half - h - 1
  for _ = 1, 2 * away do lane:F(0) end
  for _ = 1, h + 1 do
    lane:F(0)
    lane:F(1)
  end
  for _ = 1, away do
    lane:B(1, true)
    lane:W()
    lane:F(1)
  end
  for i = 1, count - 2 * half + h + 1 do
    if i == 1 and away == 0 then -- nothing to overlap with at the turn
      lane:F(0)
      lane:B(1)
    else
      lane:pair(0, 1)
    end
    lane:pair(1, 0)
  end
  for _ = 1, away do
    lane:B(1)
    lane:pair(1, 0)
  end
  for i = 0, h do -- from the middle on, W stays behind
    local middle = (h + 1) // 2
    lane:B(1, i > middle or (i == middle and h % 2 == 1))
    lane:B(0, i >= middle)
  end
  for _ = 1, away do
    lane:W()
    lane:B(0, true)
  end
  for _ = 1, h + 1 do lane:W() end
end

return eight_steps
