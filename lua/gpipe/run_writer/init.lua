-- lua/gpipe/run_writer/init.lua - `gp.run`: a training run that can be left alone, and its folder.
--
-- The script has the loop. A run has the rest: the folder (folder.lua), the records (records.lua),
-- the checkpoints (saves.lua, contents.lua), the end by a signal or by the time (ending.lua), and
-- the line of progress (measure.lua).

local core = require "gpipe.core"
local best = require "gpipe.run_writer.best"
local contents = require "gpipe.run_writer.contents"
local dry = require "gpipe.run_writer.dry"
local divergence = require "gpipe.train.divergence"
local ending = require "gpipe.run_writer.ending"
local errors = require "gpipe.errors"
local folder = require "gpipe.run_writer.folder"
local follower = require "gpipe.run_writer.follower"
local measure = require "gpipe.run_writer.measure"
local memory = require "gpipe.run_writer.memory"
local options = require "gpipe.options"
local output = require "gpipe.run_writer.output"
local ranks = require "gpipe.ranks"
local records = require "gpipe.run_writer.records"
local resume = require "gpipe.run_writer.resume"
local run_options = require "gpipe.run_writer.options"
local saves = require "gpipe.run_writer.saves"
local standing = require "gpipe.run_writer.standing"
local steps = require "gpipe.run_writer.steps"

local PAUSE = 2 -- seconds between two writes of state.json

local open = setmetatable({}, { __mode = "k" }) ---@type table<gpipe.Run, true> those with a folder

---@class gpipe.Run
---@field name string
---@field folder string? nil where nothing is kept
---@field step integer the last one that is over
---@field total integer? steps in all, where that is known
---@field extra table what the script wants to find again after a resume
---@field over string? why the loop should end, where there is no folder to go on from
local Run = { __name = "gpipe.Run" }
Run.__index = Run

-- ---- making one --------------------------------------------------------------------------------

local function open_folder(run, opts)
  run.folder = opts.path or folder.path(run.name, opts.dir)
  if opts.resume and not folder.read(run.folder, "config.json") then
    errors.raise("gp.run: %s has no checkpoint to resume from: it is no folder of a run, expected "
      .. "one (a new run starts without --resume)", run.folder)
  end
  run.name = run.folder:match "([^/]+)/*$" or run.name -- tells the runs of one script apart
  if run.follows then
    run.saves = follower.saves(run.folder)
    ending.listen(true)
    return
  end
  run.lock = folder.hold(run.folder)
  run.records = records.new(run.folder)
  if opts.pipe or opts.model then run.saves = saves.new(run.folder, opts.keep) end
  run.before = folder.read(run.folder, "state.json") -- where an earlier process left it
  run.copy = output.open(run.folder .. "/stdout.txt")
  open[run] = true
  ending.listen(true)
end

