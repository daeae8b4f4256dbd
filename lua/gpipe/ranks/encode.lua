-- lua/gpipe/ranks/encode.lua - values as texts that another rank reads: nil, booleans, numbers,
-- strings, tensors, and plain tables of these.

local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local plain = require "gpipe.plain"

local encode = {}

local MOST_DEPTH = 64

local write

local function write_tensor(who, t, parts)
  local shape = t.shape
  parts[#parts + 1] = "T" .. ("s4"):pack(t.dtype) .. ("B"):pack(#shape)
  for _, size in ipairs(shape) do parts[#parts + 1] = ("i8"):pack(size) end
  local good, bytes = pcall(t.bytes, t:contiguous())
  if not good then errors.raise("%s: %s", who, bytes) end
  parts[#parts + 1] = ("s8"):pack(bytes)
end

-- Keys are written in the order of `next`: the reader makes a table of its own.
local function write_table(who, value, parts, depth)
  if not plain(value) then
    errors.raise("%s: the value is %s with a metatable, expected a plain table", who,
      errors.show(value))
  end
  parts[#parts + 1] = "{"
  for key, element in next, value do
    write(who, key, parts, depth + 1)
    write(who, element, parts, depth + 1)
  end
  parts[#parts + 1] = "}"
end

function write(who, value, parts, depth)
  if depth > MOST_DEPTH then
    errors.raise("%s: tables are nested more than %d deep, expected fewer (or no cycle)", who,
      MOST_DEPTH)
  end
  local kind = math.type(value) or type(value)
  if kind == "nil" then
    parts[#parts + 1] = "N"
  elseif kind == "boolean" then
    parts[#parts + 1] = value and "1" or "0"
  elseif kind == "integer" then
    parts[#parts + 1] = "I" .. ("i8"):pack(value)
  elseif kind == "float" then
    parts[#parts + 1] = "F" .. ("d"):pack(value)
  elseif kind == "string" then
    parts[#parts + 1] = "S" .. ("s8"):pack(value)
  elseif is_tensor(value) then
    write_tensor(who, value, parts)
  elseif kind == "table" then
    write_table(who, value, parts, depth)
  else
    errors.raise("%s: the value is %s, expected a number, a string, a boolean, a tensor or a "
      .. "plain table of these", who, errors.show(value))
  end
end

--- The text of a value.
---@param who string
---@param value any
---@return string
function encode.write(who, value)
  local parts = {}
  write(who, value, parts, 1)
  return table.concat(parts)
end

local read

local function read_tensor(text, at)
  local dtype, rank, bytes
  dtype, rank, at = ("s4B"):unpack(text, at)
  local shape = {}
  for d = 1, rank do shape[d], at = ("i8"):unpack(text, at) end
  bytes, at = ("s8"):unpack(text, at)
  return create.frombytes(bytes, shape, dtype), at
end

local function read_table(text, at)
  local value = {}
  while text:sub(at, at) ~= "}" do
    local key, element
    key, at = read(text, at)
    element, at = read(text, at)
    value[key] = element
  end
  return value, at + 1
end

function read(text, at)
  local kind = text:sub(at, at)
  if kind == "" then errors.raise "a value of another rank ends too soon" end
  if kind == "N" then return nil, at + 1 end
  if kind == "0" or kind == "1" then return kind == "1", at + 1 end
  if kind == "I" then return ("i8"):unpack(text, at + 1) end
  if kind == "F" then return ("d"):unpack(text, at + 1) end
  if kind == "S" then return ("s8"):unpack(text, at + 1) end
  if kind == "T" then return read_tensor(text, at + 1) end
  return read_table(text, at + 1)
end

--- The value of a text that encode.write has made.
---@param text string
---@return any
function encode.read(text) return (read(text, 1)) end

return encode
