-- lua/gpipe/run_writer/contents.lua - what the checkpoints of a run carry beside model, optimizer
-- and data.

local errors = require "gpipe.errors"
local measure = require "gpipe.run_writer.measure"

local contents = {}

-- What a checkpoint carries beside the parts.
local function extra_of(run)
  local states, names = {}, {}
  for name in pairs(run.state) do names[#names + 1] = name end
  table.sort(names) -- in a job, parts bring what other ranks hold: all ranks need the same order
  for _, name in ipairs(names) do states[name] = run.state[name]:state() end
  return {
    run = {
      step = run.step, seconds = measure.seconds(run),
      lengths = run.records and run.records:lengths(), best_of = run.best_of,
      best_last = run.best_last, loss = run.loss, val = run.val,
      watcher = run.watcher:state(),
    },
    parts = states, script = run.extra,
  }
end

local function check_parts(run, extra)
  for name in pairs(run.state) do
    if extra.parts[name] == nil then
      errors.raise("gp.run: the checkpoint of step %d has no state of '%s'", extra.run.step, name)
    end
  end
end

--- Set the run to what a checkpoint says.
---@param run gpipe.Run
---@param extra table
---@param step integer
---@return integer[] lengths of the records
function contents.restore(run, extra, step)
  local own = extra.run
  check_parts(run, extra)
  for name, part in pairs(run.state) do part:restore(extra.parts[name]) end
  run.step, run.saved, run.spent = step, step, own.seconds
  run.loss, run.val = own.loss, own.val
  run.watcher:restore(own.watcher)
  run.best_of, run.best_last = own.best_of, own.best_last
  run.extra = extra.script
  return own.lengths
end

--- The options of gp.checkpoint.save for the run as it stands.
--- Errors: raises where there is nothing to save.
---@param run gpipe.Run
---@param who string
---@return table
function contents.of(run, who)
  if not run.saves then
    errors.raise("%s: %s", who, run.folder and "gp.run has no 'pipe' or 'model' to save"
      or "the run has no folder")
  end
  local parts = { extra = extra_of(run) }
  for name, part in pairs(run.parts) do parts[name] = part end
  return parts
end

return contents
