-- lua/gpipe/sweep/run/init.lua - how the trials of a sweep are run.

local here = require "gpipe.sweep.run.here"
local live = require "gpipe.sweep.run.live"

local run = {}

--- Run what is left of a sweep.
---@param sweep gpipe.Sweep
---@param f function
function run.run(sweep, f)
  local view <close> = live.new(sweep)
  here.run(sweep, f, true, function(row) view:see(row) end)
end

return run
