-- lua/gpipe/train/ema.lua - `gp.train.ema`: an exponential moving average of the weights.
-- Source: Polyak and Juditsky 1992; the growing decay is that of TensorFlow's
-- ExponentialMovingAverage (num_updates).
--
-- An average lies on the device of its parameter, in the parameter's own type (f32 or f64, whatever
-- the precision of the pipeline), and is updated there element by element. So it has the same bits
-- for every cut of the model into stages. In a job a rank keeps the averages of the parameters that
-- it holds itself; for the others `averages` has false.

local errors = require "gpipe.errors"
local nn_state = require "gpipe.nn.state"
local options = require "gpipe.options"
local parameters = require "gpipe.train.parameters"
local part = require "gpipe.train.part"
local shared = require "gpipe.ranks.state"

---@class gpipe.Ema
---@field updates integer number of updates
---@field swapped boolean whether the model currently holds the averages
local methods = {}

local new = part.class { who = "gp.train.ema", methods = methods, fields = {} }

-- Elements of a parameter on the host that are averaged at once: intermediate values stay in the
-- cache, and their memory is reused.
local SLICE = 1 << 16

local function move(average, value, share)
  average:add_((value - average):mul_(share))
end

-- Move in slices on the host; on a GPU fewer and larger operations are better.
local function move_in_slices(average, value, share)
  local count = value:numel()
  local sliced = count > SLICE and value.device == "cpu" and value:is_contiguous()
    and average:is_contiguous()
  if not sliced then return move(average, value, share) end
  average, value = average:reshape { count }, value:reshape { count }
  for first = 1, count, SLICE do
    local size = math.min(SLICE, count - first + 1)
    move(average:narrow(1, first, size), value:narrow(1, first, size), share)
  end
end

-- The average of an entry, on the device where the values are now: a model leaves a GPU when its
-- pipeline is closed.
local function average_of(ema, i, value)
  local average = ema.averages[i]
  if average.device ~= value.device then
    average = average:to(value.device)
    ema.averages[i] = average
  end
  return average
end

-- Call fn for each parameter whose value this rank holds, with its average.
local function each_here(ema, fn)
  for i, entry in ipairs(ema.entries) do
    if ema.averages[i] then
      local value = entry.value
      fn(average_of(ema, i, value), value)
    elseif not shared.is_away(entry) then
      errors.raise("ema: %s has come to this rank since the averages were made, expected averages "
        .. "of the new pipeline: ema:state(), then gp.train.ema and ema:restore(state)", entry.name)
    end
  end
end

local function check_own(ema, name)
  if ema.swapped then
    errors.raise("ema:%s: the model has the averages, expected its own weights: call ema:swap() "
      .. "first", name)
  end
end

--- Update the averages; call it after each update of the weights.
--- Errors: the model currently holds the averages.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local ema = gp.train.ema(model, {decay = 0.9})
--- ema:update()
--- assert(ema.updates == 1)
--- ```
function methods:update()
  check_own(self, "update")
  self.settle()
  self.updates = self.updates + 1
  local n, decay = self.updates, self.decay
  if self.warmup then decay = math.min(decay, (1 + n) / (10 + n)) end
  each_here(self, function(average, value) move_in_slices(average, value, 1 - decay) end)
end

--- Exchange the weights and their averages; a second call restores every bit. Buffers, such as the
--- running statistics of batch norms, do not change.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local ema = gp.train.ema(model)
--- ema:swap()
--- assert(gp.save(os.tmpname(), model:state_dict())) -- the averages
--- ema:swap()
--- ```
function methods:swap()
  self.settle()
  each_here(self, function(average, value)
    local own = value:clone()
    value:copy_(average)
    average:copy_(own)
  end)
  self.swapped = not self.swapped
end

