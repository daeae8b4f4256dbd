-- lua/gpipe/io/escape.lua - texts and numbers as XML and JSON hold them.

local escape = {}

local REPLACEMENT = "\u{fffd}"

-- Replace bytes that are not UTF-8, which both formats refuse.
local function valid(text)
  local bad = select(2, utf8.len(text))
  if not bad then return text end
  local parts, from = {}, 1
  while bad do
    parts[#parts + 1] = text:sub(from, bad - 1)
    parts[#parts + 1] = REPLACEMENT
    from = bad + 1
    bad = select(2, utf8.len(text, from))
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts)
end

local XML = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

--- Text for XML or HTML, between tags or in a quoted attribute.
---@param text string
---@return string
function escape.xml(text) return (valid(text):gsub("%c", " "):gsub("[&<>\"']", XML)) end

local JSON = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

-- "<" is escaped too, so that a name in a page cannot end its script.
local function json_character(c) return JSON[c] or ("\\u%04x"):format(c:byte()) end

--- A JSON string with its quotes; it may stand in a script of an HTML page.
---@param text string
---@return string
function escape.json(text) return '"' .. valid(text):gsub('[%c"\\<]', json_character) .. '"' end

--- A finite number in the fewest characters that keep `digits` digits.
---@param value number
---@param digits? integer default 9
---@return string
function escape.number(value, digits)
  local whole = math.tointeger(value)
  if whole then return tostring(whole) end
  return (("%." .. (digits or 9) .. "g"):format(value):gsub("e%+?(%-?)0*", "e%1"))
end

--- A coordinate: two decimals, no zeros at the end.
---@param value number
---@return string
function escape.place(value)
  local text = ("%.2f"):format(value):gsub("%.?0+$", "")
  return text == "-0" and "0" or text
end

return escape
