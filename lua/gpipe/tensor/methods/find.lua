-- lua/gpipe/tensor/methods/find.lua - methods whose result size depends on the elements: positions
-- of elements, distinct elements, counts.
--
-- The elements are read to find the size, so none of these methods works on values of a trace.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local is_tensor = require "gpipe.tensor.is"
local join = require "gpipe.tensor.join"

local Tensor = {}

-- The elements as a list of numbers.
local function numbers(tensor)
  local list = tensor:reshape { tensor:numel() }:totable()
  for i, value in ipairs(list) do
    if value == true then list[i] = 1 elseif value == false then list[i] = 0 end
  end
  return list
end

-- A list of integers, which may be empty, as a tensor.
local function positions_of(list, shape)
  if #list == 0 then return core.full("find", shape, 0, "i64") end
  return core.tensor(list, "i64"):reshape(shape)
end

--- The positions of the elements that are not zero, one row each, in row-major order.
--- `gp.tensor({0, 5, 6}):nonzero()[2][1] == 3` Errors: while tracing.
---@return gpipe.Tensor i64 [count, dimensions]
function Tensor:nonzero()
  local shape, rank, found = self.shape, self:dim(), {}
  for flat, value in ipairs(numbers(self)) do
    if value ~= 0 then
      local first, rest = #found, flat - 1
      for d = rank, 1, -1 do
        found[first + d], rest = rest % shape[d] + 1, rest // shape[d]
      end
    end
  end
  local count = rank == 0 and self:ne(0):sum():item() or #found // rank
  return positions_of(found, { count, rank })
end

--- The elements where the mask is true, in row-major order; tensor and mask broadcast. A copy, with
--- gradient. `gp.tensor({1, 2, 3}):masked_select(gp.tensor {true, false, true})[2] == 3` Errors:
--- while tracing.
---@param mask gpipe.Tensor bool
---@return gpipe.Tensor of one dimension
function Tensor:masked_select(mask)
  if not is_tensor(mask) or mask.dtype ~= "bool" then
    errors.raise("masked_select: the mask is %s, expected a bool tensor",
      is_tensor(mask) and mask.dtype or errors.show(mask))
  end
  local t, m = join.broadcast_tensors(self, mask)
  return t[m]
end

--- The distinct elements, ascending; every NaN is distinct. With inverse it also returns where each
--- element of the tensor is among them (from 1), with counts also how often each occurs.
--- `gp.tensor({3, 1, 3}):unique()[2] == 3` Errors: while tracing.
---@param opts? {inverse?: boolean, counts?: boolean}
---@return gpipe.Tensor values
---@return gpipe.Tensor? inverse i64, of the tensor's shape; the counts if only they are asked for
---@return gpipe.Tensor? counts i64
function Tensor:unique(opts)
  local o = options.check("unique", opts, {
    inverse = { type = "boolean", default = false }, counts = { type = "boolean", default = false },
  })
  local list, firsts, inverse, counts = numbers(self), {}, {}, {}
  local flat = self:reshape { self:numel() }
  local _, order = core.sort(flat, 1)
  for _, i in ipairs(order:totable()) do
    local before = firsts[#firsts]
    if not before or list[before] ~= list[i] then
      firsts[#firsts + 1], counts[#counts + 1] = i, 0
    end
    inverse[i], counts[#counts] = #firsts, counts[#counts] + 1
  end
  local results = { #firsts == 0 and flat or flat:index_select(1, firsts) }
  if o.inverse then results[2] = positions_of(inverse, self.shape) end
  if o.counts then results[#results + 1] = positions_of(counts, { #counts }) end
  return table.unpack(results)
end

--- How often each id 0, 1, 2 .. occurs in a vector of ids; with weights, the sum of the weights of
--- these ids. Position i of the result is id i - 1. No gradient.
--- `gp.tensor({0, 2, 2}, {dtype = "i64"}):bincount()[3] == 2` Errors: a negative id; while tracing.
---@param opts? {weights?: gpipe.Tensor, minlength?: integer} minlength: the smallest size, 0
---@return gpipe.Tensor i64, or the dtype of the weights
function Tensor:bincount(opts)
  local o = options.check("bincount", opts, {
    weights = { type = "tensor" }, minlength = { type = "integer", default = 0, min = 0 },
  })
  if self:dim() ~= 1 or not ({ i64 = true, i32 = true, u8 = true })[self.dtype] then
    errors.raise("bincount: the tensor is %s with %d dimensions, expected 1 of i64, i32 or u8",
      self.dtype, self:dim())
  end
  local n, rows = self:numel(), o.minlength
  local ids = self:to "i64"
  if n > 0 and (-ids):max():item() > 0 then
    errors.raise("bincount: an id is %d, expected 0 or more", -(-ids):max():item())
  end
  if n > 0 then rows = math.max(rows, ids:max():item() + 1) end
  local weights = o.weights or core.full("bincount", { n }, 1, "f64")
  if weights:dim() ~= 1 or weights:numel() ~= n then
    errors.raise("bincount: there are %d weights, expected %d, one for each id", weights:numel(), n)
  end
  if rows == 0 then return core.full("bincount", { 0 }, 0, o.weights and weights.dtype or "i64") end
  local sums = core.embedding_dw(weights:reshape { n, 1 }, ids, rows):reshape { rows }
  return sums:to(o.weights and weights.dtype or "i64")
end

return Tensor