--- Call a function while the model holds the averages; they are exchanged back in any case.
--- Errors: those of the function, raised after the model has its own weights again.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- local ema = gp.train.ema(pipe)
--- local loss = ema:apply(function() return pipe:evaluate(gp.ones{8, 4}, gp.ones{8, 2}) end)
--- ```
---@param fn function
---@param ... any its arguments
---@return any ... what it returns
function methods:apply(fn, ...)
  if type(fn) ~= "function" then
    errors.raise("ema:apply: the first argument is %s, expected a function", errors.show(fn))
  end
  check_own(self, "apply")
  self:swap()
  local _ <close> = setmetatable({}, { __close = function() self:swap() end })
  return fn(...)
end

-- The averages as entries of a state; those that other ranks keep have no value.
local function entries_of(ema)
  local entries = {}
  for i, entry in ipairs(ema.entries) do
    entries[i] = { name = entry.name, box = entry.param, value = ema.averages[i] or nil }
  end
  return entries
end

--- The averages by parameter name, as copies on the host, for gp.save and for `load_state_dict` of
--- a model without buffers. In a job all ranks call this together, and all get all averages.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local ema = gp.train.ema(model)
--- model:load_state_dict(ema:state_dict())
--- ```
---@return table<string, gpipe.Tensor>
function methods:state_dict()
  check_own(self, "state_dict")
  local copies = {}
  for _, entry in ipairs(shared.collect(entries_of(self))) do
    copies[entry.name] = parameters.host_copy(entry.value)
  end
  return copies
end

--- The state, as a plain table with tensors, for checkpoints of gp.run. In a job all ranks call
--- this together.
--- ```lua
--- local ema = gp.train.ema(nn.Sequential {nn.Linear(4, 2)})
--- ema:restore(ema:state())
--- ```
---@return {updates: integer, averages: table<string, gpipe.Tensor>}
function methods:state() return { updates = self.updates, averages = self:state_dict() } end

--- Continue from a state, which may come from any cut of the model.
--- Errors: averages that do not fit; one text names all of them, and nothing is changed.
--- ```lua
--- local ema = gp.train.ema(nn.Sequential {nn.Linear(4, 2)})
--- local state = ema:state()
--- ema:update()
--- assert(ema:restore(state).updates == 0)
--- ```
---@param state {updates: integer, averages: table<string, gpipe.Tensor>}
---@return gpipe.Ema self
function methods:restore(state)
  state = options.check("ema:restore", state,
    { updates = part.COUNT, averages = { type = "table", required = true } })
  check_own(self, "restore")
  nn_state.load(entries_of(self), state.averages)
  self.updates = state.updates
  return self
end

--- Keep an exponential moving average of the weights, which often evaluates better than the last
--- weights: each update moves the average towards the weight by the share 1 - decay. Call
--- `ema:update()` after `opt:step()`, and evaluate with `ema:apply(function() ... end)`.
---
--- With `warmup = true` the n-th update has the decay min(decay, (1 + n) / (10 + n)), so that the
--- initial weights do not weigh on the averages. Averages are as large as the weights and lie on
--- the same devices; an update takes about as long as `opt:step()` of AdamW. With a pipeline that
--- has `barrier = false`, each update waits for the running steps.
--- Errors: a value without parameters; a decay outside of [0, 1).
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- local opt = gp.optim.SGD(pipe:parameters(), {lr = 0.1})
--- local ema = gp.train.ema(pipe, {decay = 0.99, warmup = true})
--- for _ = 1, 3 do
---   pipe:step(gp.ones{8, 4}, gp.ones{8, 2})
---   opt:step()
---   ema:update()
--- end
--- ```
---@param of gpipe.Pipeline|nn.Module|table a list such as pipe:parameters()
---@param opts? {decay?: number, warmup?: boolean} decay: 0.999
---@return gpipe.Ema
local function ema(of, opts)
  opts = options.check("gp.train.ema", opts, {
    decay = { type = "number", min = 0, below = 1, default = 0.999 },
    warmup = { type = "boolean", default = false },
  })
  local entries, settle = parameters.read("gp.train.ema", of)
  settle()
  local averages = {}
  for i, entry in ipairs(entries) do
    averages[i] = not shared.is_away(entry) and entry.value:clone()
  end
  return new { entries = entries, settle = settle, averages = averages, decay = opts.decay,
    warmup = opts.warmup, updates = 0, swapped = false }
end

return { new = ema, methods = methods }
