-- lua/gpipe/run_writer/resume.lua - `run:resume()`: begins a run, where its newest checkpoint left
-- off if there is one.

local contents = require "gpipe.run_writer.contents"
local dry = require "gpipe.run_writer.dry"
local errors = require "gpipe.errors"
local folder = require "gpipe.run_writer.folder"
local follower = require "gpipe.run_writer.follower"
local json = require "gpipe.io.json"
local progress = require "gpipe.progress"
local standing = require "gpipe.run_writer.standing"

local function say(run, format, ...)
  if run.quiet then return end
  progress.say(("gpipe: %s: " .. format):format(run.folder, ...))
end

-- Warn on standard error; a quiet run warns too.
local function warn(run, format, ...)
  progress.say(("gpipe: %s: " .. format):format(run.folder, ...))
end

-- config.json stays as it was first written; report where this process has other settings.
local function note_config(run)
  local old = folder.read(run.folder, "config.json")
  if not old or type(old.config) ~= "table" then
    local own = folder.describe(run.name, run.config)
    run.created = own.created
    assert(folder.write(run.folder, "config.json", own))
    return
  end
  run.created = old.created
  local changes = folder.differences(old.config, run.config)
  if #changes > 0 then warn(run, "started with other settings: %s", table.concat(changes, ", ")) end
end

local function start(run, lengths)
  run.status = "running"
  if run.follows then return end
  note_config(run)
  local warning = run.records:open(run.step, lengths)
  if run.step == 0 then run.records:describe(json.encode(run.config)) end
  if warning then warn(run, "%s", warning) end
  standing.write_state(run)
end

-- Over ranks, all load the checkpoint that rank 0 finds.
local function load(run)
  if run.shared and not run.follows then return follower.load_first(run.saves, run.parts) end
  return run.saves:load(run.parts)
end

--- What run:resume does.
---@param run gpipe.Run
---@return integer step the last one that is over
return function(run)
  standing.check_open(run, "run:resume")
  if run.status ~= "new" then return run.step end
  if run.dry and not run.iterates then dry.from_data(run) end
  run.status = "running"
  if not run.folder then return 0 end
  local extra, step
  if run.saves then extra, step = load(run) end
  if not extra and run.must_resume then
    errors.raise("gp.run: %s has no checkpoint to resume from", run.folder)
  end
  if extra and (type(extra.run) ~= "table" or type(extra.parts) ~= "table") then
    errors.raise("gp.run: the checkpoint of step %d in %s was not saved by gp.run", step,
      run.folder)
  end
  start(run, extra and contents.restore(run, extra, step))
  if extra then follower.note_checkpoint(run) end
  if extra then say(run, "goes on after step %d", step) end
  return run.step
end
