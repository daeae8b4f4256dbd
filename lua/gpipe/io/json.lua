-- lua/gpipe/io/json.lua - Lua values as JSON texts (RFC 8259), for other programs to read.
--
-- Equal tables make equal texts: keys are sorted, and a number is written in the shortest form that
-- reads back as the same number. A number that is not finite is written as null.

local core = require "gpipe.core"
local escape = require "gpipe.io.escape"

local json = {}

local function number(value)
  if math.type(value) == "integer" then return ("%d"):format(value) end
  if value ~= value or value == math.huge or value == -math.huge then return "null" end
  for digits = 15, 17 do
    local text = ("%." .. digits .. "g"):format(value)
    if tonumber(text) == value then return text end
  end
end

local function is_list(value)
  local count = 0
  for _ in next, value do count = count + 1 end
  return count == #value and count > 0
end

local encode

local function list(value)
  local parts = {}
  for i = 1, #value do parts[i] = encode(value[i]) end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function object(value)
  local names, parts = {}, {}
  for key in next, value do names[#names + 1] = tostring(key) end
  table.sort(names)
  local by_name = {}
  for key, element in next, value do by_name[tostring(key)] = element end
  for i, name in ipairs(names) do parts[i] = escape.json(name) .. ":" .. encode(by_name[name]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

function encode(value)
  local kind = type(value)
  if kind == "number" then return number(value) end
  if kind == "string" then return escape.json(value) end
  if kind == "boolean" then return tostring(value) end
  if kind == "table" then return is_list(value) and list(value) or object(value) end
  if kind == "nil" then return "null" end
  return escape.json(tostring(value)) -- a function or a tensor, as people read it
end

--- A value as JSON: tables with keys 1 .. n are arrays, others objects (also the empty one).
---@param value any
---@return string
function json.encode(value)
  return core.plain_numbers(function() return encode(value) end)
end

--- A record as a JSON object on one line; the keys in the list `first` come before the others.
---@param first string[]
---@param fields table<string, any>
---@return string
function json.line(first, fields)
  return core.plain_numbers(function()
    local parts, rest, early = {}, {}, {}
    for _, key in ipairs(first) do
      early[key] = true
      parts[#parts + 1] = escape.json(key) .. ":" .. encode(fields[key])
    end
    for key in next, fields do
      if not early[key] then rest[#rest + 1] = key end
    end
    table.sort(rest)
    for _, key in ipairs(rest) do
      parts[#parts + 1] = escape.json(key) .. ":" .. encode(fields[key])
    end
    return "{" .. table.concat(parts, ",") .. "}"
  end)
end

--- The value of a JSON text. Errors: nil, message, code.
---@param text string
---@return any
---@return string? message
---@return string? code
function json.decode(text) return core.json_decode(text) end

--- Read a file that holds one JSON text; nil and the reason where it is missing or damaged.
---@param path string
---@return any
---@return string? message
function json.read(path)
  local file, message = io.open(path, "rb")
  if not file then return nil, message end
  local text = file:read "a"
  file:close()
  local value, reason = core.json_decode(text or "")
  if value == nil then
    return nil, ("%s: %s"):format(path, reason or "it holds null, expected a value")
  end
  return value
end

return json
