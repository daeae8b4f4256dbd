-- lua/gpipe/tensor/methods/overwrite.lua - methods that return a new tensor in which some elements
-- are replaced or joined by others, with torch's names.

local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local join = require "gpipe.tensor.join"

local Tensor = {}

-- ---- parts replaced --------------------------------------------------------------------------

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

-- ---- joined ---------------------------------------------------------------------------------

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
