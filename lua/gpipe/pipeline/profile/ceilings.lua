-- lua/gpipe/pipeline/profile/ceilings.lua - the best rates of a device: bytes a second of a copy,
-- FLOP a second of a large product.
--
-- They are measured on the device itself, once for each pipeline, so that shares do not depend on
-- data sheets.

local ceilings = {}

local DTYPES = { f64 = true, f32 = true, bf16 = true, f16 = true }

local function is_rate(v) return type(v) == "number" and v > 0 end

--- Say what is wrong with the option; nil if nothing is.
function ceilings.check(v)
  local wanted = "false, or a table {copy = bytes a second, gemm = {f32 = FLOP a second}}"
  if v == false then return nil end
  if type(v) ~= "table" then return wanted end
  for key, value in pairs(v) do
    if key == "copy" and not is_rate(value) then return wanted end
    if key == "gemm" and type(value) ~= "table" then return wanted end
    if key ~= "copy" and key ~= "gemm" then return wanted end
  end
  for dtype, value in pairs(v.gemm or {}) do
    if not DTYPES[dtype] or not is_rate(value) then return wanted end
  end
  return nil
end

-- The dtypes in which products take much of the time; only these are worth a measurement.
local function multiplied(rows)
  local dtypes = {}
  for _, row in ipairs(rows) do
    if DTYPES[row.dtype] and row.flop > 8 * row.bytes then dtypes[row.dtype] = true end
  end
  return dtypes
end

--- The ceilings of device d, {copy =, gemm = {dtype = ..}}: as given, or measured if they are not
--- known yet. A device without memory for the measurement has none.
---@param pipe table
---@param d integer from 1
---@param rows gpipe.ProfileRow[]
---@param given table|false|nil
---@return table
function ceilings.of(pipe, d, rows, given)
  if given ~= nil then return { copy = given and given.copy, gemm = given and given.gemm or {} } end
  pipe.ceilings = pipe.ceilings or {}
  local known = pipe.ceilings[d] or { copy = pipe.core:ceiling(d - 1), gemm = {} }
  pipe.ceilings[d] = known
  for dtype in pairs(multiplied(rows)) do
    known.gemm[dtype] = known.gemm[dtype] or pipe.core:ceiling(d - 1, dtype)
  end
  return known
end

return ceilings
