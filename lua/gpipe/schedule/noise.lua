-- lua/gpipe/schedule/noise.lua - the options that say how much times vary: `jitter`, `stragglers`,
-- `slow`, `seed`. The draws are made in runtime/schedule/simulate/noise.c.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local noise = {}

local deviation = { type = "number", min = 0, max = 10, default = 0 }

local JITTER = { action = deviation, travel = deviation }
local STRAGGLERS = {
  share = { type = "number", min = 0, max = 1, required = true },
  slowdown = { type = "number", min = 1, below = math.huge, required = true },
}

--- The options, for the specs of functions that take them.
noise.SPEC = {
  jitter = { type = { "number", "table" } },
  stragglers = { type = "table" },
  slow = { type = "table" },
  seed = { type = "integer", default = 1 },
}

local function jitter_of(who, given)
  if given == nil then return { action = 0, travel = 0 } end
  if type(given) == "number" then given = { action = given } end
  return options.check(who .. ": jitter", given, JITTER)
end

-- A factor for each device from {[device] = factor}, devices from 0.
local function slow_of(who, given, devices)
  if given == nil then return nil end
  local list = {}
  for d = 1, devices do list[d] = 1 end
  for device, factor in pairs(given) do
    if math.type(device) ~= "integer" or device < 0 or device >= devices then
      errors.raise("%s: slow[%s], expected devices from 0 to %d", who, errors.show(device),
        devices - 1)
    end
    if type(factor) ~= "number" or not (factor > 0 and factor < math.huge) then
      errors.raise("%s: slow[%d] is %s, expected how many times longer, a number above 0", who,
        device, errors.show(factor))
    end
    list[device + 1] = factor
  end
  return list
end

--- The noise that checked options ask for, as core.simulate takes it; nil where times do not vary.
---@param who string
---@param given table
---@param devices integer
---@return table?
function noise.of(who, given, devices)
  if not (given.jitter or given.stragglers or given.slow) then return nil end
  local jitter = jitter_of(who, given.jitter)
  local stragglers = given.stragglers
    and options.check(who .. ": stragglers", given.stragglers, STRAGGLERS)
  return {
    action = jitter.action, travel = jitter.travel, seed = given.seed,
    stragglers = stragglers and stragglers.share or 0,
    slowdown = stragglers and stragglers.slowdown or 1,
    slow = slow_of(who, given.slow, devices),
  }
end

return noise
