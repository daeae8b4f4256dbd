-- lua/gpipe/pipeline/watchdog.lua - how long a pass may make no progress, and where its post-mortem
-- is printed.
--
-- The runtime prints nothing: it passes the text to this module before it raises the short form as
-- an error. Over ranks all of them raise it, and the texts become one.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local post_mortem = require "gpipe.ranks.post_mortem"

local watchdog = {}

local DEFAULT = 300 -- seconds; no single action of a training step takes as long
local MOST = 1e9

--- The rule of the option: seconds, or false for none.
watchdog.rule = { type = { "number", "boolean" }, min = 0, max = MOST }

-- Read the environment, for scripts that do not set the option.
local function from_environment(who)
  local text = os.getenv "GPIPE_WATCHDOG"
  if not text or text == "" then return DEFAULT end
  local seconds = tonumber(text)
  if not seconds or not (seconds >= 0 and seconds <= MOST) then
    errors.raise("%s: GPIPE_WATCHDOG is '%s', expected seconds (0: no watchdog)", who, text)
  end
  return seconds
end

--- Seconds without progress after which a pass is given up; 0: never.
---@param who string
---@param option number|boolean|nil
---@return number
function watchdog.seconds(who, option)
  if option == nil then return from_environment(who) end
  if type(option) == "number" then return option end
  return option and DEFAULT or 0
end

core.hook("post_mortem", function(text)
  io.stderr:write("gpipe: ", post_mortem.gather(text))
end)

return watchdog
