-- lua/gpipe/schedule/build/deepest_first.lua - a V schedule of few micro-batches: the furthest pass
-- first.
--
-- In slots of equal length each device takes the first of these passes whose input is there: I of
-- its first stage, I of its second, F of its second, F of its first; if there is none, W. Memory is
-- not limited: with m <= p there are never more than 2p activations.

-- The passes of a micro-batch over the V: op, which stage of the device, which neighbour sends.
local passes = {
  { op = "F", chunk = 0, from = -1 }, { op = "F", chunk = 1, from = 1 },
  { op = "I", chunk = 1, from = -1 }, { op = "I", chunk = 0, from = 1 },
}

local LAST = #passes

-- The furthest pass of a device whose input is there at `time`; nil where there is none.
local function furthest(count, inputs, m, time)
  for i = LAST, 1, -1 do
    local k, ended = count[i], inputs[i]
    if k < m then
      if not ended then return i end
      local input = ended[k]
      if input and input <= time then return i end
    end
  end
end

-- When the inputs of a device's passes have ended, per pass and micro-batch; false: it needs none.
local function inputs_of(state, d)
  local inputs = {}
  for i, pass in ipairs(passes) do
    local sender = state[d + pass.from]
    inputs[i] = sender and sender.ended[i] or i > 1 and state[d].ended[i - 1]
  end
  return inputs
end

-- Run W of the second stage before W of the first; returns whether there was one.
local function run_w(rows, device, d)
  local count, w = device.count, device.w
  local chunk = w[1] < count[3] and 1 or 0
  local k = w[chunk]
  if k >= count[chunk == 1 and 3 or 4] then return false end
  rows:W(d, device.stage[chunk], k)
  w[chunk] = k + 1
  return true
end

local function run_pass(rows, device, d, i, time)
  local pass, k = passes[i], device.count[i]
  rows[pass.op](rows, d, device.stage[pass.chunk], k)
  device.ended[i][k], device.count[i] = time + 1, k + 1
end

--- Append the lists of p devices for m micro-batches to rows.
return function(rows, p, m)
  local state, left, time = { p = p }, 6 * p * m, 0
  for d = 0, p - 1 do
    state[d] = { count = { 0, 0, 0, 0 }, w = { [0] = 0, 0 }, ended = { {}, {}, {}, {} },
      stage = { [0] = d, 2 * p - 1 - d } }
  end
  for d = 0, p - 1 do state[d].inputs = inputs_of(state, d) end
  while left > 0 do
    for d = 0, p - 1 do
      local device = state[d]
      local i = furthest(device.count, device.inputs, m, time)
      if i then run_pass(rows, device, d, i, time) end
      if i or run_w(rows, device, d) then left = left - 1 end
    end
    time = time + 1
  end
end
