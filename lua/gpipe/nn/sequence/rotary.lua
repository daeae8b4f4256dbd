-- lua/gpipe/nn/sequence/rotary.lua - rotary position embedding: queries and keys are rotated by
-- angles that grow with their position, so that their products depend only on distances.
-- Source: Su et al. 2021, "RoFormer"; the two orders of coordinates are those of GPT-NeoX
-- ("halves": i is paired with i + D / 2) and of the paper ("pairs": 2 i is paired with 2 i + 1).

local core = require "gpipe.core"
local check = require "gpipe.nn.check"
local create = require "gpipe.tensor.create"
local options = require "gpipe.options"

local rotary = {}

---@class nn.Rotary
---@field base number position p rotates pair i (from 0) of D / 2 by p base^(-2 i / D)
---@field style "halves"|"pairs"

local OPTIONS = {
  base = { type = "number", default = 10000, above = 0 },
  style = { choices = { "halves", "pairs" }, default = "halves" },
}

--- Read the option: nil or false means none, true the defaults; or it is a table.
---@param who string
---@param value any
---@param dim integer coordinates of a head. Errors: an odd number
---@return nn.Rotary?
function rotary.read(who, value, dim)
  if not value then return nil end
  local checked = options.check(who .. ": rotary", value ~= true and value or nil, OPTIONS)
  if dim % 2 == 1 then check.fail(who, "the size of a head", dim, "an even number with rotary") end
  return checked
end

-- The cosines and sines of all positions and pairs, as lists. They are cached in a weak table.
local tables = setmetatable({}, { __mode = "v" })

local function waves(length, dim, base)
  local key = ("%d %d %.17g"):format(length, dim, base)
  local made = tables[key]
  if made then return made end
  made = { cos = {}, sin = {} }
  for position = 0, length - 1 do
    for i = 0, dim // 2 - 1 do
      local angle, at = position * base ^ (-2 * i / dim), position * (dim // 2) + i + 1
      made.cos[at], made.sin[at] = math.cos(angle), math.sin(angle)
    end
  end
  tables[key] = made
  return made
end

--- Rotate each head by the angles of its position.
---@param how nn.Rotary
---@param x gpipe.Tensor [B, H, T, D]
---@return gpipe.Tensor of the same shape
function rotary.turn(how, x)
  local shape = x.shape
  local length, dim = shape[3], shape[4]
  local made = waves(length, dim, how.base)
  local pairs_of = how.style == "pairs" and { length, dim // 2, 1 } or { length, dim // 2 }
  local cos = create.tensor(made.cos, { dtype = x.dtype }):reshape(pairs_of)
  local sin = create.tensor(made.sin, { dtype = x.dtype }):reshape(pairs_of)
  local wide, axis = x, 4
  if how.style == "pairs" then
    wide, axis = x:reshape { shape[1], shape[2], length, dim // 2, 2 }, 5
  end
  local half = wide.shape[axis] // 2
  local a, b = wide:narrow(axis, 1, half), wide:narrow(axis, half + 1, half)
  return core.concat({ a * cos - b * sin, b * cos + a * sin }, axis):reshape(shape)
end

return rotary
