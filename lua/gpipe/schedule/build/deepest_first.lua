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

-- The furthest pass of a device whose input is there at `time`; nil where there is none.
local function furthest(device, m, time)
  local count, inputs = device.count, device.inputs
  for i = #passes, 1, -1 do
    local k, ended = count[i], inputs[i]
    if k < m then
      local input = not ended and 0 or ended[k]
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
local function run_w(rows, state, d)
  local count, w = state[d].count, state[d].w
  local chunk = w[1] < count[3] and 1 or 0
  if w[chunk] >= count[chunk == 1 and 3 or 4] then return false end
  rows:W(d, chunk == 1 and 2 * state.p - 1 - d or d, w[chunk])
  w[chunk] = w[chunk] + 1
  return true
end

local function run_pass(rows, state, d, i, time)
  local device, pass = state[d], passes[i]
  local k = device.count[i]
  rows[pass.op](rows, d, pass.chunk == 1 and 2 * state.p - 1 - d or d, k)
  device.ended[i][k], device.count[i] = time + 1, k + 1
end

--- Append the lists of p devices for m micro-batches to rows.
return function(rows, p, m)
  local state, left, time = { p = p }, 6 * p * m, 0
  for d = 0, p - 1 do
    state[d] = { count = { 0, 0, 0, 0 }, w = { [0] = 0, 0 }, ended = { {}, {}, {}, {} } }
  end
  for d = 0, p - 1 do state[d].inputs = inputs_of(state, d) end
  while left > 0 do
    for d = 0, p - 1 do
      local i = furthest(state[d], m, time)
      if i then run_pass(rows, state, d, i, time) end
      if i or run_w(rows, state, d) then left = left - 1 end
    end
    time = time + 1
  end
end
