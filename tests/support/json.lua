-- tests/support/json.lua - a small JSON reader: an independent reader must read what the product
-- writes.
--
-- It is strict: a text that is not JSON fails with its position. null becomes json.null.

local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }

local ESCAPES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r",
  t = "\t" }

local function fail(at, wanted) error(("JSON, byte %d: expected %s"):format(at, wanted), 0) end

local function skip(text, at) return text:find("[^ \t\r\n]", at) or #text + 1 end

local function expect(text, at, sign)
  at = skip(text, at)
  if text:sub(at, at) ~= sign then fail(at, sign) end
  return at + 1
end

local function read_string(text, at)
  local parts = {}
  while true do
    local stop = text:find('[%c"\\]', at) or fail(at, "the end of a string")
    parts[#parts + 1] = text:sub(at, stop - 1)
    local sign = text:sub(stop, stop)
    if sign == '"' then return table.concat(parts), stop + 1 end
    if sign ~= "\\" then fail(stop, "no control character") end
    local hex = text:match("^u(%x%x%x%x)", stop + 1)
    local escaped = hex and utf8.char(tonumber(hex, 16)) or ESCAPES[text:sub(stop + 1, stop + 1)]
    parts[#parts + 1] = escaped or fail(stop, "an escape")
    at = stop + (hex and 6 or 2)
  end
end

local read_value

local function read_object(text, at)
  local made = {}
  at = skip(text, at)
  if text:sub(at, at) == "}" then return made, at + 1 end
  while true do
    local key, value
    key, at = read_string(text, expect(text, at, '"'))
    value, at = read_value(text, expect(text, at, ":"))
    if made[key] ~= nil then fail(at, "every key once") end
    made[key] = value
    at = skip(text, at)
    if text:sub(at, at) == "}" then return made, at + 1 end
    at = expect(text, at, ",")
  end
end

local function read_list(text, at)
  local made = {}
  at = skip(text, at)
  if text:sub(at, at) == "]" then return made, at + 1 end
  while true do
    made[#made + 1], at = read_value(text, at)
    at = skip(text, at)
    if text:sub(at, at) == "]" then return made, at + 1 end
    at = expect(text, at, ",")
  end
end

local WORDS = { ["true"] = true, ["false"] = false, null = json.null }

local function read_number(text, at)
  local word = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  local whole = word and word:match "^-?(%d+)"
  if not word or not tonumber(word) or word:find "%.$"
    or (#whole > 1 and whole:sub(1, 1) == "0") then
    fail(at, "a value")
  end
  return tonumber(word), at + #word
end

function read_value(text, at)
  at = skip(text, at)
  local sign = text:sub(at, at)
  if sign == '"' then return read_string(text, at + 1) end
  if sign == "{" then return read_object(text, at + 1) end
  if sign == "[" then return read_list(text, at + 1) end
  local word = text:match("^%l+", at)
  if word and WORDS[word] ~= nil then return WORDS[word], at + #word end
  return read_number(text, at)
end

--- Read a whole document. Fails where it is not JSON.
---@param text string
---@return any
function json.read(text)
  assert(utf8.len(text), "JSON: not UTF-8")
  local value, at = read_value(text, 1)
  if skip(text, at) <= #text then fail(at, "the end") end
  return value
end

return json
