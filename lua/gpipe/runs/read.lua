-- lua/gpipe/runs/read.lua - the small files of a run's folder: JSON that may be missing, old or
-- damaged.
--
-- What they hold was written by some version of the program, or by somebody else: a field counts
-- only where it is of the kind that is expected.

local core = require "gpipe.core"

local read = {}

local LARGEST = 16 << 20 -- bytes of a file that is read whole

--- A whole file; nil where there is none, nil and the fault where it cannot be read.
---@param path string
---@return string?
---@return string? fault
function read.text(path)
  local file, message, code = io.open(path, "rb")
  if not file then return nil, code ~= 2 and message or nil end -- 2: ENOENT
  local size = file:seek "end" -- files of /proc have none
  if size and size > LARGEST then
    file:close()
    return nil, ("%s: has %d bytes, expected at most %d"):format(path, size, LARGEST)
  end
  file:seek "set"
  local text, refused = file:read "a"
  file:close()
  return text, not text and ("%s: %s"):format(path, refused) or nil
end

--- A JSON object; nil where the file is missing, nil and the fault where it is none.
---@param path string
---@return table?
---@return string? fault
function read.object(path)
  local text, fault = read.text(path)
  if not text then return nil, fault end
  local value, message = core.json_decode(text)
  if type(value) == "table" then return value end
  return nil, ("%s: %s"):format(path, message or "is no JSON object")
end

--- A field that is a finite number, else nil.
---@param object any a table, or what it is not
---@param name string|integer
---@return number?
function read.number(object, name)
  local value = type(object) == "table" and object[name]
  return math.type(value) and value == value and math.abs(value) < math.huge and value or nil
end

--- A field that is a text, else nil.
---@param object any a table, or what it is not
---@param name string|integer
---@return string?
function read.string(object, name)
  local value = type(object) == "table" and object[name]
  return type(value) == "string" and value or nil
end

--- A field that is a table, else nil.
---@param object any a table, or what it is not
---@param name string|integer
---@return table?
function read.table(object, name)
  local value = type(object) == "table" and object[name]
  return type(value) == "table" and value or nil
end

return read
