-- lua/gpipe/sweep/run/init.lua - how the trials of a sweep are run: here, in processes of their
-- own, or, in such a process, until none is left.

local apart = require "gpipe.sweep.run.apart"
local here = require "gpipe.sweep.run.here"
local live = require "gpipe.sweep.run.live"

local run = {}

local working = false

-- A process that a sweep started runs the script up to this sweep, and no further. Sweeps inside of
-- its trials are none of the script's.
local function work(sweep, f)
  working = true
  local view <close> = live.new(sweep)
  here.run(sweep, f, true, function(row) view:see(row) end)
  os.exit(0, true)
end

--- Run what is left of a sweep.
---@param sweep gpipe.Sweep
---@param f function
function run.run(sweep, f)
  local file = os.getenv "GPIPE_SWEEP_WORKER"
  if file == sweep.path and not working then return work(sweep, f) end
  if file and file ~= "" and not working then return end -- another one of the script is its own
  local view <close> = live.new(sweep)
  local function see(row) view:see(row) end
  if sweep.options.parallel > 1 then return apart.run(sweep, see) end
  here.run(sweep, f, true, see)
end

return run
