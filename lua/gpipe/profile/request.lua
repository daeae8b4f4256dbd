-- lua/gpipe/profile/request.lua - what a profile is made of: the model, one micro-batch, a loss.
--
-- Without a loss the model gets one more layer, an Identity, whose stage has the mean of all
-- outputs as its loss: backward of the user's layers then begins with a gradient of the right
-- shape, and what belongs to the mean is no part of any of them.

local batch = require "gpipe.pipeline.batch"
local class = require "gpipe.nn.class"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local Identity = require "gpipe.nn.layer.shape.identity"
local is_tensor = require "gpipe.tensor.is"
local Sequential = require "gpipe.nn.sequential"
local twin = require "gpipe.nn.twin"

local request = {}

---@class gpipe.ProfileRequest
---@field who string for errors
---@field model nn.Sequential the user's
---@field layers integer #model
---@field loss any the user's, or nil
---@field inputs gpipe.Tensor[] one micro-batch
---@field targets gpipe.Tensor[]
---@field rows integer of the micro-batch
---@field precision string? as in gp.pipeline

local FLOATS = { f32 = true, f64 = true, f16 = true, bf16 = true }

-- The loss of a model without one: the sum of the means of its outputs. The last value is the
-- target, which stands for none.
local function mean_of_outputs(who)
  return function(...)
    local values, sum = { ... }, nil
    for i = 1, #values - 1 do
      if FLOATS[values[i].dtype] then
        local mean = values[i]:mean():to "f32"
        sum = sum and sum + mean or mean
      end
    end
    if not sum then
      errors.raise("%s: the model returns no floating-point numbers, expected option 'loss'", who)
    end
    return sum
  end
end

local function first_rows(tensors, rows)
  for i, t in ipairs(tensors) do tensors[i] = t:narrow(1, 1, rows):contiguous() end
  return tensors
end

--- Check the model and the sample. A sample is {x, y} or {x}, where x and y may be lists, or x
--- alone; with chunks its first micro-batch is taken.
---@param who string
---@param model any
---@param sample any
---@param o {chunks: integer, loss: any, precision: string?}
---@return gpipe.ProfileRequest
function request.of(who, model, sample, o)
  class.refuse(who, "the model", model)
  if not class.is(model, Sequential) or #model == 0 then
    errors.raise("%s: the model is %s, expected an nn.Sequential with layers, or a profile", who,
      errors.show(model))
  end
  if is_tensor(sample) then sample = { sample } end
  if type(sample) ~= "table" then
    errors.raise("%s: the sample is %s, expected {x, y} or {x}: a batch", who, errors.show(sample))
  end
  if o.loss and sample[2] == nil then
    errors.raise("%s: the sample has no target, expected {x, y} where there is a loss", who)
  end
  local inputs = batch.tensors(who, "sample's input", sample[1])
  local rows = inputs[1].shape[1]
  local targets = o.loss and batch.tensors(who, "sample's target", sample[2])
    or { create.zeros { rows } }
  batch.check_rows(who, inputs, targets)
  rows = math.ceil(rows / math.min(o.chunks, rows))
  return {
    who = who, model = model, layers = #model, loss = o.loss, precision = o.precision, rows = rows,
    inputs = first_rows(inputs, rows), targets = first_rows(targets, rows),
  }
end

--- A copy of the model, ready to be cut: with the user's loss, or with one more layer and the mean.
---@param wanted gpipe.ProfileRequest
---@param copy fun(model: nn.Module): nn.Module twin.of or twin.sharing
---@param bare? boolean leave the user's loss out
---@return nn.Sequential model
---@return any loss
function request.model(wanted, copy, bare)
  local model = copy(wanted.model)
  if wanted.loss and not bare then return model, wanted.loss end
  model[#model + 1] = Identity()
  return model, mean_of_outputs(wanted.who)
end

--- The same for plans, which do not touch the values of parameters.
function request.shared(wanted, bare) return request.model(wanted, twin.sharing, bare) end

--- The same for runs.
function request.own(wanted) return request.model(wanted, twin.of) end

return request
