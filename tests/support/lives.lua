-- tests/support/lives.lua - what the devices of a schedule hold, as one line of text.
--
-- Peaks of activations, slots, versions of the weights and bytes of every published schedule: a
-- golden file (tests/golden/lives.lua) keeps digests of these lines as the program of commit
-- fc035c4 wrote them, before lifetimes were found in one place.
local gp = require "gpipe"

local lives = {}

lives.DEVICES, lives.MICROS = { 1, 2, 3, 4, 8 }, 16
lives.REMAT = { "as written", "always", "except_last" }

local function joined(list, first, last)
  local texts = {}
  for i = first, last do
    local value = list[i]
    texts[#texts + 1] = type(value) == "table" and "(" .. joined(value, 1, #value) .. ")"
      or tostring(value)
  end
  return table.concat(texts, " ")
end

local function by_stage(schedule, list) return joined(list, 0, schedule.stages - 1) end

local function slots_of(schedule)
  local texts, slots = {}, schedule:slots()
  for stage = 0, schedule.stages - 1 do
    local own, sum = slots[stage], 0
    for micro = 0, #own do sum = (sum * 31 + own[micro]) % 2 ^ 31 end
    local count = type(own.count) == "table" and joined(own.count, 1, #own.count) or own.count
    texts[#texts + 1] = ("%s:%d"):format(count, sum // 1 | 0)
  end
  return table.concat(texts, " ")
end

-- Bytes of stages that differ, part of which W does not read.
local function simulated(schedule)
  local all, after = {}, {}
  for s = 1, schedule.stages do all[s], after[s] = 16 + 4 * s, 4 + 2 * s end
  local run = schedule:simulate { F = 1, B = 2,
    memory = { activation = all, after_input = after } }
  return ("%s / %s"):format(joined(run.peak_live, 1, #run.peak_live),
    joined(run.peak_bytes, 1, #run.peak_bytes))
end

--- The line of a schedule; nil where it is not defined for so many devices and micro-batches.
---@param name string
---@param devices integer
---@param micros integer
---@param remat string how much is recomputed, of lives.REMAT
---@return string?
function lives.line(name, devices, micros, remat)
  local good, schedule = pcall(gp.schedule.build, name, { devices = devices, chunks = micros })
  if not good then return nil end
  if remat ~= "as written" then
    local lowered
    good, lowered = pcall(function() return schedule:lower { checkpoint = remat, comms = false } end)
    if not good then return nil end
    schedule = lowered
  end
  local peaks = schedule:peak_live()
  return table.concat({ joined(peaks.devices, 1, #peaks.devices), by_stage(schedule, peaks.stages),
    slots_of(schedule), by_stage(schedule, schedule:versions()), simulated(schedule) }, " | ")
end

-- FNV-1a in 32 bits.
local function digest(text)
  local hash = 2166136261
  for i = 1, #text do hash = (hash ~ text:byte(i)) * 16777619 & 0xffffffff end
  return ("%08x"):format(hash)
end

--- Digests of the lines for 1, 2, ... MICROS micro-batches; dashes where there is none.
---@return string
function lives.digests(name, devices, remat)
  local list = {}
  for micros = 1, lives.MICROS do
    local line = lives.line(name, devices, micros, remat)
    list[micros] = line and digest(line) or "-"
  end
  return table.concat(list, " ")
end

return lives