--- Open a training run with a folder of its own: it can be stopped at any moment and resumes with
--- the same bits.
---
--- The folder is `dir/name` (a name with a slash is a path). It gets config.json, log.jsonl,
--- timing.jsonl, state.json, stdout.txt, TensorBoard events and checkpoints; docs/training.md
--- describes them. A checkpoint holds `pipe` (or `model`), `opt`, `data` (batches, or
--- gp.data.epochs) and `state` (named objects with state() and restore(), such as those of
--- gp.train). One is saved in the background after each `every` steps (0: only at the end); the
--- newest `keep` of them stay.
---
--- SIGTERM, SIGHUP, SIGUSR1, Ctrl-C and the end of `minutes` end the process after the step, with a
--- checkpoint and exit code 75; the same command then resumes. `flags` takes --run-dir, --resume,
--- --minutes and --dry-run of gpipe.flags; without --run-dir nothing is written.
---
--- Errors: raises where another process trains in the folder, or the system refuses.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local pipe <close> = gp.pipeline(model, {loss = nn.MSELoss()})
--- local opt = gp.optim.AdamW(pipe:parameters(), {lr = 1e-2})
--- local data = gp.data.epochs(gp.data.tensors(gp.ones{8, 4}, gp.ones{8, 2}), {batch = 4})
--- local dir = os.tmpname()
--- os.remove(dir)
--- local run <close> = gp.run("first", {
---   dir = dir, pipe = pipe, opt = opt, data = data, steps = 4, quiet = true,
--- })
--- for step, x, y in run:steps() do
---   local loss = pipe:step(x, y)
---   opt:step()
---   run:log(step, {loss = loss})
--- end
--- run:finish()
--- ```
---@param name string
---@param opts? table
---@return gpipe.Run
local function new(name, opts)
  opts = run_options.check(name, opts)
  local run = setmetatable({
    name = name, config = opts.config or {}, total = opts.steps, step = 0, extra = {}, best_of = {},
    parts = run_options.parts_of(opts), state = opts.state, data = opts.data, every = opts.every,
    background = opts.background, must_resume = opts.resume, unit = opts.unit, quiet = opts.quiet,
    dry = opts.dry, started = core.seconds(), spent = 0, saved = 0, saving = 0, status = "new",
    watcher = divergence.new { z = 10, factor = 2 }, said = 0, trained = 0,
  }, Run)
  run.shared = follower.is_shared(opts.pipe)
  run.follows = run.shared and ranks.rank() > 0
  if run.shared then follower.note(run, true) end
  run.quiet = run.quiet or run.follows -- rank 0 shows the progress
  run.deadline = opts.minutes and run.started + 60 * opts.minutes
  if not opts.nowhere then open_folder(run, opts) end
  return run
end

-- ---- going on ----------------------------------------------------------------------------------

--- Resume from the newest complete checkpoint: model, optimizer, random streams, place in the data,
--- records and `run.extra` are then as they were when it was saved. run:steps calls this.
--- Errors: raises where a checkpoint does not fit; a damaged one is named and an older one is
--- taken.
---@return integer step the last one that is over; 0 for a new run
function Run:resume() return resume(self) end

-- ---- a step ------------------------------------------------------------------------------------

-- Rows of a batch: those of its first tensor.
local function rows_of(x)
  if type(x) == "table" and getmetatable(x) == nil then x = x[1] end
  local good, count = pcall(function() return x.shape[1] end)
  return good and count or nil
end

--- Iterate over the steps that are left: `for step, x, y in run:steps() do`, each with a batch of
--- `data`. It resumes first; between two steps it saves checkpoints and checks signals and the
--- time. The loop ends with the data, with step `total`, or on break.
---@param total? integer default: option `steps`, else those of the data
---@return fun(): integer?, any, any
function Run:steps(total) return steps(self, total) end

--- Note a batch that run:steps gives; a dry run ends here.
---@param step integer
---@param x any
---@param y any
function Run:begin_step(step, x, y)
  if self.dry then dry.leave(self, x, y) end
  self.began, self.under_way = core.seconds(), step
  self.count, self.batch = rows_of(x), { x, y }
end

--- Write a record: values by name, numbers or scalar tensors. In a loop without run:steps this also
--- ends the step: checkpoints are saved here, and a stopped run ends. So call it once a step, last.
--- Errors: raises for steps out of order and for values of other types.
---@param step integer from 1
---@param values table<string, any>
---@param count? integer rows (or what `unit` says) of this step; run:steps knows those of its batch
---@return string? over why the loop should end, where nothing is kept
function Run:log(step, values, count)
  standing.check_step(self, "run:log", step)
  if type(values) ~= "table" then
    errors.raise("run:log: values is %s, expected a table", errors.show(values))
  end
  values = records.values(values)
  measure.remember(self, values)
  local new_step = step > self.step
  self.step, self.trained = step, standing.trained(self)
  local measured = measure.step(self, count or new_step and self.count or nil)
  if self.records then
    self.records:log(step, values)
    if new_step then self.records:time(step, measured) end
  end
  if new_step and type(values.loss) == "number" then measure.watch(self, step) end
  measure.show(self, step, measured)
  if not self.iterates then self:end_step(step) end
  return self.over
end

local function stop(run, reason)
  if not run.folder then
    run.over = reason
    return
  end
  if run.saves and run.step > run.saved then run:checkpoint(run.step, { background = false }) end
  run.status = "stopped"
  run:close(reason)
  ending.leave(("%s: stopped after step %d: %s; %s"):format(run.folder, run.step, reason,
    run.saves and "saved, the same command goes on" or "nothing was saved"))
end

--- End a step: save a checkpoint if one is due, and end the run if it was asked to. run:steps and
--- run:log call it.
---@param step integer
function Run:end_step(step)
  self.step, self.under_way = math.max(step, self.step), nil
  local took = self.ended_at and core.seconds() - self.ended_at or 0
  self.ended_at = core.seconds()
  local reason = ending.reason(self.deadline, took + self.saving)
  if self.shared then reason = follower.reason(reason) end
  if reason then stop(self, reason) end
  if not self.folder then return end
  if self.saves then
    self.saves:settle()
    if self.every > 0 and step // self.every > self.saved // self.every then
      self:checkpoint(step)
    end
    follower.note_checkpoint(self)
  end
  if core.seconds() - (self.state_at or 0) >= PAUSE then standing.write_state(self) end
end

-- ---- checkpoints -------------------------------------------------------------------------------

--- Save a checkpoint of this step now.
--- Errors: raises when three in a row could not be saved; a single failure is reported on standard
--- error, and the next checkpoint is the next try.
---@param step integer
---@param opts? {background?: boolean} default: as gp.run was told
---@return boolean? true
function Run:checkpoint(step, opts)
  standing.check_open(self, "run:checkpoint")
  if not self.folder then return nil end
  standing.check_step(self, "run:checkpoint", step)
  opts = options.check("run:checkpoint", opts, { background = { type = "boolean",
    default = self.background } })
  self.step = step
  local began = core.seconds()
  local good = self.saves and self.saves:save(step, contents.of(self, "run:checkpoint"),
    opts.background)
  self.saving = math.max(self.saving, core.seconds() - began)
  if good then self.saved = step end
  return good
end

--- Note a measure of the model. If it is the best so far, a checkpoint is saved in
--- checkpoints/best-NAME.
--- ```lua
--- local run = gp.run("none", {flags = {}})
--- assert(run:best("val_loss", 2) and not run:best("val_loss", 3))
--- ```
---@param name string
---@param value number
---@param mode? "min"|"max" what is better; default "min"
---@return boolean better
function Run:best(name, value, mode) return best(self, name, value, mode) end

-- ---- the end -----------------------------------------------------------------------------------

-- Draw the last step. A drawing that fails does not fail the run. Over ranks all of them tell rank
-- 0 what their devices did, which they can only where all of them end here: not after a failure.
local function draw(run)
  local pipe = run.parts.pipe
  if not pipe or not run.folder or run.shared and run.failed then return end
  pcall(function() pipe:svg(run.folder .. "/timeline.svg") end)
  local good, held = pcall(memory.compare, pipe, run.parts.opt,
    table.unpack(run.batch or {}))
  if good and not run.follows then folder.write(run.folder, "memory.json", held) end
end

--- Write the final state and release the folder.
---@param reason? string
function Run:close(reason)
  if self.closed then return end
  self.closed = true
  if not self.failed then follower.note(self, false) end
  if self.line then self.line:finish() end
  if not self.folder then return end
  if self.saves then self.saves:settle(true) end
  ending.listen(false)
  draw(self)
  if self.follows then return end
  standing.write_state(self, reason)
  output.close(self.copy)
  self.records:close()
  self.lock:free()
end

--- Seconds that the run has taken, summed over all its processes.
---@return number
function Run:elapsed() return measure.seconds(self) end

--- Finish the run: save its last checkpoint and close its folder.
function Run:finish()
  if self.closed then return end
  if self.saves and self.step > self.saved then
    self:checkpoint(self.step, { background = false })
  end
  self.status = "finished"
  self:close()
end

-- The scope of the run ends: after an error, or in a script that did not call run:finish(). A run
-- that has lost a rank and can go on has only been stopped.
function Run:__close(failure)
  if self.closed then return end
  self.failed = failure ~= nil
  self.status = self.failed and not follower.to_go_on() and "failed" or "stopped"
  self:close(failure ~= nil and tostring(failure) or "the script ended without run:finish()")
end

function Run:__gc()
  if not self.closed and self.status == "running" then Run.__close(self) end
end

-- A script that fails marks its open runs as failed, whether or not they are `<close>` variables.
-- Where a rank was lost, the exit code asks to start the job again if there is a checkpoint.
core.hook("failed", function(text)
  local again = follower.goes_on()
  for run in pairs(open) do
    if run.status == "running" then Run.__close(run, text) end
  end
  return again and ending.AGAIN or nil
end)

function Run:__tostring()
  return ("run %s: step %d%s, %s%s"):format(self.name, self.step,
    self.total and " of " .. self.total or "", self.status,
    self.folder and ", in " .. self.folder or "")
end

return new
