-- lua/gpipe/run_writer/standing.lua - where a run stands: what its methods check first, and
-- state.json, which tells others.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local folder = require "gpipe.run_writer.folder"
local measure = require "gpipe.run_writer.measure"
local object = require "gpipe.pipeline.object"
local passes = require "gpipe.pipeline.passes"

local standing = {}

--- Write state.json; only rank 0 does.
---@param run gpipe.Run
---@param reason? string why the run ended
function standing.write_state(run, reason)
  if not run.folder or run.follows then return end
  local pid, host = core.process()
  run.state_at = core.seconds()
  local loss = run.loss
  if loss and (loss ~= loss or math.abs(loss) == math.huge) then loss = nil end
  folder.write(run.folder, "state.json", {
    state = run.status, step = run.step, steps = run.total, created = run.created,
    updated = os.time(), seconds = measure.seconds(run), pid = pid, host = host, loss = loss,
    best = run.best_last, rate = run.rate, unit = run.rate and run.unit .. "/s", reason = reason,
  })
end

--- Check that the run is not closed.
---@param run gpipe.Run
---@param who string the method, for the error's text
function standing.check_open(run, who)
  if not run.closed then return end
  errors.raise("%s: the run is %s, expected one that is open", who, run.status)
end

--- The number of training passes that the run's pipeline was asked for.
---@param run gpipe.Run
---@return integer
function standing.trained(run)
  local pipe = run.parts.pipe
  return pipe and passes.count(object.inside(pipe)) or 0
end

--- The step that is under way, or the last one. In a loop of the script's own there is no begin of
--- a step: if the pipeline has trained since the last record, the next step is under way.
---@param run gpipe.Run
---@return integer
function standing.current(run)
  if run.under_way then return run.under_way end
  return standing.trained(run) > run.trained and run.step + 1 or run.step
end

--- Begin the run before its first write to the folder, but never over the files of another run.
---@param run gpipe.Run
---@param who string
function standing.begin(run, who)
  standing.check_open(run, who)
  if run.dry then run:resume() end
  if run.status ~= "new" or not run.folder then return end
  if run.before then
    errors.raise("%s: %s holds a run at step %s, expected run:resume() first, or another name", who,
      run.folder, errors.show(run.before.step))
  end
  run:resume()
end

--- Check a step that a script names, and begin the run if this is its first.
---@param run gpipe.Run
---@param who string
---@param step any
function standing.check_step(run, who, step)
  if math.type(step) ~= "integer" or step < 1 then
    errors.raise("%s: step is %s, expected an integer >= 1", who, errors.show(step))
  end
  standing.begin(run, who)
  if step < run.step then
    errors.raise("%s: step %d comes after step %d, expected steps in order", who, step, run.step)
  end
end

return standing
