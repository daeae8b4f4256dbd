-- lua/gpipe/tensor/join.lua - functions of several tensors at once, by torch's names: beside
-- each other, in one shape, in all combinations.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local check = require "gpipe.tensor.methods.check"

local together = {}

local MOST_ROWS = 1 << 26 -- of combinations: more are a mistake

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

local function check_vector(who, i, t)
  if is_tensor(t) and t:dim() == 1 then return end
  errors.raise("%s: argument %d is %s, expected a vector", who, i,
    is_tensor(t) and ("a tensor of %d dimensions"):format(t:dim()) or errors.show(t))
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
function together.atleast_1d(t) return at_least("gp.atleast_1d", t, 1) end

--- A tensor of at least two dimensions; a vector is a row.
--- ```lua
--- assert(gp.atleast_2d(gp.ones {3}).shape[1] == 1)
--- ```
---@param t gpipe.Tensor
---@return gpipe.Tensor
function together.atleast_2d(t) return at_least("gp.atleast_2d", t, 2) end

--- A tensor of at least three dimensions; a matrix has depth 1.
--- ```lua
--- assert(gp.atleast_3d(gp.ones {3, 4}).shape[3] == 1)
--- ```
---@param t gpipe.Tensor
---@return gpipe.Tensor
function together.atleast_3d(t) return at_least("gp.atleast_3d", t, 3) end

-- ---- beside each other -----------------------------------------------------------------------

local function beside_each_other(who, list, most, d)
  check_list(who, list)
  local parts = {}
  for i, t in ipairs(list) do parts[i] = at_least(who, t, most) end
  return core.concat(parts, d)
end

--- Beside each other: along the second dimension, vectors along their one.
--- ```lua
--- assert(gp.hstack({gp.ones {2}, gp.ones {3}}).shape[1] == 5)
--- ```
---@param list gpipe.Tensor[]
---@return gpipe.Tensor
function together.hstack(list)
  check_list("gp.hstack", list)
  return beside_each_other("gp.hstack", list, 1, list[1]:dim() < 2 and 1 or 2)
end

--- Below each other: along the first dimension, vectors as rows.
--- ```lua
--- assert(gp.vstack({gp.ones {3}, gp.ones {3}}).shape[1] == 2)
--- ```
---@param list gpipe.Tensor[]
---@return gpipe.Tensor
function together.vstack(list) return beside_each_other("gp.vstack", list, 2, 1) end

--- Behind each other: along the third dimension.
--- ```lua
--- assert(gp.dstack({gp.ones {2, 3}, gp.ones {2, 3}}).shape[3] == 2)
--- ```
---@param list gpipe.Tensor[]
---@return gpipe.Tensor
function together.dstack(list) return beside_each_other("gp.dstack", list, 3, 3) end

--- Beside each other, vectors as columns.
--- ```lua
--- assert(gp.column_stack({gp.ones {3}, gp.ones {3, 2}}).shape[2] == 3)
--- ```
---@param list gpipe.Tensor[]
---@return gpipe.Tensor
function together.column_stack(list)
  check_list("gp.column_stack", list)
  local columns = {}
  for i, t in ipairs(list) do columns[i] = t:dim() < 2 and t:reshape { t:numel(), 1 } or t end
  return core.concat(columns, 2)
end

-- ---- in one shape ----------------------------------------------------------------------------

--- All tensors in the one shape that they broadcast to. Views.
--- ```lua
--- local a, b = gp.broadcast_tensors(gp.ones {3, 1}, gp.ones {4})
--- assert(a.shape[2] == 4 and b.shape[1] == 3)
--- ```
---@param ... gpipe.Tensor
---@return gpipe.Tensor ...
function together.broadcast_tensors(...)
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

-- ---- combinations ----------------------------------------------------------------------------

local function check_rows(who, rows)
  if rows <= MOST_ROWS then return end
  errors.raise("%s: there are %s combinations, expected at most %d", who, errors.show(rows),
    MOST_ROWS)
end

--- All rows of one element of each vector, the last one changing first.
--- ```lua
--- assert(gp.cartesian_prod(gp.tensor {1, 2}, gp.tensor {3, 4, 5})[4][1] == 2)
--- ```
---@param first gpipe.Tensor of one dimension, as the others
---@param ... gpipe.Tensor
---@return gpipe.Tensor [rows, vectors], of one vector itself
function together.cartesian_prod(first, ...)
  local list, rows, before, columns = { first, ... }, 1.0, 1, {}
  for i = 1, select("#", ...) + 1 do
    check_vector("gp.cartesian_prod", i, list[i])
    rows = rows * list[i]:numel()
  end
  check_rows("gp.cartesian_prod", rows)
  if #list == 1 then return first end
  rows = math.tointeger(rows)
  for i, t in ipairs(list) do
    local n = t:numel()
    local behind = rows == 0 and 0 or rows // (before * n)
    columns[i] = t:reshape { 1, n, 1 }:expand { before, n, behind }:reshape { rows, 1 }
    before = before * n
  end
  return core.concat(columns, 2)
end

-- The next r ascending positions below n + 1 in their order (repeated ones allowed or not), in
-- place; false behind the last.
local function advance(at, n, repeated)
  for k = #at, 1, -1 do
    if at[k] < (repeated and n or n - #at + k) then
      at[k] = at[k] + 1
      for j = k + 1, #at do at[j] = at[j - 1] + (repeated and 0 or 1) end
      return true
    end
  end
  return false
end

local function count_of(n, r)
  local count = 1.0
  for k = 1, r do count = count * (n - r + k) / k end
  return math.max(count, 0)
end

--- All rows of r elements of a vector, in their order; with `with_replacement` also the same one
--- again.
--- ```lua
--- assert(gp.combinations(gp.tensor {1, 2, 3})[3][2] == 3)
--- ```
---@param vector gpipe.Tensor of one dimension
---@param r? integer 2
---@param with_replacement? boolean false
---@return gpipe.Tensor [rows, r]
function together.combinations(vector, r, with_replacement)
  local who = "gp.combinations"
  check_vector(who, 1, vector)
  r = check.count(who .. ": r", r or 2, 1)
  local n, places = vector:numel(), {}
  check_rows(who, r > MOST_ROWS and r or count_of(with_replacement and n + r - 1 or n, r))
  local at = {}
  for k = 1, r do at[k] = with_replacement and 1 or k end
  local more = n > 0 and (with_replacement or r <= n)
  while more do
    table.move(at, 1, r, #places + 1, places)
    more = advance(at, n, with_replacement)
  end
  if #places == 0 then return vector:narrow(1, 1, 0):reshape { 0, r } end
  return vector:index_select(1, places):reshape { #places // r, r }
end

return together
