-- lua/gpipe/tensor/methods/choose.lua - methods that select elements: by positions, by a mask, by
-- their place in a matrix.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

local function check_positions(who, tensor, positions)
  if type(positions) == "table" then return beside(tensor, core.tensor(positions, "i64")) end
  if getmetatable(positions) ~= "gpipe.Tensor" or positions.dtype ~= "i64" then
    errors.raise("%s: the positions are %s, expected an i64 tensor or a list", who,
      is_tensor(positions) and positions.dtype or errors.show(positions))
  end
  if positions:dim() ~= 1 then
    errors.raise("%s: the positions have %d dimensions, expected 1", who, positions:dim())
  end
  return positions
end

local FLOATS = { f32 = true, f64 = true, bf16 = true, f16 = true }

-- Check positions here, because the errors of the embedding op speak of ids.
local function check_range(positions, size)
  if core.tracing() then return end
  for row, at in ipairs(positions:totable()) do
    if at < 1 or at > size then
      errors.raise("index_select: position %d at row %d is outside 1..%d", at, row, size)
    end
  end
end

-- Select rows of integers: at once, or in a trace by the op that it knows.
local function whole_rows(tensor, positions)
  if not core.tracing() then return core.gather_rows(tensor:contiguous(), positions) end
  local shape, spread = tensor.shape, { positions.shape[1] }
  shape[1] = spread[1]
  for d = 2, #shape do spread[d] = 1 end
  return core.gather(tensor, positions:reshape(spread):expand(shape):contiguous(), 1)
end

-- Select rows of floats by the embedding op, which has a gradient.
local function rows(tensor, positions)
  local shape = tensor.shape
  if not FLOATS[tensor.dtype] then return whole_rows(tensor, positions) end
  local rest = table.move(shape, 2, #shape, 2, { positions.shape[1] })
  local inner = 1
  for d = 2, #shape do inner = inner * shape[d] end
  local good, y = pcall(core.embedding, positions - 1, tensor:reshape { shape[1], inner })
  if good then return y:reshape(rest) end
  if errors.code_of(y) == "range" then check_range(positions, shape[1]) end
  error(y, 0)
end

--- The given positions of dimension d, in the given order; they may repeat. A copy.
--- `gp.tensor({5, 6, 7}):index_select(1, {3, 1})[1] == 7`
--- Errors: a position outside 1 .. size.
---@param d integer
---@param positions gpipe.Tensor|integer[] i64, one dimension
---@return gpipe.Tensor
function Tensor:index_select(d, positions)
  d = check.dim("index_select", d, self:dim())
  positions = check_positions("index_select", self, positions)
  if d == 1 then return rows(self, positions) end
  return rows(self:transpose(1, d):contiguous(), positions):transpose(1, d)
end

-- A bool matrix over the last two dimensions that is true where column - row <= k.
local function up_to(tensor, k)
  local m, n = tensor:size(-2), tensor:size(-1)
  local row = core.arange(1, math.max(m, 1), 1, "i64"):narrow(1, 1, m):reshape(m, 1)
  local column = core.arange(1, math.max(n, 1), 1, "i64"):narrow(1, 1, n):reshape(1, n)
  return beside(tensor, (column - row):le(k))
end

local function check_matrix(who, tensor, k)
  if tensor:dim() < 2 then
    errors.raise("%s: the tensor has %d dimensions, expected at least 2", who, tensor:dim())
  end
  return k == nil and 0 or check.count(who .. ": k", k, math.mininteger)
end

--- The lower triangle of matrices, zero above diagonal k.
--- `gp.ones({2, 2}):tril():sum():item() == 3`
---@param k? integer 0 is the main diagonal, negative below it
---@return gpipe.Tensor
function Tensor:tril(k)
  k = check_matrix("tril", self, k)
  return core.where(up_to(self, k), self, 0)
end

--- The upper triangle of matrices, zero below diagonal k.
--- `gp.ones({2, 2}):triu(1):sum():item() == 1`
---@param k? integer 0 is the main diagonal, negative below it
---@return gpipe.Tensor
function Tensor:triu(k)
  k = check_matrix("triu", self, k)
  return core.where(up_to(self, k - 1), 0, self)
end

return Tensor
