-- lua/gpipe/nn/layer/norm/last.lua - the last dimensions, over which LayerNorm and RMSNorm go: one,
-- given by its size, or several, given by a list. Kernels take one dimension, so several are
-- flattened into one.

local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.nn.check"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local scope = require "gpipe.nn.scope"

local last = {}

--- The sizes from a list or a single number; raises for anything else.
---@param who string
---@param dim any
---@return integer[]
function last.read(who, dim)
  if type(dim) ~= "table" then return { check.size(who, "dim", dim) } end
  local shape = {}
  for i, size in ipairs(dim) do shape[i] = check.size(who, "dim", size) end
  if #shape == 0 or next(dim, #shape) ~= nil then
    errors.raise("%s: dim is %s, expected a positive integer or a list of them", who,
      errors.show(dim))
  end
  return shape
end

--- Compute a norm of x over these last dimensions.
---@param layer nn.Module
---@param x gpipe.Tensor
---@param shape integer[]
---@param compute fun(x: gpipe.Tensor): gpipe.Tensor takes vectors
---@return gpipe.Tensor
function last.over(layer, x, shape, compute)
  if #shape == 1 then return compute(x) end
  local sizes = x.shape
  local from = #sizes - #shape
  for d, size in ipairs(shape) do
    if sizes[from + d] ~= size then
      errors.raise("%s: the input is %s, expected [.., %s]", scope.label(layer),
        table.concat(sizes, "x"), table.concat(shape, ", "))
    end
  end
  return compute(x:flatten(from + 1)):reshape(sizes)
end

--- A weight as a vector; ones or zeros if the layer has none.
---@param x gpipe.Tensor
---@param parameter? gpipe.Tensor
---@param shape integer[]
---@param value number
---@return gpipe.Tensor
function last.vector(x, parameter, shape, value)
  if parameter then return #shape == 1 and parameter or parameter:reshape(-1) end
  local count = 1
  for _, size in ipairs(shape) do count = count * size end
  return beside(x, core.full("norm", { count }, value, x.dtype))
end

return last
