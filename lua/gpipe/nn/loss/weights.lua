-- lua/gpipe/nn/loss/weights.lua - weights of the classes: how much a row of each class counts.
--
-- A mean divides by the sum of the weights of all rows in the mini-batch. Micro-batches add this
-- sum up as they add up counts, as a whole number, so that it is the same however the rows are cut.
-- So the weights are expressed as multiples of a power of two, the unit, such that the largest
-- weight is about 2^32 units. The sum that a mean divides is in these units too.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

---@class gpipe.ClassWeights
---@field number integer of classes
---@field plain gpipe.Tensor f64, as they were given
---@field units gpipe.Tensor i64
local Weights = {}
Weights.__index = Weights

local weights = {}

local UNITS = 32 -- the exponent of the largest weight; counts are below 2^63

--- The weights of a loss; nil if it has none.
--- Errors: anything but a vector of finite numbers >= 0.
---@param who string
---@param given gpipe.Tensor|number[]|nil
---@return gpipe.ClassWeights?
function weights.new(who, given)
  if given == nil then return nil end
  local plain = (is_tensor(given) and given or core.tensor(given, "f64")):to "cpu":to "f64"
  local good = plain:isfinite():logical_and(plain:ge(0)):all():item()
  if plain:dim() ~= 1 or plain:numel() == 0 or not good then
    errors.raise("%s: weight is %s, expected one finite number >= 0 for each class", who,
      plain:dim() ~= 1 and ("a tensor of %d dimensions"):format(plain:dim())
        or plain:numel() == 0 and "empty" or "negative or not finite")
  end
  local largest = plain:max():item()
  local unit = largest > 0 and 2.0 ^ (math.ceil(math.log(largest, 2)) - UNITS) or 1
  return setmetatable({
    number = plain:numel(), plain = plain, units = (plain / unit):round():to "i64",
  }, Weights)
end

-- The positions of the targets' classes. The loss itself reports an id that is no class.
local function positions_of(self, target, ignored)
  local ids = target:to "i64"
  if ignored then ids = core.where(ids:eq(ignored), 0, ids) end
  return ids:clamp(0, self.number - 1):reshape(-1) + 1
end

--- The weight of each row: for a mean in units, as numbers of a dtype; for a sum as it was given.
---@param target gpipe.Tensor
---@param ignored integer?
---@param like gpipe.Tensor the losses of the rows
---@param in_units boolean
---@return gpipe.Tensor
function Weights:of_rows(target, ignored, like, in_units)
  local all = beside(like, (in_units and self.units or self.plain):to(like.dtype))
  return all:index_select(1, positions_of(self, target, ignored)):reshape(like.shape)
end

--- The sum of the units of all rows that are not ignored.
---@param target gpipe.Tensor
---@param ignored integer?
---@return gpipe.Tensor i64
function Weights:count(target, ignored)
  local units = core.gather(beside(target, self.units), positions_of(self, target, ignored), 1)
  if ignored then units = core.where(target:reshape(-1):eq(ignored), 0, units) end
  return units:sum()
end

return weights
