-- lua/gpipe/ranks/call.lua - what the script has called, so that other ranks can be told.
--
-- Ranks compare the calls that they make together under names of ours (`what`). Where they part,
-- people are shown what each script has called, and in which line.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local call = {}

local MOST = 35 -- characters of a position that other ranks are told (gp_rank_place)

local is_inside = false -- a call of the script is under way: those that it makes are ours
local several -- has the job several ranks?

local leave = setmetatable({}, {
  __close = function()
    is_inside = false
    core.rank_call("", "")
  end,
})

-- The script's line without its folder, "" where no script calls.
local function position()
  local level = errors.level()
  local info = level > 0 and debug.getinfo(level, "Sl")
  if not info then return "" end
  return (("%s:%d"):format(info.short_src:match "[^/]*$", info.currentline)):sub(-MOST)
end

--- Say what the script has called, until the result is closed. Within another such call, and
--- without a job, nothing is said.
--- ```lua
--- local _ <close> = require("gpipe.ranks.call").enter "gp.plan"
--- ```
---@param name string at most 27 bytes
---@return any closed at the end of the call
function call.enter(name)
  if several == nil then several = core.rank_info().count > 1 end
  if is_inside or not several then return nil end
  is_inside = true
  core.rank_call(name, position())
  return leave
end

return call
