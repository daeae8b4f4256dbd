-- lua/gpipe/sweep/run/init.lua - choose how the trials of a sweep are run: in this process, in
-- child processes, or, if this is such a child, until none is left. Ranks of a job run them
-- together.

local apart = require "gpipe.sweep.run.apart"
local here = require "gpipe.sweep.run.here"
local live = require "gpipe.sweep.run.live"
local together = require "gpipe.sweep.run.together"

local run = {}

local working = false

-- Work as a child of a sweep: the script runs up to this sweep, and no further. Sweeps inside of
-- its trials are run as usual.
local function work(sweep, f)
  working = true
  if together.follows() then
    together.follow(sweep, f)
    os.exit(0, true)
  end
  local view <close> = live.new(sweep)
  here.run(sweep, f, true, function(row) view:see(row) end)
  os.exit(0, true)
end

--- Run the trials of a sweep that are left.
---@param sweep gpipe.Sweep
---@param f function
function run.run(sweep, f)
  local file = os.getenv "GPIPE_SWEEP_WORKER"
  if file == sweep.path and not working then return work(sweep, f) end
  if file and file ~= "" and not working then return end -- this child works for another sweep
  if together.follows() then return together.follow(sweep, f) end
  local view <close> = live.new(sweep)
  local function see(row) view:see(row) end
  if together.is_on() then return here.run(sweep, f, true, see) end
  if sweep.options.parallel > 1 or sweep.options.ranks > 1 then return apart.run(sweep, see) end
  here.run(sweep, f, true, see)
end

return run
