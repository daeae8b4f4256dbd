-- lua/gpipe/ranks/limit.lua - how long a rank waits for the script of another one.
--
-- A rank whose script hangs is alive, so the others would wait for it for ever. The limit is that
-- of the watchdog: of the last pipeline with that option, else GPIPE_WATCHDOG, else the default.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local limit = {}

local DEFAULT = 300 -- seconds; no single action of a training step takes as long
local MOST = 1e9

--- The rule of options and arguments: seconds, or false for no limit.
limit.rule = { type = { "number", "boolean" }, min = 0, max = MOST }

local function from_environment(who)
  local text = os.getenv "GPIPE_WATCHDOG"
  if not text or text == "" then return DEFAULT end
  local seconds = tonumber(text)
  if not seconds or not (seconds >= 0 and seconds <= MOST) then
    errors.raise("%s: GPIPE_WATCHDOG is '%s', expected seconds (0: no watchdog)", who, text)
  end
  return seconds
end

--- The seconds of an option or argument; 0: no limit.
---@param who string
---@param value number|boolean|nil
---@return number
function limit.seconds(who, value)
  if value == nil then return from_environment(who) end
  if type(value) == "number" then return value end
  return value and DEFAULT or 0
end

local known = false

--- Let this rank wait so long from now on.
---@param seconds number 0: for ever
function limit.set(seconds)
  known = true
  core.rank_limit(seconds)
end

--- The same for the first call of a script that has made no pipeline.
function limit.begin()
  if not known then limit.set(from_environment "ranks") end
end

--- Let this rank wait so long until the result is closed.
---@param seconds number 0: for ever
---@return any
function limit.within(seconds)
  limit.begin()
  local before = core.rank_limit(seconds)
  return setmetatable({}, { __close = function() core.rank_limit(before) end })
end

return limit
