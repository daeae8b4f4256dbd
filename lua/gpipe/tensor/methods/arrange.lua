-- lua/gpipe/tensor/methods/arrange.lua - more methods that change the shape: they move and split
-- dimensions, take diagonals, and form products of shapes.

local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

--- A list with the part at each position of a dimension, by default the first, which disappears.
--- Views. `#gp.ones({3, 2}):unbind() == 3`
---@param d? integer
---@return gpipe.Tensor[]
function Tensor:unbind(d)
  d = check.dim("unbind", d or 1, self:dim())
  local list = {}
  for i = 1, self:size(d) do list[i] = self:select(d, i) end
  return list
end

--- Split dimension d into several with the given sizes; one may be -1. A view where possible.
--- `gp.ones({6, 2}):unflatten(1, {2, 3}).shape[2] == 3`
---@param d integer
---@param sizes integer[]
---@return gpipe.Tensor
function Tensor:unflatten(d, sizes)
  d = check.dim("unflatten", d, self:dim())
  if type(sizes) ~= "table" or #sizes == 0 then
    errors.raise("unflatten: sizes is %s, expected a list such as {2, 3}", errors.show(sizes))
  end
  check.no_names("unflatten", sizes)
  local shape, known, open = self.shape, 1, nil
  for i, size in ipairs(sizes) do
    size = check.count(("unflatten: size %d"):format(i), size, -1)
    if size == -1 and open then
      errors.raise "unflatten: sizes has several -1, expected at most one"
    end
    if size == -1 then open = i else known = known * size end
  end
  local list = table.move(sizes, 1, #sizes, 1, {})
  if open then list[open] = known > 0 and shape[d] // known or 0 end
  if known * (open and list[open] or 1) ~= shape[d] then
    errors.raise("unflatten: the sizes %s make %d, expected %d, dimension %d",
      table.concat(sizes, "x"), known, shape[d], d)
  end
  local made = table.move(list, 1, #list, d, table.move(shape, 1, d - 1, 1, {}))
  return self:reshape(table.move(shape, d + 1, #shape, #made + 1, made))
end

-- Check a list of dimensions, from 1; none may occur twice.
local function each_once(list, rank)
  check.no_names("movedim", list)
  local dims, seen = {}, {}
  for i, d in ipairs(list) do
    dims[i] = check.dim("movedim", d, rank)
    if seen[dims[i]] then errors.raise("movedim: dimension %d is given twice", dims[i]) end
    seen[dims[i]] = true
  end
  return dims, seen
end

--- Move a dimension, or several, to other places; the others keep their order. A view.
--- `gp.ones({2, 3, 4}):movedim(1, 3).shape[3] == 2`
---@param from integer|integer[]
---@param to integer|integer[] as many places
---@return gpipe.Tensor
function Tensor:movedim(from, to)
  local rank = self:dim()
  local sources, moved = each_once(type(from) == "table" and from or { from }, rank)
  local places = each_once(type(to) == "table" and to or { to }, rank)
  if #sources ~= #places then
    errors.raise("movedim: there are %d dimensions and %d places, expected as many", #sources,
      #places)
  end
  local order, rest = {}, {}
  for i, place in ipairs(places) do order[place] = sources[i] end
  for d = 1, rank do
    if not moved[d] then rest[#rest + 1] = d end
  end
  for place = 1, rank do
    if not order[place] then order[place] = table.remove(rest, 1) end
  end
  return rank == 0 and self or self:permute(order)
end

--- Diagonal k of the last two dimensions, as the last dimension. `gp.eye(3):diagonal()[2] == 1`
---@param k? integer 0 is the main diagonal, above it positive, below it negative
---@return gpipe.Tensor
function Tensor:diagonal(k)
  k = k == nil and 0 or check.count("diagonal: k", k, math.mininteger)
  if self:dim() < 2 then
    errors.raise("diagonal: the tensor has %d dimensions, expected at least 2", self:dim())
  end
  local shape, m, n = self.shape, self:size(-2), self:size(-1)
  local flat = table.move(shape, 1, #shape - 2, 1, {})
  flat[#flat + 1] = m * n
  local count = math.max(math.min(m + math.min(k, 0), n - math.max(k, 0)), 0)
  local x = self:reshape(flat)
  if count == 0 then return x:narrow(-1, 1, 0) end
  return core.every(x, #flat, 1 + math.max(k, 0) + math.max(-k, 0) * n, count, n + 1)
end

--- Put the last dimension on diagonal k of matrices, with zeros elsewhere.
--- `gp.ones({2, 3}):diag_embed().shape[3] == 3`
---@param k? integer
---@return gpipe.Tensor
function Tensor:diag_embed(k)
  k = k == nil and 0 or check.count("diag_embed: k", k, math.mininteger)
  if self:dim() == 0 then
    errors.raise "diag_embed: the tensor has 0 dimensions, expected at least 1"
  end
  local n = self:size(-1) + math.abs(k)
  local x = self:pad(k < 0 and { 0, -k } or { 0, k })
  local at = core.arange(1, math.max(n, 1), 1, "i64"):narrow(1, 1, n)
  local is_diagonal = beside(self, (at:reshape { 1, n } - at:reshape { n, 1 }):eq(k))
  return core.where(is_diagonal, x:unsqueeze(k < 0 and -2 or -1), 0)
end

local function other_tensor(who, other)
  if is_tensor(other) then return other end
  errors.raise("%s: the other is %s, expected a tensor", who, errors.show(other))
end

--- The cross product of vectors with three elements along a dimension, by default the last.
--- `gp.tensor({1, 0, 0}):cross(gp.tensor {0, 1, 0})[3] == 1`
---@param other gpipe.Tensor
---@param d? integer
---@return gpipe.Tensor
function Tensor:cross(other, d)
  d = check.dim("cross", d or -1, self:dim())
  other_tensor("cross", other)
  if self:size(d) ~= 3 or other:dim() ~= self:dim() or other:size(d) ~= 3 then
    errors.raise("cross: dimension %d has sizes %d and %s, expected 3", d, self:size(d),
      other:dim() == self:dim() and other:size(d) or "none")
  end
  return self:roll(-1, d) * other:roll(-2, d) - self:roll(-2, d) * other:roll(-1, d)
end

--- The Kronecker product: each element of this tensor times the whole other tensor.
--- `gp.tensor({{1, 2}}):kron(gp.ones {2, 2}).shape[2] == 4`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:kron(other)
  local a, b = self, other_tensor("kron", other)
  while a:dim() < b:dim() do a = a:unsqueeze(1) end
  while b:dim() < a:dim() do b = b:unsqueeze(1) end
  local left, right, shape = {}, {}, {}
  for d = 1, a:dim() do
    local m, n = a:size(d), b:size(d)
    left[2 * d - 1], left[2 * d], right[2 * d - 1], right[2 * d] = m, 1, 1, n
    shape[d] = m * n
  end
  return (a:reshape(left) * b:reshape(right)):reshape(shape)
end

--- Like gather, but positions and tensor broadcast in the other dimensions; without d it takes
--- elements in row-major order.
--- `gp.tensor({{5, 6}}):take_along_dim(gp.tensor({{2}}, {dtype = "i64"}), 2)[1][1] == 6`
---@param positions gpipe.Tensor i64
---@param d? integer
---@return gpipe.Tensor
function Tensor:take_along_dim(positions, d)
  other_tensor("take_along_dim", positions)
  if d == nil then
    return self:reshape { self:numel() }:gather(1, positions:reshape { positions:numel() })
  end
  d = check.dim("take_along_dim", d, self:dim())
  if positions:dim() ~= self:dim() then
    errors.raise("take_along_dim: the positions have %d dimensions, expected %d, as the tensor",
      positions:dim(), self:dim())
  end
  local mine, theirs = self.shape, positions.shape
  for k = 1, #mine do
    if k ~= d then
      local size = mine[k] == 1 and theirs[k] or mine[k]
      mine[k], theirs[k] = size, size
    end
  end
  return self:expand(mine):gather(d, positions:expand(theirs))
end

return Tensor
