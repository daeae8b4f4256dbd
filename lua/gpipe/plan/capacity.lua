-- lua/gpipe/plan/capacity.lua - how much memory a device has, as people write it: bytes, or "8GiB".
--
-- Only binary units are taken: between 8 GB and 8 GiB lie 0.6 GB, which is more than many stages
-- have to spare.

local errors = require "gpipe.errors"

local capacity = {}

local UNITS = { KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30, TiB = 1 << 40 }
local WANTED = 'a number of bytes above 0, or a text such as "8GiB" (KiB, MiB, GiB or TiB)'
local MOST = 2.0 ^ 62 -- bytes: sums of several memories stay integers

-- "8 GB" -> "8GiB": what was probably meant.
local function near(text)
  local digits, letter = text:upper():match "^%s*(%d+%.?%d*)%s*([KMGT])I?B?%s*$"
  return digits and digits .. letter .. "iB"
end

-- The bytes of a number or a text; nil if it is neither.
local function read(value)
  local bytes
  if type(value) == "number" then
    bytes = value
  elseif type(value) == "string" then
    local digits, unit = value:match "^(%d+%.?%d*)(%a+)$"
    bytes = digits and UNITS[unit] and tonumber(digits) * UNITS[unit]
  end
  if not bytes or not (bytes >= 1 and bytes < MOST) then return nil end
  return math.floor(bytes)
end

--- The bytes of a memory.
--- Errors: neither a number above 0 nor a text with a binary unit.
---@param who string for errors: "gp.plan: devices[1]"
---@param value number|string
---@return integer
function capacity.bytes(who, value)
  local bytes = read(value)
  if bytes then return bytes end
  local meant = type(value) == "string" and near(value)
  errors.raise("%s: memory is %s, expected %s%s", who, errors.show(value), WANTED,
    meant and read(meant) and (" (did you mean '%s'?)"):format(meant) or "")
end

return capacity
