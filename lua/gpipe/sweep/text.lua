-- lua/gpipe/sweep/text.lua - values of sweeps as text: JSON for the file, short for people.
--
-- A number reads back as the same number, a float stays a float, and the decimal point does not
-- depend on the locale.

local core = require "gpipe.core"
local escape = require "gpipe.io.escape"

local text = {}

local function pointed(number) return (number:gsub("[^%w+-]", ".")) end

-- The fewest digits that read back as the same number.
local function shortest(value)
  for digits = 15, 17 do
    local number = pointed(("%." .. digits .. "g"):format(value))
    if tonumber(number) == value or digits == 17 then return number end
  end
end

--- A finite number as JSON has it; floats have a point or an exponent.
---@param value number
---@return string
function text.number(value)
  if math.type(value) == "integer" then return ("%d"):format(value) end
  local number = shortest(value)
  return number:find "[.e]" and number or number .. ".0"
end

local function scalar(value)
  if type(value) == "string" then return escape.json(value) end
  if type(value) == "boolean" then return tostring(value) end
  if value ~= value or math.abs(value) == math.huge then
    return ('"%s"'):format(value ~= value and "nan" or value > 0 and "inf" or "-inf")
  end
  return text.number(value)
end

--- A table of names and simple values as a JSON object, in the order of the names.
--- ```lua
--- local text = require "gpipe.sweep.text"
--- assert(text.encode {lr = 1.0, width = 64} == '{"lr":1.0,"width":64}')
--- ```
---@param values table<string, number|string|boolean>
---@return string
function text.encode(values)
  local parts = {}
  for i, name in ipairs(text.names(values)) do
    parts[i] = escape.json(name) .. ":" .. scalar(values[name])
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local SPECIAL = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

--- Decode a table of numbers, some of which may not be finite.
---@param json string?
---@return table<string, number>
function text.decode_numbers(json)
  local values = text.decode(json)
  for name, value in pairs(values) do values[name] = SPECIAL[value] or value end
  return values
end

--- Decode what text.encode made; an empty table for nil.
---@param json string?
---@return table<string, any>
function text.decode(json) return json and assert(core.json_decode(json)) or {} end

--- The names of a table in alphabetical order.
---@param t table<string, any>
---@return string[]
function text.names(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- A value in full: "cosine" in quotes, numbers with all digits they need.
---@param value any
---@return string
function text.value(value)
  if type(value) == "string" then return ('"%s"'):format(value) end
  if math.type(value) == "float" then return shortest(value) end
  return tostring(value)
end

--- A value in a few characters, for tables.
---@param value any
---@return string
function text.short(value)
  if math.type(value) == "float" then return pointed(("%.4g"):format(value)) end
  return tostring(value)
end

--- "lr=0.001 width=64"
---@param params table<string, any>
---@return string
function text.params(params)
  local parts = {}
  for i, name in ipairs(text.names(params)) do
    parts[i] = ("%s=%s"):format(name, text.short(params[name]))
  end
  return table.concat(parts, " ")
end

return text
