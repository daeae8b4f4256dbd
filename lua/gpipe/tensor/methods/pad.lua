-- lua/gpipe/tensor/methods/pad.lua - `t:pad`: adds elements around a tensor, or removes some.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"

local Tensor = {}

local LARGEST = 1 << 40 -- positions that a dimension may grow by: no memory has more

-- The position, of n, that an index outside of 1 .. n shows.
local SHOWN = {
  reflect = function(i, n) return i < 1 and 2 - i or 2 * n - i end,
  replicate = function(i, n) return i < 1 and 1 or n end,
  circular = function(i, n) return i < 1 and i + n or i - n end,
}

-- How many positions a dimension of n can show on one side.
local MOST = {
  reflect = function(n) return n - 1 end,
  replicate = function(n) return n > 0 and math.huge or 0 end,
  circular = function(n) return n end,
}

local function check_pads(pads, rank)
  local given, list = type(pads) == "table" and pads or {}, {}
  for i, n in ipairs(given) do list[i] = math.type(n) and math.tointeger(n) end
  if #list == 0 or #list ~= #given or #list % 2 ~= 0 or #list > 2 * rank then
    errors.raise("pad: pads is %s, expected pairs of integers {before, behind}, the last dimension "
      .. "first, of at most %d dimensions", errors.show(pads), rank)
  end
  return list
end

local function check_mode(mode, value)
  if mode ~= "constant" and not SHOWN[mode] then
    errors.raise("pad: mode is %s, expected \"constant\", \"reflect\", \"replicate\" or "
      .. "\"circular\"", errors.show(mode))
  end
  if type(value) ~= "number" then
    errors.raise("pad: value is %s, expected a number", errors.show(value))
  end
end

-- Remove the positions that negative pads take away.
local function crop(x, d, before, behind)
  local n = x.shape[d]
  local first, last = 1 + math.max(-before, 0), n - math.max(-behind, 0)
  if last < first - 1 then
    errors.raise("pad: dimension %d has size %d, %d and %d cannot be taken away", d, n, -before,
      -behind)
  end
  return last - first + 1 == n and x or x:narrow(d, first, last - first + 1)
end

local function surround(x, d, before, behind, value)
  local parts = { x }
  local function add(place, n)
    local shape = x.shape
    shape[d] = n
    if n > 0 then
      table.insert(parts, place, beside(x, create.full(shape, value, { dtype = x.dtype })))
    end
  end
  add(1, before)
  add(#parts + 1, behind)
  return #parts > 1 and core.concat(parts, d) or x
end

local function show_own(x, d, before, behind, mode)
  local n, positions = x.shape[d], {}
  local most = MOST[mode](n)
  if before > most or behind > most then
    errors.raise("pad: %d in mode %s, expected at most %d: dimension %d has size %d",
      math.max(before, behind), mode, most, d, n)
  end
  for i = 1 - before, n + behind do
    positions[#positions + 1] = (i < 1 or i > n) and SHOWN[mode](i, n) or i
  end
  return x:index_select(d, beside(x, create.tensor(positions, { dtype = "i64" })))
end

--- Add positions around the last dimensions: pads = {before, behind} for the last dimension, then
--- for the one before it, and so on; negative numbers remove positions. A copy, or a view if
--- nothing is added.
---
--- mode: "constant" (value, by default 0), "reflect" (the elements beside the border, without it),
--- "replicate" (those at the border) or "circular" (those of the other side).
--- Errors: pads that are not pairs, or more than there are dimensions or positions to show.
--- Source: PyTorch torch.nn.functional.pad, and its order.
--- `gp.tensor({1, 2, 3}):pad({2, 1}, "reflect")[1] == 3`
---@param pads integer[]
---@param mode? "constant"|"reflect"|"replicate"|"circular"
---@param value? number
---@return gpipe.Tensor
function Tensor:pad(pads, mode, value)
  local list, rank, result = check_pads(pads, self:dim()), self:dim(), self
  mode, value = mode or "constant", value or 0
  check_mode(mode, value)
  for i = 1, #list, 2 do
    local d, before, behind = rank - i // 2, list[i], list[i + 1]
    result = crop(result, d, before, behind)
    before, behind = math.max(before, 0), math.max(behind, 0)
    if before > math.maxinteger - behind or before + behind > LARGEST then
      errors.raise("pad: %d before and %d behind, expected at most 2^40 together", before, behind)
    end
    if before + behind > 0 then
      result = mode == "constant" and surround(result, d, before, behind, value)
        or show_own(result, d, before, behind, mode)
    end
  end
  return result
end

return Tensor
