-- lua/gpipe/pipeline/state.lua - the methods of a pipeline for what training has made: parameters,
-- buffers, counters, the loss scale.

local checks = require "gpipe.pipeline.checks"
local nn_state = require "gpipe.nn.state"
local precision = require "gpipe.pipeline.plan.precision"
local progress = require "gpipe.pipeline.progress"
local stream = require "gpipe.pipeline.stream"

---@class gpipe.Pipeline
local methods = {}

-- The entry of model:parameters() with the stage that owns it.
local function with_stage(pipe, entry)
  rawset(entry, "stage", pipe.stage_of[(pipe.layer_of[entry.param] or 0) + 1])
  return entry
end

--- A list of {name, value, grad, stage} in the order of model:parameters(); pattern filters names.
---@param pattern? string
---@return table[]
function methods:parameters(pattern)
  local list = self.model:parameters(pattern)
  for i, entry in ipairs(list) do list[i] = with_stage(self, entry) end
  return list
end

--- Copies of all parameters and buffers by name: model:state_dict(), after running work has
--- finished.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {})
--- assert(pipe:state_dict()["1.weight"].shape[1] == 2)
--- ```
---@return table<string, gpipe.Tensor>
function methods:state_dict()
  if self.core then stream.settle(self) end
  return self.model:state_dict()
end

--- Copy named tensors into the parameters and buffers of that name, from whatever cut they come.
--- Optimizer state stays.
--- Errors: one text names all faults (missing, unexpected, wrong shape or dtype); nothing is
--- changed.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {})
--- pipe:load_state_dict(pipe:state_dict())
--- ```
---@param t table<string, gpipe.Tensor>
---@param opts? {strict?: boolean} false: names that only one side has are skipped
---@return gpipe.Pipeline self
function methods:load_state_dict(t, opts)
  checks.quiet(self, "load_state_dict")
  nn_state.set(self.model, t, opts)
  self.core:mend()
  return self
end

--- The counters that a checkpoint holds beside state_dict() and opt:state_dict(): a plain table of
--- numbers. With all three, training continues with the same bits as if it had never stopped.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2), nn.Dropout(0.1)}
--- local pipe <close> = gp.pipeline(model, {loss = nn.MSELoss()})
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
--- assert(pipe:progress().steps == 1)
--- ```
---@return gpipe.Progress
function methods:progress()
  checks.quiet(self, "progress")
  return progress.get(self)
end

--- Restore what progress() returned, for example in an earlier run.
--- Errors: unknown fields, numbers out of range, a loss scale if the precision has none; nothing is
--- set then.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- pipe:load_progress {steps = 1000}
--- ```
---@param t gpipe.Progress
---@return gpipe.Pipeline self
function methods:load_progress(t)
  checks.quiet(self, "load_progress")
  progress.set(self, t)
  return self
end

--- The current loss scale of a pipeline in f16, nil in other precisions. Given a table, it first
--- sets these fields. It belongs in a checkpoint, beside state_dict() and opt:state_dict().
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- assert(pipe:loss_scale() == nil)
--- ```
---@param values? gpipe.LossScale any of its fields
---@return gpipe.LossScale?
function methods:loss_scale(values)
  checks.quiet(self, "loss_scale")
  return precision.loss_scale(self.core, values)
end

return methods
