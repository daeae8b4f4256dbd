-- lua/gpipe/data/epochs.lua - `gp.data.epochs`: walks over a dataset epoch after epoch, each in
-- another order, as one walk whose place can be saved.

local check_state = require "gpipe.data.state"
local errors = require "gpipe.errors"
local options = require "gpipe.options"

---@class gpipe.Epochs
---@field epoch integer of the batch that was given last, from 1
---@field size integer items in a batch
local Epochs = { __name = "gpipe.Epochs" }
Epochs.__index = Epochs

local SPEC = {
  batch = { type = "integer", min = 1, required = true },
  seed = { type = "integer", min = 0, default = 0 },
  epochs = { type = "integer", min = 1 },
  shuffle = { type = "boolean", default = true },
  drop_last = { type = "boolean", default = false },
  workers = { type = "integer", min = 0 },
  prefetch = { type = "integer", min = 1 },
  pad = { type = "number" },
  sort_by = { type = "callable" },
}

local function is_dataset(value)
  local good, method = pcall(function() return value.batches end)
  return good and type(method) == "function"
end

-- The data of an epoch: always the same dataset, or what a function of the epoch's number returns.
local function data_of(self)
  if is_dataset(self.data) then return self.data end
  local data = self.data(self.epoch)
  if is_dataset(data) then return data end
  errors.raise("gp.data.epochs: the function gave %s for epoch %d, expected a dataset",
    errors.show(data), self.epoch)
end

-- The batches of an epoch, in its order: a function of the seed and the epoch's number.
local function open(self)
  local data, opts = data_of(self), self.opts
  if opts.shuffle then data = data:shuffle(opts.seed, self.epoch) end
  self.batches = data:batches(opts.batch, {
    drop_last = opts.drop_last, workers = opts.workers, prefetch = opts.prefetch, pad = opts.pad,
    sort_by = opts.sort_by,
  })
  return self.batches
end

--- The next batch; nil after the last epoch.
--- ```lua
--- local e = gp.data.epochs(gp.data.tensors(gp.ones{4, 2}, gp.ones{4}), {batch = 2, epochs = 1})
--- assert(e:next() and e:next() and not e:next())
--- ```
---@return any x
---@return any y
function Epochs:next()
  local batches = self.batches or open(self)
  local x, y = batches()
  if x == nil then
    batches:close()
    if self.opts.epochs and self.epoch >= self.opts.epochs then return nil end
    self.epoch = self.epoch + 1
    x, y = open(self)()
    if x == nil then
      errors.raise("gp.data.epochs: the data has no batch of %d items", self.size)
    end
  end
  return x, y
end

function Epochs:__call() return self:next() end

--- Batches in all epochs; nil where they do not end.
---@return integer?
function Epochs:steps()
  local batches = self.batches or open(self)
  if batches.unknown then return nil end -- a stream: the number is not known
  return self.opts.epochs and self.opts.epochs * #batches
end

--- The position of the walk, as a table that can be saved.
---@return table
function Epochs:state()
  local batches = self.batches or open(self)
  return { epoch = self.epoch, seed = self.opts.seed, batches = batches:state() }
end

local STATE = {
  epoch = { type = "integer", min = 1, required = true },
  seed = { type = "integer", required = true },
  batches = { type = "table", required = true },
}

--- Continue where a state was taken: the same batches follow.
--- Errors: the state belongs to another seed, to other data or to another batch size.
---@param state table of state()
---@return gpipe.Epochs self
function Epochs:restore(state)
  state = check_state("epochs:restore", state, STATE)
  if state.seed ~= self.opts.seed then
    errors.raise("epochs:restore: the state has seed = %d, expected %d as here", state.seed,
      self.opts.seed)
  end
  self:close()
  self.epoch = state.epoch
  open(self):restore(state.batches)
  return self
end

--- End the threads that load ahead.
function Epochs:close()
  if self.batches then self.batches:close() end
  self.batches = nil
end

Epochs.__close = Epochs.close

function Epochs:__tostring()
  return ("Epochs(epoch %d, batches of %d)"):format(self.epoch, self.size)
end

---@class gpipe.EpochsOptions
---@field batch integer items in a batch
---@field seed? integer of the shuffles
---@field epochs? integer without it there is no end
---@field shuffle? boolean default true
---@field drop_last? boolean
---@field workers? integer
---@field prefetch? integer
---@field pad? number
---@field sort_by? fun(x: any, y: any): number

--- Batches of a dataset, epoch after epoch, without end or for `epochs` of them. Every epoch is
--- shuffled by `seed` and its number, unless `shuffle = false`. The object has `state()` and
--- `restore()`, so that `gp.run` and `gp.checkpoint` save the place in the data. The other options
--- are those of `d:batches`. If each epoch has other items, for example a new sample, pass a
--- function of the epoch's number as data: `function(epoch) return d:sample {weights = w, seed = 1,
--- epoch = epoch} end`.
--- ```lua
--- local data = gp.data.tensors(gp.arange(1, 10), gp.ones{10})
--- local e = gp.data.epochs(data, {batch = 4, seed = 1})
--- for x, y in e do
---   if e.epoch == 3 then break end
--- end
--- ```
---@param data gpipe.Dataset|fun(epoch: integer): gpipe.Dataset
---@param opts gpipe.EpochsOptions
---@return gpipe.Epochs
return function(data, opts)
  if not is_dataset(data) and type(data) ~= "function" then
    errors.raise("gp.data.epochs: data is %s, expected a dataset, or a function that gives one",
      errors.show(data))
  end
  opts = options.check("gp.data.epochs", opts, SPEC)
  return setmetatable({ data = data, opts = opts, size = opts.batch, epoch = 1 }, Epochs)
end
