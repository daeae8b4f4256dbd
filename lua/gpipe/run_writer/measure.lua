-- lua/gpipe/run_writer/measure.lua - how fast the steps of a run are and what memory they take, for
-- timing.jsonl, state.json and the line of progress.

local core = require "gpipe.core"
local object = require "gpipe.pipeline.object"
local progress = require "gpipe.progress"

local measure = {}

--- Seconds that the run has taken, summed over all its processes.
---@param run gpipe.Run
---@return number
function measure.seconds(run) return run.spent + core.seconds() - run.started end

-- The statistics of the last step. Where steps overlap (asynchronous schedules, no barrier) there
-- are none: reading them would wait for the steps under way.
local function stats_of(pipe)
  if not pipe then return nil end
  local inner = object.inside(pipe)
  return not (inner.asynchronous or inner.free) and pipe.stats or nil
end

--- Measure a step that has ended.
---@param run gpipe.Run
---@param count? integer rows
---@return table fields of a record of timing.jsonl
function measure.step(run, count)
  local now = core.seconds()
  local since = run.measured_at or run.began or run.started
  run.measured_at = now
  local stats = stats_of(run.parts.pipe)
  local rate = count and now > since and count / (now - since) or nil
  if rate then run.rate = run.rate and 0.9 * run.rate + 0.1 * rate or rate end
  return {
    time = os.time(), seconds = measure.seconds(run), rate = rate,
    bubble = progress.bubble(stats or {}), memory = stats and stats.peak_bytes,
  }
end

--- Show the line of progress.
---@param run gpipe.Run
---@param step integer
---@param measured table of measure.step
function measure.show(run, step, measured)
  if run.quiet then return end
  run.line = run.line or progress.new { steps = run.total, unit = run.unit }
  run.line:update(step, {
    loss = run.loss, val = run.val, lr = run.parts.opt and run.parts.opt.lr, rate = run.rate,
    bubble = measured.bubble, memory = measured.memory,
  })
end

--- Remember the values that the line of progress shows: the loss, and measures on held-out data.
---@param run gpipe.Run
---@param values table<string, any>
function measure.remember(run, values)
  if type(values.loss) == "number" then run.loss = values.loss end
  for name, value in pairs(values) do
    if name:find "^val" and type(value) == "number" then run.val = value end
  end
end

local MOST_SAID = 3

--- Warn that the loss is not finite or jumps, the first few times.
---@param run gpipe.Run
---@param step integer
function measure.watch(run, step)
  local trouble = run.watcher:update(step, run.loss)
  if not trouble or run.said >= MOST_SAID then return end
  run.said = run.said + 1
  progress.say(("gpipe: %s: %s%s"):format(run.folder or run.name, tostring(trouble),
    run.said == MOST_SAID and " (more are not said)" or ""))
end

return measure
