-- lua/gpipe/tensor/methods/root.lua - powers and roots of lengths, whose gradient at 0 is 0.
--
-- At 0 the root's slope is infinite and the slope of its argument is 0, so their product would be
-- NaN. As in PyTorch, a length of 0 passes no gradient on. The values are those of the plain
-- formula.

local core = require "gpipe.core"

local root = {}

-- f(x) where x is not 0, else 0. f gets 1 in place of 0, so that its slope there is finite.
local function apart_from_zero(x, f)
  local zero = x:eq(0)
  return core.where(zero, 0, f(core.where(zero, 1, x)))
end

--- sqrt(x) for x >= 0.
---@param x gpipe.Tensor
---@return gpipe.Tensor
function root.square(x)
  return apart_from_zero(x, function(y) return y:sqrt() end)
end

--- The p-norm of vectors; p may be math.huge or -math.huge.
---@param x gpipe.Tensor
---@param p number
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor
function root.norm(x, p, dim, keep)
  if p == 2 then return root.square((x * x):sum(dim, keep)) end
  local size = x:abs()
  if p == math.huge then return size:amax(dim, keep) end
  if p == -math.huge then return size:amin(dim, keep) end
  if p == 0 then return size:ne(0):to(x.dtype):sum(dim, keep) end
  if p < 0 then return (size ^ p):sum(dim, keep) ^ (1 / p) end
  if p == 1 then return size:sum(dim, keep) end
  local sum = apart_from_zero(size, function(y) return y ^ p end):sum(dim, keep)
  return apart_from_zero(sum, function(y) return y ^ (1 / p) end)
end

return root
