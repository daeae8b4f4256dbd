-- lua/gpipe/run_writer/dry.lua - --dry-run: print what a step would take on each device, and train
-- nothing.
--
-- run:steps knows the first batch. A script with its own loop gets its batches elsewhere: then the
-- first batch of the run's `data` is taken. Without `data` the run ends with an error before
-- anything is trained or written.

local dry_mode = require "gpipe.dry_mode"
local errors = require "gpipe.errors"
local memory = require "gpipe.run_writer.memory"

local dry = {}

--- Print what a step with this batch would take, and end the program.
---@param run gpipe.Run
---@param x any
---@param y any
function dry.leave(run, x, y)
  if dry_mode.is_on() and run.parts.pipe then run.parts.pipe:step(x, y) end -- prints, and ends
  print(memory.plan(run.parts.pipe, run.parts.opt, x, y))
  os.exit(0, true)
end

--- Do the same with the first batch of the run's data.
--- Errors: the run has no pipeline or no data.
---@param run gpipe.Run
function dry.from_data(run)
  if not (run.parts.pipe and run.data) then
    errors.raise("gp.run: --dry-run needs a batch to plan for, expected %s in gp.run's options or "
      .. "a loop over run:steps() (nothing was trained)",
      run.parts.pipe and "`data`" or "`pipe` and `data`")
  end
  local next_batch = type(run.data.next) == "function" and run.data.next or run.data
  dry.leave(run, next_batch(run.data))
end

return dry
