-- lua/gpipe/nn/layer/norm/last.lua - the last dimensions, over which LayerNorm and RMSNorm go: one,
-- by its size, or several, by a list of them. Kernels know one; several are one for them.

local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.nn.check"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local scope = require "gpipe.nn.scope"

local last = {}

--- Sizes of a list, or of one number; raises for what is neither.
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

--- What a norm computes from x, whose last dimensions are these.
---@param layer nn.Module
---@param x gpipe.Tensor
---@param shape integer[]
---@param compute fun(x: gpipe.Tensor): gpipe.Tensor of vectors
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

--- A weight as a vector; ones or zeros where the layer has none.
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
