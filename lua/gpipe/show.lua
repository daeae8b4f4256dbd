-- lua/gpipe/show.lua - writes the contents of a table as text, for the interactive mode and for
-- error objects in tracebacks.
--
-- The text is bounded, whatever the table holds: the number of entries of each table and the depth
-- are limited, and a table that contains itself is shown once. It looks like the constructor that
-- would make the table.

local is_tensor = require "gpipe.tensor.is"
local screen = require "gpipe.screen"

local show = {}

local ENTRIES = 24 -- of one table
local DEPTH = 4
local TEXT = 60 -- characters of a text in a table

local WORDS = {} -- keywords, which cannot be names of fields
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%a+" do
  WORDS[word] = true
end

-- ---- parts -----------------------------------------------------------------------------------

local ESCAPES = { ["\n"] = "\\n", ['"'] = '\\"', ["\\"] = "\\\\" }

local function quoted(text)
  local room = math.min(TEXT, screen.columns() - 2)
  local cut = #text > room and text:sub(1, room) .. "..." or text
  return '"' .. cut:gsub('[%c"\\]', function(c)
    return ESCAPES[c] or ("\\%d"):format(c:byte())
  end) .. '"'
end

-- Write a value that is not a plain table in one line.
local function leaf(value)
  if type(value) == "string" then return quoted(value) end
  if is_tensor(value) then
    local shape = table.concat(value.shape, "x")
    return ("tensor %s %s"):format(value.dtype, shape == "" and "scalar" or shape)
  end
  if type(value) == "function" then return "function" end
  local good, text = pcall(tostring, value)
  if not good then return "a " .. type(value) end
  return (text:match "^[^\n]*") .. (text:find "\n" and " ..." or "")
end

-- The keys of a table: positions first, then the names in alphabetical order, then the other keys.
local function keys_of(value)
  local keys, length = {}, rawlen(value)
  for key in next, value do
    if math.type(key) ~= "integer" or key < 1 or key > length then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b)
    if type(a) == type(b) and (type(a) == "string" or type(a) == "number") then return a < b end
    return type(a) == "string" and type(b) ~= "string"
  end)
  return keys, length
end

local function key_text(key)
  if type(key) == "string" and key:find "^[%a_][%w_]*$" and not WORDS[key] then return key end
  return ("[%s]"):format(leaf(key))
end

-- ---- tables ----------------------------------------------------------------------------------

-- Return whether the contents say more than tostring does: true for a table whose type does not
-- print itself.
local function is_plain(value)
  if type(value) ~= "table" then return false end
  local meta = getmetatable(value)
  return meta == nil or type(meta) == "table" and rawget(meta, "__tostring") == nil
end

local function join(parts, indent)
  local line = "{" .. table.concat(parts, ", ") .. "}"
  if #parts == 0 or #line + #indent <= screen.columns() and not line:find "\n" then return line end
  local inner = indent .. "  "
  return "{\n" .. inner .. table.concat(parts, ",\n" .. inner) .. ",\n" .. indent .. "}"
end

local function text_of(value, indent, depth, seen, whole)
  if not whole and not is_plain(value) then return leaf(value) end
  if seen[value] or depth == 0 then return next(value) == nil and "{}" or "{...}" end
  seen[value] = true
  local keys, length = keys_of(value)
  local parts, left = {}, 0
  local function add(key, shown)
    if #parts == ENTRIES then left = left + 1 return end
    local text = text_of(rawget(value, key), indent .. "  ", depth - 1, seen)
    parts[#parts + 1] = shown and shown .. " = " .. text or text
  end
  for i = 1, math.min(length, ENTRIES) do add(i) end
  left = left + math.max(0, length - ENTRIES)
  for _, key in ipairs(keys) do add(key, key_text(key)) end
  if left > 0 then parts[#parts + 1] = ("... %d more"):format(left) end
  seen[value] = nil
  return join(parts, indent)
end

--- A value as text: the contents of a table, tostring of anything else.
--- ```lua
--- local show = require "gpipe.show"
--- assert(show.value {1, 2, name = "x"} == '{1, 2, name = "x"}')
--- ```
---@param value any
---@return string
function show.value(value)
  if not is_plain(value) then return tostring(value) end
  return text_of(value, "", DEPTH, {})
end

--- The contents of a table, even if it has its own way to print itself.
--- ```lua
--- local show = require "gpipe.show"
--- assert(show.contents({1, 2}) == "{1, 2}")
--- ```
---@param value table
---@return string
function show.contents(value) return text_of(value, "", DEPTH, {}, true) end

--- A title and the names below it, in lines that fit the terminal: the printed form of a module.
---@param title string
---@param names string[]
---@return string
function show.names(title, names)
  local lines, line = { title }, nil
  for _, name in ipairs(names) do
    local longer = line and line .. " " .. name or "  " .. name
    if line and #longer > screen.columns() then
      lines[#lines + 1] = line
      longer = "  " .. name
    end
    line = longer
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

return show
