-- tests/spec/schedule/moments_spec.lua - s:moments() lists what a device's stages hold at the same
-- time: for any bytes of each, the fullest of its rows is the fullest moment of a plain walk.

local gp = require "gpipe"

local DEVICES, CHUNKS = 3, 6
-- What is joined overlaps; the walk below takes one action after the other.
local JOINED = { dualpipe = true, dualpipev = true }

-- When each (stage, micro-batch) of a row has its actions.
local function times_of(row)
  local times, stages, list = {}, {}, {}
  local t = 0
  for stage, op, micro in row:gmatch "(%d+)(%u)(%d+)" do
    t = t + 1
    if ("FRBIW"):find(op, 1, true) then
      local key = stage .. "." .. micro
      times[key] = times[key] or { stage = tonumber(stage) }
      times[key][op] = t
      if not stages[tonumber(stage)] then list[#list + 1] = tonumber(stage) end
      stages[tonumber(stage)] = true
    end
  end
  table.sort(list)
  return times, list, t
end

-- The most bytes of a plain walk: per stage of what lives from F on, of what F or R leaves, of what
-- of that I reads last, and of what I leaves.
local function most(row, bytes)
  local times, stages, count = times_of(row)
  local at, peak = {}, 0
  for k, stage in ipairs(stages) do at[stage] = 4 * (k - 1) end
  for t = 1, count do
    local sum = 0
    for _, own in pairs(times) do
      local first, last, head = at[own.stage], own.B or own.W, own.B or own.I
      local function add(from, to, k) if t >= from and t <= to then sum = sum + bytes[first + k] end end
      add(own.F, last, 1)
      add(own.R or own.F, last, 2)
      add(own.R or own.F, head, 3)
      if own.R then add(own.F, own.F, 2) add(own.F, own.F, 3) end
      if own.I then add(own.I, own.W, 4) end
    end
    peak = math.max(peak, sum)
  end
  return peak, #stages
end

local function fullest(rows, bytes)
  local peak = 0
  for _, row in ipairs(rows) do
    local sum = 0
    for k, count in ipairs(row) do sum = sum + count * bytes[k] end
    peak = math.max(peak, sum)
  end
  return peak
end

describe("the moments of a schedule", function()
  for _, name in ipairs(gp.schedule.names()) do
    local holds = JOINED[name] and function() end or it
    holds("are the fullest ones for any bytes: " .. name, function()
      local devices = name == "chimera" and 2 or DEVICES
      local made, s = pcall(gp.schedule.build, name, { devices = devices, chunks = CHUNKS })
      if not made then s = gp.schedule.build(name, { devices = 2, chunks = 4 }) end
      for _, word in ipairs { "never", "always" } do
        local lowered = s:lower { checkpoint = word, comms = false, update = "none" }
        for d, row in ipairs(lowered:rows()) do
          for seed = 1, 20 do
            local bytes = {}
            for k = 1, 64 do bytes[k] = (k * 37 * seed + seed * seed) % 11 end
            local peak = most(row, bytes)
            local found = fullest(lowered:moments(d - 1), bytes)
            assert.is_true(found <= peak and found >= 0.97 * peak, ("%s %s: device %d, %d of %d")
              :format(name, word, d - 1, found, peak))
          end
        end
      end
    end)
  end

  it("are those of what is on the device where the rest waits on the host", function()
    local s = gp.schedule.build("gpipe", { devices = 1, chunks = 8 })
    local rows, there = s:moments(0), s:moments(0, true)
    assert.same({ { 8, 8, 8, 0 } }, rows)
    assert.equal(1, #there)
    assert.equal(8, there[1][1])
    assert.is_true(there[1][2] <= 4)
  end)
end)
