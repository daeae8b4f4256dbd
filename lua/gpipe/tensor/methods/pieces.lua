-- lua/gpipe/tensor/methods/pieces.lua - methods that rotate, cut and partly overwrite tensors, with
-- torch's names; overwriting returns a new tensor.

local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"
local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local join = require "gpipe.tensor.join"

local Tensor = {}

local MOST_PARTS = 1 << 20 -- parts of a tensor that is cut: more are a mistake

local common = create.rules.common
local MADE = { -- without defaults: missing options come from the tensor
  dtype = { type = "string", check = common.dtype.check, choices = common.dtype.choices },
  device = { type = "string", check = common.device.check },
}

-- ---- like this one ---------------------------------------------------------------------------

local function fresh(who, tensor, opts)
  local o = {}
  for name, value in pairs(options.check(who, opts, MADE)) do o[name] = value end
  o.dtype = o.dtype or tensor.dtype
  if tensor.device ~= "traced" then o.device = o.device or tensor.device end
  return o
end

--- Zeros of a shape, with dtype and device of this tensor. `gp.ones({2}):new_zeros({3})[3] == 0`
---@param shape integer[]
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function Tensor:new_zeros(shape, opts)
  return create.zeros(check.shape("new_zeros", shape), fresh("new_zeros", self, opts))
end

--- Ones of a shape, with dtype and device of this tensor. `gp.zeros({2}):new_ones({3})[3] == 1`
---@param shape integer[]
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function Tensor:new_ones(shape, opts)
  return create.ones(check.shape("new_ones", shape), fresh("new_ones", self, opts))
end

--- A shape filled with a value, with dtype and device of this tensor.
--- `gp.ones({2}):new_full({3}, 7)[3] == 7`
---@param shape integer[]
---@param value number|boolean
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function Tensor:new_full(shape, value, opts)
  check.shape("new_full", shape)
  return create.full(shape, value, fresh("new_full", self, opts))
end

--- The numbers of a table, with dtype and device of this tensor.
--- `gp.ones({2}):new_tensor({3})[1] == 3`
---@param values number|table
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function Tensor:new_tensor(values, opts)
  local kind = type(values)
  if kind ~= "table" and kind ~= "number" and kind ~= "boolean" then
    errors.raise("new_tensor: the values are %s, expected a number or a table", errors.show(values))
  end
  if kind == "table" then check.no_names("new_tensor", values) end
  return create.tensor(values, fresh("new_tensor", self, opts))
end

--- Reshape to the shape of the other. `gp.ones({6}):reshape_as(gp.zeros {2, 3}).shape[2] == 3`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:reshape_as(other) return self:reshape(check.tensor("reshape_as", other).shape) end

--- View in the shape of the other, without a copy.
--- `gp.ones({6}):view_as(gp.zeros {2, 3}).shape[2] == 3`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:view_as(other) return self:view(check.tensor("view_as", other).shape) end

-- ---- turned ----------------------------------------------------------------------------------

--- The rows in reverse order. `gp.tensor({1, 2}):flipud()[1] == 2`
---@return gpipe.Tensor
function Tensor:flipud() return self:flip(1) end

--- The columns in reverse order. `gp.tensor({{1, 2}}):fliplr()[1][1] == 2`
---@return gpipe.Tensor
function Tensor:fliplr() return self:flip(2) end

--- Rotate by 90 degrees k times, from the first of two dimensions towards the second.
--- `gp.tensor({{1, 2}, {3, 4}}):rot90()[1][1] == 2`
---@param k? integer 1
---@param dims? integer[] {1, 2}
---@return gpipe.Tensor
function Tensor:rot90(k, dims)
  k, dims = math.tointeger(k or 1), dims or { 1, 2 }
  if not k then errors.raise "rot90: k is no integer, expected one" end
  if type(dims) ~= "table" or #dims ~= 2 then
    errors.raise("rot90: dims are %s, expected two, {1, 2}", errors.show(dims))
  end
  local a, b = check.dim("rot90", dims[1], self:dim()), check.dim("rot90", dims[2], self:dim())
  if a == b then errors.raise("rot90: dimension %d is given twice", a) end
  k = k % 4
  if k == 0 then return self:clone() end
  if k == 2 then return self:flip(a):flip(b) end
  if k == 1 then return self:flip(b):transpose(a, b) end
  return self:transpose(a, b):flip(b)
