-- lua/gpipe/train/accumulate.lua - `gp.train.accumulate`: one update for several mini-batches.
--
-- pipe:step adds up the gradients of each mini-batch's mean loss. After the last one they are
-- divided by the number of mini-batches, so they become those of the mean over all rows. Division
-- by a power of two does not round, and micro-batches are added in their order, so the bits are
-- those of one batch with all rows, cut into the same micro-batches.

local errors = require "gpipe.errors"
local options = require "gpipe.options"
local parameters = require "gpipe.train.parameters"
local part = require "gpipe.train.part"
local shared = require "gpipe.ranks.state"

---@class gpipe.Accumulate
---@field count integer mini-batches since the last update
local methods = {}

local new = part.class {
  who = "gp.train.accumulate", methods = methods, call = "step", fields = {},
}

-- Call fn for each gradient that this rank holds, on the gradient's device.
local function each_gradient(acc, fn)
  for _, entry in ipairs(acc.entries) do
    local grad = entry.grad
    if grad then fn(entry.name, grad) end
  end
end

--- Run forward and backward of one mini-batch; calling the object does the same. After the last
--- mini-batch of a round the gradients are ready for `opt:step()`, which the script then calls.
--- Errors: those of pipe:step; the gradients are zero then, and the round starts over.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- local accumulate = gp.train.accumulate(pipe, 2)
--- assert(accumulate:step(gp.ones{8, 4}, gp.ones{8, 2}) == nil)
--- assert(accumulate:step(gp.ones{8, 4}, gp.ones{8, 2}) ~= nil)
--- ```
---@param x gpipe.Tensor|gpipe.Tensor[]
---@param y gpipe.Tensor|gpipe.Tensor[]
---@return number? loss the mean over the round after its last mini-batch, else nil
function methods:step(x, y)
  local sum, count = self.sum, self.count
  self.sum, self.count = 0, 0 -- in case this mini-batch raises
  local loss = self.pipe:step(x, y, { accumulate = count > 0 })
  self.sum, self.count = sum + loss, count + 1
  if self.count < self.n then return nil end
  local mean = self.sum / self.n
  if self.n > 1 then each_gradient(self, function(_, grad) grad:mul_(1 / self.n) end) end
  self.sum, self.count = 0, 0
  return mean
end

--- The state, as a plain table; within a round it includes the gradients so far. In a job all ranks
--- call this together, and all get all gradients.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- local accumulate = gp.train.accumulate(pipe, 2)
--- accumulate(gp.ones{8, 4}, gp.ones{8, 2})
--- assert(accumulate:state().gradients["1.weight"])
--- ```
---@return {count: integer, sum: number, gradients: table<string, gpipe.Tensor>}
function methods:state()
  local gradients = {}
  for _, entry in ipairs(self.count > 0 and self.entries or {}) do
    local grad = shared.gradient(entry.param)
    gradients[entry.name] = grad and parameters.host_copy(grad)
  end
  return { count = self.count, sum = self.sum, gradients = gradients }
end

--- Continue from a state, which may come from any cut of the model.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- local accumulate = gp.train.accumulate(pipe, 2)
--- accumulate:restore(accumulate:state())
--- ```
---@param state {count: integer, sum: number, gradients: table<string, gpipe.Tensor>}
---@return gpipe.Accumulate self
function methods:restore(state)
  state = options.check("accumulate:restore", state, {
    count = { type = "integer", min = 0, below = self.n, required = true },
    sum = { type = "number", required = true }, gradients = { type = "table", required = true },
  })
  each_gradient(self, function(name, grad)
    local kept = state.gradients[name]
    if kept then grad:copy_(kept) end
  end)
  self.count, self.sum = state.count, state.sum
  return self
end

--- Make one update from several mini-batches, as from a larger batch than memory holds.
---
--- The gradients are those of the mean over the `n` mini-batches. That is the mean over all rows if
--- all mini-batches have the same number of rows (for a loss with an ignore index: of tokens that
--- count). If n is a power of two they have the same bits as those of one mini-batch of all rows
--- with n times the micro-batches (with options `replicas` or `sum_group` if n is 2); for other n
--- the last bits differ, and for weights that several layers share. Batch norms still see one
--- micro-batch, and dropout draws anew for each mini-batch.
--- Errors: a pipeline that updates by itself (pipe:use), or an asynchronous one: pipe:step raises.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- local opt = gp.optim.SGD(pipe:parameters(), {lr = 0.1})
--- local accumulate = gp.train.accumulate(pipe, 4)
--- for _ = 1, 8 do
---   local loss = accumulate(gp.ones{8, 4}, gp.ones{8, 2})
---   if loss then opt:step() end -- every fourth time
--- end
--- ```
---@param pipe gpipe.Pipeline
---@param n integer mini-batches in an update
---@return gpipe.Accumulate
local function accumulate(pipe, n)
  local who = "gp.train.accumulate"
  if not parameters.is_pipeline(pipe) then
    errors.raise("%s: the first argument is %s, expected a pipeline", who, errors.show(pipe))
  end
  n = options.argument(who, "n", n, { type = "integer", min = 1, required = true })
  return new { pipe = pipe, n = n, entries = pipe:parameters(), count = 0, sum = 0 }
end

return { new = accumulate, methods = methods }
