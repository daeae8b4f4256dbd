-- lua/gpipe/io/npy.lua - one tensor in a .npy file, NumPy's own format.
--
-- Source: numpy.lib.format, versions 1 to 3: a magic word, the length of a header, the header (a
-- dictionary as Python prints it), the elements. The file is not trusted.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local npy = {}

local MAGIC = "\x93NUMPY"
local ALIGN = 64 -- bytes: the elements begin at a multiple

local TYPES = {
  f32 = "<f4", f64 = "<f8", f16 = "<f2", i64 = "<i8", i32 = "<i4", u8 = "|u1", bool = "|b1",
}
local DTYPES = {}
for dtype, descr in pairs(TYPES) do DTYPES[descr] = dtype end

--- The text of a file that holds the tensor.
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

-- Where the header ends and its text; or nil and what is wrong.
local function read_header(text)
  if text:sub(1, #MAGIC) ~= MAGIC then return nil, "it does not begin as a .npy file does" end
  local major = text:byte(#MAGIC + 1)
  if not major or major < 1 or major > 3 then
    return nil, ("version %s, expected 1, 2 or 3"):format(major or "missing")
  end
  local format = major == 1 and "<s2" or "<s4"
  local good, header, first = pcall(string.unpack, format, text, #MAGIC + 3)
  if not good then return nil, "the header ends with the file" end
  return header, first
end

local MOST = 8 -- dimensions

-- "(2, 3)" -> {2, 3}
local function read_shape(sizes)
  local shape = {}
  for word in sizes:gmatch "[^,]+" do
    local size = word:match "^%s*(%d+)L?%s*$"
    if not size and word:find "%S" then return nil end
    if size then shape[#shape + 1] = math.tointeger(tonumber(size)) or -1 end
  end
  return shape
end

local function read_fields(header)
  local descr = header:match "'descr'%s*:%s*'([^']*)'"
  local order = header:match "'fortran_order'%s*:%s*(%a+)"
  local sizes = header:match "'shape'%s*:%s*%(([^)]*)%)"
  if not descr or not order or not sizes then
    return nil, "the header lacks descr, fortran_order or shape"
  end
  local dtype = DTYPES[descr] or DTYPES[descr:gsub("^[=<]", "<")]
  if not dtype then return nil, ("elements of type '%s', which no dtype here is"):format(descr) end
  local shape = read_shape(sizes)
  if not shape or #shape > MOST then
    return nil, ("the shape is (%s), expected at most %d sizes"):format(sizes, MOST)
  end
  return { dtype = dtype, shape = shape, columns = order == "True" }
end

-- Bytes of so many elements; nil where no file could hold them.
local function bytes_of(fields)
  local count = 1
  for _, size in ipairs(fields.shape) do
    if size < 0 or size > 0 and count > (1 << 62) // size then return nil end
    count = count * size
  end
  return count * core.dtype_size(fields.dtype)
end

local function from_columns(tensor, shape)
  local order = {}
  for d = #shape, 1, -1 do order[#order + 1] = d end
  return tensor:permute(order):contiguous()
end

--- The tensor that the text of a file holds; or nil and what is wrong with it.
---@param text string
---@return gpipe.Tensor?
---@return string? why
function npy.decode(text)
  local header, first = read_header(text)
  if not header then return nil, first --[[@as string]] end
  local fields, why = read_fields(header)
  if not fields then return nil, why end
  local wanted, have = bytes_of(fields), #text - first + 1
  if wanted ~= have then
    return nil, ("%d bytes of elements, expected %s"):format(have, wanted or "fewer than 2^62")
  end
  local shape, stored = fields.shape, {}
  for d, size in ipairs(shape) do stored[fields.columns and #shape + 1 - d or d] = size end
  local good, tensor = pcall(core.frombytes, text:sub(first), stored, fields.dtype)
  if not good then return nil, tensor:gsub("^.-: ", "", 1) end
  return fields.columns and #shape > 1 and from_columns(tensor, shape) or tensor
end

--- Write one tensor, whole or not at all. Errors: nil, message, code.
function npy.save(path, tensor) return core.file_write(path, npy.encode(tensor)) end

--- Read one. Errors: nil, message, code: "format" with what is wrong.
function npy.load(path)
  local bytes, message, code = core.file_read(path)
  if not bytes then return nil, message, code end
  local tensor, why = npy.decode(bytes:bytes())
  if not tensor then return nil, ("%s: %s"):format(path, why), "format" end
  return tensor
end

return npy