end

--- All elements in one dimension. `gp.ones({2, 3}):ravel().shape[1] == 6`
---@return gpipe.Tensor
function Tensor:ravel() return self:reshape(-1) end

-- ---- cut -------------------------------------------------------------------------------------

local function cut(who, tensor, parts, d)
  d = check.dim(who, d, tensor:dim())
  local size, ends = tensor.shape[d], {}
  if type(parts) == "table" then
    check.no_names(who, parts)
    for i, last in ipairs(parts) do
      ends[i] = math.max(0, math.min(check.count(who .. ": a position", last, 0), size))
    end
  else
    local n = check.count(who .. ": parts", parts, 1)
    if n > MOST_PARTS then
      errors.raise("%s: parts is %d, expected at most %d", who, n, MOST_PARTS)
    end
    for i = 1, n - 1 do ends[i] = size // n * i + math.min(i, size % n) end
  end
  local list, from = {}, 0
  ends[#ends + 1] = size
  for i, last in ipairs(ends) do
    list[i] = tensor:narrow(d, math.min(from + 1, math.max(size, 1)), math.max(last - from, 0))
    from = last
  end
  return list
end

--- Split into n parts of almost equal size (the first ones have one more), or after each position
--- in a list. `#gp.arange(1, 7):tensor_split(3) == 3`
---@param parts integer|integer[]
---@param d? integer 1
---@return gpipe.Tensor[]
function Tensor:tensor_split(parts, d) return cut("tensor_split", self, parts, d or 1) end
--- tensor_split along the second dimension, for vectors along the only one.
--- `#gp.ones({2, 4}):hsplit(2) == 2`
---@param parts integer|integer[]
---@return gpipe.Tensor[]
function Tensor:hsplit(parts) return cut("hsplit", self, parts, self:dim() == 1 and 1 or 2) end

--- tensor_split along the first dimension. `#gp.ones({4, 2}):vsplit(2) == 2`
---@param parts integer|integer[]
---@return gpipe.Tensor[]
function Tensor:vsplit(parts) return cut("vsplit", self, parts, 1) end

--- The smallest and the largest value of all elements, or along a dimension.
--- `gp.tensor({1, 5, 3}):aminmax():item() == 1`
---@param d? integer
---@param keep? boolean
---@return gpipe.Tensor least
---@return gpipe.Tensor greatest
function Tensor:aminmax(d, keep)
  check.dims("aminmax", d, self.shape)
  return self:amin(d, keep), self:amax(d, keep)
end

local SPREAD = {
  correction = { type = "number", default = 1 }, keep = { type = "boolean", default = false },
}

--- std and mean at once. `gp.tensor({3, 3}):std_mean():item() == 0`
---@param d? integer|integer[]
---@param opts? {correction?: number, keep?: boolean}
---@return gpipe.Tensor std
---@return gpipe.Tensor mean
function Tensor:std_mean(d, opts)
  check.dims("std_mean", d, self.shape)
  local o = options.check("std_mean", opts, SPREAD)
  return self:std(d, o), self:mean(d, o.keep)
end

--- var and mean at once. `gp.tensor({1, 3}):var_mean():item() == 2`
---@param d? integer|integer[]
---@param opts? {correction?: number, keep?: boolean}
---@return gpipe.Tensor var
---@return gpipe.Tensor mean
function Tensor:var_mean(d, opts)
  check.dims("var_mean", d, self.shape)
  local o = options.check("var_mean", opts, SPREAD)
  return self:var(d, o), self:mean(d, o.keep)
end

-- ---- written ---------------------------------------------------------------------------------

-- Replace elements of dimension d by the source, from one position on; the others stay.
local function replaced(tensor, d, first, source)
  local size, count, list = tensor.shape[d], source.shape[d], {}
  if first > 1 then list[1] = tensor:narrow(d, 1, first - 1) end
  list[#list + 1] = source
  local last = first + count - 1
  if last < size then list[#list + 1] = tensor:narrow(d, last + 1, size - last) end
  return core.concat(list, d)
end

local function check_source(who, source, wanted)
  local have = is_tensor(source) and table.concat(source.shape, "x")
  if have ~= table.concat(wanted, "x") then
    errors.raise("%s: the source is %s, expected %s", who, have or errors.show(source),
      table.concat(wanted, "x"))
  end
end

--- Replace select(d, position) by the source.
--- `gp.zeros({2, 2}):select_scatter(gp.ones {2}, 1, 2)[2][1] == 1`
---@param source gpipe.Tensor
---@param d integer
---@param position integer
---@return gpipe.Tensor
function Tensor:select_scatter(source, d, position)
  d = check.dim("select_scatter", d, self:dim())
  position = check.position("select_scatter: the position", position, self.shape[d])
  local wanted = self.shape
  table.remove(wanted, d)
  check_source("select_scatter", source, wanted)
  return replaced(self, d, position, source:to(self.dtype):unsqueeze(d))
end

--- Replace narrow(d, first, its size) by the source.
--- `gp.zeros({3}):slice_scatter(gp.ones {2}, 1, 2)[3] == 1`
---@param source gpipe.Tensor
---@param d? integer 1
---@param first? integer 1
---@return gpipe.Tensor
function Tensor:slice_scatter(source, d, first)
  d = check.dim("slice_scatter", d or 1, self:dim())
  first = check.position("slice_scatter: first", first or 1, self.shape[d])
  local wanted = self.shape
  wanted[d] = is_tensor(source) and source.shape[d] or wanted[d]
  check_source("slice_scatter", source, wanted)
  if first + wanted[d] - 1 > self.shape[d] then
    errors.raise("slice_scatter: the source has %d elements from %d on, expected at most %d",
      wanted[d], first, self.shape[d] - first + 1)
  end
  return replaced(self, d, first, source:to(self.dtype))
end

--- Replace the given positions of dimension d by the rows of the source.
--- `gp.zeros({3}):index_copy(1, {3}, gp.ones {1})[3] == 1`
---@param d integer
---@param positions gpipe.Tensor|integer[] i64, each once
---@param source gpipe.Tensor
---@return gpipe.Tensor
function Tensor:index_copy(d, positions, source)
  d = check.dim("index_copy", d, self:dim())
  local at = is_tensor(positions) and positions or beside(self, core.tensor(positions, "i64"))
  local wanted, spread = self.shape, {}
  wanted[d] = at:numel()
  check_source("index_copy", source, wanted)
  for k = 1, #wanted do spread[k] = k == d and at:numel() or 1 end
  return self:scatter(d, at:reshape(spread):expand(wanted), source)
end

-- Convert lists of positions, one for each dimension, to positions in row-major order.
local function flat_positions(who, tensor, places)
  if type(places) ~= "table" or #places == 0 or #places > tensor:dim() then
    errors.raise("%s: the positions are %s, expected a list of 1 to %d tensors", who,
      errors.show(places), tensor:dim())
  end
  local lists, at = {}, nil
  for d, p in ipairs(places) do
    if is_tensor(p) and p.dtype ~= "i64" or not is_tensor(p) and type(p) ~= "table" then
      errors.raise("%s: the positions of dimension %d are %s, expected i64", who, d,
        is_tensor(p) and p.dtype or errors.show(p))
    end
    lists[d] = is_tensor(p) and p or beside(tensor, core.tensor(p, "i64"))
  end
  for d, p in ipairs(lists) do
    local size = tensor.shape[d]
    local wrong = not core.tracing() and p:numel() > 0
      and (p:min():item() < 1 or p:max():item() > size)
    if wrong then errors.raise("%s: a position of dimension %d is outside 1..%d", who, d, size) end
    at = at and at * size + (p - 1) or p - 1
  end
  return at
end

--- Set the elements at positions given as one list for each dimension (dimensions without a list
--- are taken whole); with accumulate the values are added there.
--- `gp.zeros({2, 2}):index_put({{1, 2}, {2, 1}}, 5)[1][2] == 5`
---
--- Errors: a position outside of its dimension; the same place twice, unless accumulated.
---@param places (gpipe.Tensor|integer[])[] i64, from 1
---@param values gpipe.Tensor|number
---@param accumulate? boolean false
---@return gpipe.Tensor
function Tensor:index_put(places, values, accumulate)
  local at = flat_positions("index_put", self, places)
  local shape, chosen, inner = self.shape, at.shape, 1
  local wanted = table.move(shape, #places + 1, #shape, #chosen + 1, at.shape)
  for d = #places + 1, #shape do inner = inner * shape[d] end
  if not is_tensor(values) then values = beside(self, core.tensor(values, self.dtype)) end
  values = values:to(self.dtype):expand(wanted):reshape(-1)
  local line = beside(self, core.arange(1, math.max(inner, 1), 1, "i64"):narrow(1, 1, inner))
  at = (at:reshape { at:numel(), 1 } * inner + line):reshape(-1)
  local flat = self:reshape(-1)
  local y = accumulate and flat:scatter_add(1, at, values) or flat:scatter(1, at, values)
  return y:reshape(shape)
end

--- index_put into this tensor itself. `gp.zeros({2}):index_put_({{2}}, 5)[2] == 5`
---@param places (gpipe.Tensor|integer[])[]
---@param values gpipe.Tensor|number
---@param accumulate? boolean false
---@return gpipe.Tensor self
function Tensor:index_put_(places, values, accumulate)
  return self:copy_(self:index_put(places, values, accumulate))
end

--- Replace diagonal k by the source. `gp.zeros({2, 2}):diagonal_scatter(gp.ones {2})[2][2] == 1`
---@param source gpipe.Tensor of the shape of diagonal(k)
---@param k? integer 0
---@return gpipe.Tensor
function Tensor:diagonal_scatter(source, k)
  if self:dim() ~= 2 then
    errors.raise("diagonal_scatter: the tensor has %d dimensions, expected 2", self:dim())
  end
  k = check.count("diagonal_scatter: k", k or 0, -math.maxinteger)
  local m, n = self.shape[1], self.shape[2]
  local count = math.max(0, math.min(m + math.min(k, 0), n - math.max(k, 0)))
  check_source("diagonal_scatter", source, { count })
  if count == 0 then return self:clone() end
  local line = core.arange(1, count, 1, "i64")
  local rows, columns = line - math.min(k, 0), line + math.max(k, 0)
  return self:index_put({ beside(self, rows), beside(self, columns) }, source)
end

--- All elements on diagonal k of a matrix. `gp.ones({2}):diagflat()[2][2] == 1`
---@param k? integer 0
---@return gpipe.Tensor
function Tensor:diagflat(k)
  return self:reshape(-1):diag(check.count("diagflat: k", k or 0, math.mininteger))
end

--- Replace the elements where the mask is true by the values of the source, in their order.
--- `gp.zeros({3}):masked_scatter(gp.tensor {1, 0, 1}:gt(0), gp.tensor {5, 6})[3] == 6`
--- Errors: fewer values than the mask selects (eager).
---@param mask gpipe.Tensor bool
---@param source gpipe.Tensor
---@return gpipe.Tensor
function Tensor:masked_scatter(mask, source)
  if not is_tensor(mask) or mask.dtype ~= "bool" then
    errors.raise("masked_scatter: the mask is %s, expected a bool tensor",
      is_tensor(mask) and mask.dtype or errors.show(mask))
  end
  check.tensor("masked_scatter", source, "the source")
  local into, chooses = join.broadcast_tensors(self, mask)
  local whole, shape = chooses:reshape(-1), into.shape
  local at, values = whole:to("i64"):cumsum(1), source:reshape(-1)
  local count = values:numel()
  if not core.tracing() and whole:numel() > 0 and at[whole:numel()] > count then
    errors.raise("masked_scatter: the source has %d elements, expected at least %d", count,
      at[whole:numel()])
  end
  local chosen = values:index_select(1, at:clamp(1, math.max(count, 1)))
  return core.where(whole, chosen:to(self.dtype), into:reshape(-1)):reshape(shape)
end

local REDUCE = { choices = { "sum", "mean", "amax", "amin" }, required = true }

-- Reduce by amax or amin: over [.., size of d, sources], which holds each source at its target and
-- `neutral` elsewhere.
local function extreme(tensor, d, positions, source, which, include)
  local last = tensor:dim()
  local moved = tensor:movedim(d, last)
  for k = 1, last do
    local count = positions.shape[k]
    if source.shape[k] > count then source = source:narrow(k, 1, count) end
  end
  local at, from = positions:movedim(d, last), source:movedim(d, last)
  local size = moved.shape[last]
  local numbers = beside(tensor, core.arange(1, size, 1, "i64")):unsqueeze(-1)
  local hits = at:unsqueeze(-2):eq(numbers)
  local neutral = which == "amax" and -math.huge or math.huge
  local found = core.where(hits, from:unsqueeze(-2), neutral)
  found = which == "amax" and found:amax(-1) or found:amin(-1)
  local any, sizes = hits:any(-1), found.shape
  for k = 1, last - 1 do -- lines without any position
    local missing = moved.shape[k] - sizes[k]
    if missing > 0 then
      local pads = {}
      for i = 1, 2 * (last - k + 1) do pads[i] = 0 end
      pads[#pads] = missing
      found = found:pad(pads, "constant", neutral)
      any = any:to("i64"):pad(pads):gt(0)
    end
  end
  local both = which == "amax" and found:maximum(moved) or found:minimum(moved)
  return core.where(any, include and both or found, moved):movedim(last, d)
end

-- The sum of the sources for each place, and their number.
local function counted(tensor, d, positions, source)
  local zeros = tensor * 0
  local ones = source * 0 + 1
  return zeros:scatter_add(d, positions, source), zeros:scatter_add(d, positions, ones)
end

--- Combine all elements of the source that go to a place: their "sum", "mean", "amax" or "amin",
--- including the element that is there unless include_self is false.
--- `gp.ones({2}):scatter_reduce(1, gp.tensor({1, 1}, {dtype = "i64"}), gp.tensor {2, 3}, "amax")[1]
--- == 3`
---
--- Errors: positions of another shape than the source.
---@param d integer
---@param positions gpipe.Tensor i64
---@param source gpipe.Tensor
---@param reduce "sum"|"mean"|"amax"|"amin"
---@param opts? {include_self?: boolean} true
---@return gpipe.Tensor
function Tensor:scatter_reduce(d, positions, source, reduce, opts)
  local who = "scatter_reduce"
  d = check.dim(who, d, self:dim())
  check.tensor(who, positions, "positions")
  check.tensor(who, source, "the source")
  reduce = options.argument(who, "reduce", reduce, REDUCE)
  local include = options.check(who, opts, { include_self = { type = "boolean", default = true } })
    .include_self
  if reduce == "amax" or reduce == "amin" then
    return extreme(self, d, positions, source, reduce, include)
  end
  local sums, counts = counted(self, d, positions, source)
  if include then sums, counts = sums + self, counts + 1 end
  if reduce == "mean" then sums = sums / counts:clamp { min = 1 } end
  return core.where(counts:gt(0), sums, self)
end

return Tensor
