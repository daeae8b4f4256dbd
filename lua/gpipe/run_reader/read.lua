-- lua/gpipe/run_reader/read.lua - the small files of a run's folder: JSON that may be missing, old
-- or damaged.
--
-- They may come from any version of the program, or from another program: a field counts only if it
-- has the expected type.

local core = require "gpipe.core"

local read = {}

local LARGEST = 16 << 20 -- bytes of a file that is read whole

--- Read a whole file; nil where there is none, nil and the fault where it cannot be read. Links,
--- pipes and devices are refused: a folder of runs may hold other people's files.
---@param path string
---@return string?
---@return string? fault
function read.text(path)
  local text, fault = core.file_text(path, LARGEST)
  return text, fault
end

--- Read a JSON object; nil where the file is missing, nil and the fault where it holds none.
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
