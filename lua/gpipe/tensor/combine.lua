-- lua/gpipe/tensor/combine.lua - elements of several tensors in all combinations: meshgrid,
-- cartesian_prod, combinations, cdist.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local is_tensor = require "gpipe.tensor.is"
local check = require "gpipe.tensor.methods.check"

local combine = {}

local MOST_ROWS = 1 << 26 -- of combinations: more are a mistake

--- The coordinates of the points of a grid: for n vectors, n tensors of n dimensions; the k-th has
--- vector k along dimension k. `indexing = "xy"` exchanges the first two dimensions. The results
--- are views.
--- ```lua
--- local y, x = gp.meshgrid(gp.arange(1, 2), gp.arange(1, 3))
--- assert(y[2][3] == 2 and x[2][3] == 3)
--- ```
---@param first gpipe.Tensor of one dimension, as the others
---@param ... gpipe.Tensor|{indexing?: "ij"|"xy"} options come last
---@return gpipe.Tensor ...
function combine.meshgrid(first, ...)
  local list = { first, ... }
  local opts = type(list[#list]) == "table" and table.remove(list) or nil
  local o = options.check("gp.meshgrid", opts, {
    indexing = { type = "string", default = "ij", choices = { "ij", "xy" } },
  })
  local shape = {}
  for d, t in ipairs(list) do
    if not is_tensor(t) or t:dim() > 1 then
      errors.raise("gp.meshgrid: argument %d is %s, expected a tensor of one dimension", d,
        is_tensor(t) and ("one of %d dimensions"):format(t:dim()) or errors.show(t))
    end
    if t:dim() == 0 then list[d] = t:reshape { 1 } end
    shape[d] = t:numel()
  end
  if #list == 0 then errors.raise "gp.meshgrid: there are no tensors, expected at least one" end
  for d, t in ipairs(list) do
    local line = {}
    for i = 1, #shape do line[i] = i == d and shape[d] or 1 end
    list[d] = t:reshape(line):expand(shape)
    if o.indexing == "xy" and #shape > 1 then list[d] = list[d]:transpose(1, 2) end
  end
  return table.unpack(list)
end

--- The distances between all rows of two tensors, by the p-norm.
--- ```lua
--- assert(gp.cdist(gp.zeros {1, 2}, gp.tensor {{3, 4}}):item() == 5)
--- ```
---@param a gpipe.Tensor [.., m, d]
---@param b gpipe.Tensor [.., n, d]
---@param p? number 2 unless said
---@return gpipe.Tensor [.., m, n]
function combine.cdist(a, b, p)
  check.tensors("gp.cdist", a, b)
  if a:dim() < 2 or b:dim() < 2 or a:size(-1) ~= b:size(-1) then
    errors.raise("gp.cdist: the tensors are %s and %s, expected rows of one length",
      table.concat(a.shape, "x"), table.concat(b.shape, "x"))
  end
  return (a:unsqueeze(-2) - b:unsqueeze(-3)):norm(p, -1)
end

-- ---- rows ------------------------------------------------------------------------------------

local function check_vector(who, i, t)
  if is_tensor(t) and t:dim() == 1 then return end
  errors.raise("%s: argument %d is %s, expected a vector", who, i,
    is_tensor(t) and ("a tensor of %d dimensions"):format(t:dim()) or errors.show(t))
end

local function check_rows(who, rows)
  if rows <= MOST_ROWS then return end
  errors.raise("%s: there are %s combinations, expected at most %d", who, errors.show(rows),
    MOST_ROWS)
end

--- All rows that take one element of each vector; the last element changes fastest.
--- ```lua
--- assert(gp.cartesian_prod(gp.tensor {1, 2}, gp.tensor {3, 4, 5})[4][1] == 2)
--- ```
---@param first gpipe.Tensor of one dimension, as the others
---@param ... gpipe.Tensor
---@return gpipe.Tensor [rows, vectors], of one vector itself
function combine.cartesian_prod(first, ...)
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

-- Advance a list of ascending positions 1 .. n to the next list, in place (with repeated positions
-- or without); false after the last.
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

--- All rows of r elements of a vector, in their order; with `with_replacement` an element may be
--- repeated.
--- ```lua
--- assert(gp.combinations(gp.tensor {1, 2, 3})[3][2] == 3)
--- ```
---@param vector gpipe.Tensor of one dimension
---@param r? integer 2
---@param with_replacement? boolean false
---@return gpipe.Tensor [rows, r]
function combine.combinations(vector, r, with_replacement)
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

return combine
