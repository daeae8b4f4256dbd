-- lua/gpipe/io/npy.lua - one tensor in a .npy file, NumPy's own format.
--
-- Source: numpy.lib.format, versions 1 to 3: a magic word, the length of a header, the header (a
-- dictionary as Python prints it), the elements. The file is not trusted. Elements whose type is no
-- dtype here are converted if a dtype can hold them all: i1, i2 and u2 become i32, u4 and u8 i64.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local npy = {}

local MAGIC = "\x93NUMPY"
local ALIGN = 64 -- bytes: the elements begin at a multiple of this
local LONGEST = 10000 -- bytes of a header, the same limit as NumPy's
local MOST = 8 -- dimensions

local TYPES = {
  f32 = "<f4", f64 = "<f8", f16 = "<f2", i64 = "<i8", i32 = "<i4", u8 = "|u1", bool = "|b1",
}

--- The contents of a file that holds the tensor.
---@param tensor gpipe.Tensor
---@return string
function npy.encode(tensor)
  local descr = TYPES[tensor.dtype]
  if not descr then
    errors.raise('gp.save: a .npy file cannot hold %s, expected f32, f64, f16, i64, i32, u8 or '
      .. 'bool (convert with to("f32"))', tensor.dtype)
  end
  local sizes = table.concat(tensor.shape, ", ") .. (#tensor.shape == 1 and "," or "")
  local header = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"):format(descr, sizes)
  local length = #MAGIC + 4 + #header + 1
  header = header .. (" "):rep(-length % ALIGN) .. "\n"
  return table.concat { MAGIC, "\1\0", string.pack("<s2", header), tensor:bytes() }
end

-- ---- the header --------------------------------------------------------------------------------

-- The header's text and where the elements begin, from 0; or nil and what is wrong.
local function read_header(bytes)
  local most = math.min(bytes:numel(), #MAGIC + 6 + LONGEST)
  local text = most > 0 and bytes:narrow(1, 1, most):bytes() or ""
  if text:sub(1, #MAGIC) ~= MAGIC then return nil, "it does not begin as a .npy file does" end
  local major = text:byte(#MAGIC + 1)
  if not major or major < 1 or major > 3 then
    return nil, ("version %s, expected 1, 2 or 3"):format(major or "missing")
  end
  local format = major == 1 and "<I2" or "<I4"
  local good, length, first = pcall(string.unpack, format, text, #MAGIC + 3)
  if good and length > LONGEST then
    return nil, ("a header of %d bytes, expected at most %d"):format(length, LONGEST)
  end
  if not good or first + length - 1 > #text then return nil, "the header ends with the file" end
  return text:sub(first, first + length - 1), first + length - 1
end

-- Read the sizes of "(2, 3)"; nil if the text is no tuple, or has more than MOST sizes.
local function read_shape(text)
  local shape = {}
  for word in text:gmatch "[^,]+" do
    local size = word:match "^%s*(%d+)L?%s*$"
    if size then shape[#shape + 1] = math.tointeger(tonumber(size)) end
    if size and not math.tointeger(tonumber(size)) or not size and word:find "%S" then return end
  end
  return #shape <= MOST and shape or nil
end

-- How the values of the three keys are written. The patterns of a key are tried one after the other
-- at the same place.
local VALUES = {
  descr = { "^'([^']*)'()", '^"([^"]*)"()', "^(%[.*%])()" },
  fortran_order = { "^(True)()", "^(False)()" },
  shape = { "^(%([^()]*%))()" },
}

local function read_value(header, key, at)
  for _, pattern in ipairs(VALUES[key] or {}) do
    local value, after = header:match(pattern, at)
    if value then return value, after end
  end
end

-- Read the text of each value in a Python dictionary; nil if it does not have that form.
local function read_dictionary(header)
  local found, at = {}, header:match "^%s*{%s*()"
  while at do
    local key, value_at = header:match("^['\"]([%w_]+)['\"]%s*:%s*()", at)
    if not key then break end
    local value, after = read_value(header, key, value_at)
    if not value or found[key] then return nil end
    found[key] = value
    at = header:match("^%s*,%s*()", after) or after
  end
  return at and header:find("^%s*}%s*$", at) and found or nil
end

-- ---- elements ----------------------------------------------------------------------------------

-- Types that NumPy writes but no tensor can hold, by their letter.
local REFUSED = {
  O = "Python objects (a pickle)", S = "bytes", U = "texts", V = "records", c = "complex numbers",
  M = "dates", m = "spans of time",
}

-- "<f4" -> {kind = "f", bytes = 4, big = false}; or nil and what is wrong.
local function read_type(descr)
  if descr:sub(1, 1) == "[" then return nil, "elements are records of fields, expected numbers" end
  local order, kind, size = descr:match "^([<>|=]?)(%a)(%d*)"
  local bytes = math.tointeger(tonumber(size))
  local known = bytes and bytes <= 8 and #descr == #order + 1 + #size
    and core.element_dtype(kind, bytes)
  if known then return { kind = kind, bytes = bytes, big = order == ">" } end
  local what = REFUSED[kind] and ("are %s"):format(REFUSED[kind])
    or ("have the type %s, which no dtype here is"):format(errors.show(descr))
  return nil, ("elements %s, expected bool, i1 to i8, u1 to u8, f2, f4 or f8"):format(what)
end

local function read_fields(header)
  local found = read_dictionary(header)
  if not found or not (found.descr and found.fortran_order and found.shape) then
    return nil, "the header lacks descr, fortran_order or shape, or holds something else"
  end
  local element, why = read_type(found.descr)
  if not element then return nil, why end
  local shape = read_shape(found.shape:sub(2, -2))
  if not shape then
    return nil, ("the shape is %s, expected at most %d sizes"):format(errors.show(found.shape),
      MOST)
  end
  return { element = element, shape = shape, columns = found.fortran_order == "True" }
end

local function from_columns(tensor, shape)
  local order = {}
  for d = #shape, 1, -1 do order[#order + 1] = d end
  return tensor:permute(order):contiguous()
end

-- Decode the bytes of a file into a tensor; or return nil and what is wrong.
local function decode(bytes)
  local header, first = read_header(bytes)
  if not header then return nil, first --[[@as string]] end
  local fields, why = read_fields(header)
  if not fields then return nil, why end
  local shape, stored, element = fields.shape, {}, fields.element
  for d, size in ipairs(shape) do stored[fields.columns and #shape + 1 - d or d] = size end
  local tensor, message = core.elements_read(bytes, first, stored, element.kind, element.bytes,
    element.big)
  if not tensor then return nil, message end
  return fields.columns and #shape > 1 and from_columns(tensor, shape) or tensor
end

--- Decode the contents of a file into a tensor; or return nil and what is wrong.
---@param text string
---@return gpipe.Tensor?
---@return string? why
function npy.decode(text) return decode(core.frombytes(text, { #text }, "u8")) end

--- Write one tensor, the file whole or not at all. Errors: nil, message, code.
function npy.save(path, tensor) return core.file_write(path, npy.encode(tensor)) end

--- Read one tensor. Errors: nil, message, code: "format" with what is wrong.
function npy.load(path)
  local bytes, message, code = core.file_read(path)
  if not bytes then return nil, message, code end
  local tensor, why = decode(bytes)
  if not tensor then return nil, ("%s: %s"):format(path, why), "format" end
  return tensor
end

return npy
