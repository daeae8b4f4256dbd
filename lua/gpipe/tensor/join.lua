-- lua/gpipe/tensor/join.lua - tensors beside each other, in one shape, or along a diagonal: stack,
-- hstack and its kin, atleast_1d and its kin, block_diag, broadcast_tensors.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local check = require "gpipe.tensor.methods.check"

local join = {}

local function check_list(who, list)
  if is_tensor(list) or type(list) ~= "table" or #list == 0 then
    errors.raise("%s: the tensors are %s, expected a list of at least one", who, errors.show(list))
  end
  for i, t in ipairs(list) do
    if not is_tensor(t) then
      errors.raise("%s: element %d is %s, expected a tensor", who, i, errors.show(t))
    end
  end
end

-- ---- dimensions ------------------------------------------------------------------------------

local function at_least(who, t, most)
  if not is_tensor(t) then
    errors.raise("%s: the argument is %s, expected a tensor", who, errors.show(t))
  end
  local dims = t:dim()
  if dims >= most then return t end
  if dims == 0 then t = t:reshape { 1 } end
  if most > 1 and dims < 2 then t = t:unsqueeze(1) end
  return most > 2 and t:unsqueeze(3) or t
end

--- A tensor of at least one dimension.
--- ```lua
--- assert(gp.atleast_1d(gp.ones {}):dim() == 1)
--- ```
---@param t gpipe.Tensor
---@return gpipe.Tensor
function join.atleast_1d(t) return at_least("gp.atleast_1d", t, 1) end

--- A tensor of at least two dimensions; a vector is a row.
--- ```lua
--- assert(gp.atleast_2d(gp.ones {3}).shape[1] == 1)
--- ```
---@param t gpipe.Tensor
---@return gpipe.Tensor
function join.atleast_2d(t) return at_least("gp.atleast_2d", t, 2) end

--- A tensor of at least three dimensions; a matrix has depth 1.
--- ```lua
--- assert(gp.atleast_3d(gp.ones {3, 4}).shape[3] == 1)
--- ```
---@param t gpipe.Tensor
---@return gpipe.Tensor
function join.atleast_3d(t) return at_least("gp.atleast_3d", t, 3) end

-- ---- beside each other -----------------------------------------------------------------------

local function beside_each_other(who, list, most, d)
  check_list(who, list)
  local parts = {}
  for i, t in ipairs(list) do parts[i] = at_least(who, t, most) end
  return core.concat(parts, d)
end

--- Join tensors beside each other: along the second dimension, vectors along their only one.
--- ```lua
--- assert(gp.hstack({gp.ones {2}, gp.ones {3}}).shape[1] == 5)
--- ```
---@param list gpipe.Tensor[]
---@return gpipe.Tensor
function join.hstack(list)
  check_list("gp.hstack", list)
  return beside_each_other("gp.hstack", list, 1, list[1]:dim() < 2 and 1 or 2)
end

--- Join tensors below each other: along the first dimension, vectors as rows.
--- ```lua
--- assert(gp.vstack({gp.ones {3}, gp.ones {3}}).shape[1] == 2)
--- ```
---@param list gpipe.Tensor[]
---@return gpipe.Tensor
function join.vstack(list) return beside_each_other("gp.vstack", list, 2, 1) end

--- Join tensors behind each other: along the third dimension.
--- ```lua
--- assert(gp.dstack({gp.ones {2, 3}, gp.ones {2, 3}}).shape[3] == 2)
--- ```
---@param list gpipe.Tensor[]
---@return gpipe.Tensor
function join.dstack(list) return beside_each_other("gp.dstack", list, 3, 3) end

--- Join tensors beside each other, vectors as columns.
--- ```lua
--- assert(gp.column_stack({gp.ones {3}, gp.ones {3, 2}}).shape[2] == 3)
--- ```
---@param list gpipe.Tensor[]
---@return gpipe.Tensor
function join.column_stack(list)
  check_list("gp.column_stack", list)
  local columns = {}
  for i, t in ipairs(list) do columns[i] = t:dim() < 2 and t:reshape { t:numel(), 1 } or t end
  return core.concat(columns, 2)
end

--- Join tensors of one shape along a new dimension, by default the first.
--- ```lua
--- assert(gp.stack({gp.ones {2}, gp.zeros {2}}).shape[1] == 2)
--- ```
---@param list gpipe.Tensor[]
---@param d? integer
---@return gpipe.Tensor
function join.stack(list, d)
  if type(list) ~= "table" or #list == 0 then
    errors.raise("gp.stack: the tensors are %s, expected a list of at least one", errors.show(list))
  end
  local parts = {}
  for i, t in ipairs(list) do
    if getmetatable(t) ~= "gpipe.Tensor" then
      errors.raise("gp.stack: element %d is %s, expected a tensor", i, errors.show(t))
    end
    local have, want = table.concat(t.shape, "x"), table.concat(list[1].shape, "x")
    if have ~= want then
      errors.raise("gp.stack: element %d is %s, expected %s as the first", i, have, want)
    end
  end
  d = check.dim("gp.stack", d or 1, list[1]:dim() + 1)
  for i, t in ipairs(list) do parts[i] = t:unsqueeze(d) end
  return core.concat(parts, d)
end

--- A matrix with the given matrices along its diagonal and zeros elsewhere; vectors are rows.
--- ```lua
--- assert(gp.block_diag(gp.ones {1, 2}, gp.ones {2, 1}).shape[1] == 3)
--- ```
---@param ... gpipe.Tensor of at most two dimensions
---@return gpipe.Tensor
function join.block_diag(...)
  check.tensors("gp.block_diag", ...)
  local list, rows, columns, before = { ... }, {}, 0, 0
  for i, t in ipairs(list) do
    if t:dim() > 2 then
      errors.raise("gp.block_diag: argument %d has %d dimensions, expected at most 2", i, t:dim())
    end
    if t:dim() < 2 then list[i] = t:reshape { 1, t:numel() } end
    columns = columns + list[i]:size(2)
  end
  for i, t in ipairs(list) do
    rows[i] = t:pad { before, columns - before - t:size(2) }
    before = before + t:size(2)
  end
  if #rows == 0 then errors.raise "gp.block_diag: there are no tensors, expected at least one" end
  return core.concat(rows, 1)
end

-- ---- in one shape ----------------------------------------------------------------------------

--- All tensors expanded to the shape that they broadcast to. The results are views.
--- ```lua
--- local a, b = gp.broadcast_tensors(gp.ones {3, 1}, gp.ones {4})
--- assert(a.shape[2] == 4 and b.shape[1] == 3)
--- ```
---@param ... gpipe.Tensor
---@return gpipe.Tensor ...
function join.broadcast_tensors(...)
  local list, shape = { ... }, {}
  check_list("gp.broadcast_tensors", list)
  for i, t in ipairs(list) do
    local sizes = t.shape
    local more = #sizes - #shape
    if more > 0 then
      shape = table.move(shape, 1, #shape, more + 1)
      for d = 1, more do shape[d] = 1 end
    end
    for d = 1, #sizes do
      local at = #shape - #sizes + d
      if shape[at] == 1 then shape[at] = sizes[d] end
      if sizes[d] ~= 1 and sizes[d] ~= shape[at] then
        errors.raise("gp.broadcast_tensors: argument %d has size %d in dimension %d, the others %d",
          i, sizes[d], d, shape[at])
      end
    end
  end
  for i, t in ipairs(list) do list[i] = t:expand(shape) end
  return table.unpack(list)
end

return join
