-- lua/gpipe/pipeline/watchdog.lua - how long a pass may make no progress, and where its post-mortem
-- is printed.
--
-- The runtime prints nothing: it passes the text to this module before it raises the short form as
-- an error. Over ranks all of them raise it, and the texts become one.

local core = require "gpipe.core"
local limit = require "gpipe.ranks.limit"
local post_mortem = require "gpipe.ranks.post_mortem"

local watchdog = {}

--- The rule of the option: seconds, or false for none.
watchdog.rule = limit.rule

--- Seconds without progress after which a pass is given up; 0: never. Where the script sets them,
--- they are also the limit for ranks whose script does not come to a call.
---@param who string
---@param option number|boolean|nil
---@return number
function watchdog.seconds(who, option)
  local seconds = limit.seconds(who, option)
  if option ~= nil then limit.set(seconds) end -- profiles make pipelines of their own
  return seconds
end

core.hook("post_mortem", function(text)
  io.stderr:write("gpipe: ", post_mortem.gather(text))
end)

return watchdog
