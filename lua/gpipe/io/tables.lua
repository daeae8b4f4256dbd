-- lua/gpipe/io/tables.lua - Lua tables beside the tensors of a file: how gp.save writes them and
-- gp.load reads them.
--
-- Tensors of the outermost table keep their names, so a state dictionary becomes the file that
-- other programs know. Everything else is one text in the file's metadata:
--
--   value  = true | false | integer | float | string | tensor | table
--   float  = hexadecimal as C prints it, 0x1.8p+0, or inf, -inf, nan
--   string = "..." with \", \\ and \ddd for bytes that are not text
--   tensor = @ and a string, the name of a tensor in the file
--   table  = { key = value , ... }, where a key is anything but a tensor, a table or nan
--
-- A file is not trusted: its text is parsed, never run.

local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local is_plain = require "gpipe.plain"

local tables = {}

--- The entry of the metadata that holds the text.
tables.KEY = "gpipe.tables"

local DEEPEST = 100 -- tables in tables; deeper ones are taken for a mistake

-- ---- writing ---------------------------------------------------------------------------------

local function escaped(c) return c:find '["\\]' and "\\" .. c or ("\\%03d"):format(c:byte()) end

local function quoted(text)
  return '"' .. text:gsub(utf8.len(text) and '[%c"\\]' or '[%c"\\\x80-\xff]', escaped) .. '"'
end

local function number(value)
  if math.type(value) == "integer" then return ("%d"):format(value) end
  if value ~= value then return "nan" end
  if value == math.huge or value == -math.huge then return value > 0 and "inf" or "-inf" end
  return (("%a"):format(value):gsub("[^%w+-]", ".")) -- whatever decimal point the locale has
end

-- A place in the table as users write it: config.layers[2].
local function place(path, key)
  if type(key) == "string" then return path == "" and key or path .. "." .. key end
  return ("%s[%s]"):format(path, tostring(key))
end

local KEYS = { string = 1, number = 2, boolean = 3 }

-- Sort the keys, so that equal tables make the same file however they were filled.
local function sorted_keys(value, path)
  local keys = {}
  for key in next, value do
    if not KEYS[type(key)] then
      errors.raise("gp.save: a key in '%s' is %s, expected a string or number", path,
        errors.show(key))
    end
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return KEYS[type(a)] < KEYS[type(b)] end
    if type(a) == "boolean" then return a and not b end
    return a < b
  end)
  return keys
end

-- A name that no tensor of the file has yet.
local function free_name(made, path)
  local stem = utf8.len(path) and path ~= "__metadata__" and path or "tensor"
  local name, n = stem, 1
  while made.tensors[name] do
    n = n + 1
    name = ("%s_%d"):format(stem, n)
  end
  return name
end

local text_of

local function table_text(made, value, path, depth)
  if not is_plain(value) then
    errors.raise("gp.save: '%s' is %s, expected a tensor, a plain table, a string, a number or a "
      .. "boolean", path, errors.show(value))
  end
  if made.open[value] or depth > DEEPEST then
    errors.raise("gp.save: '%s' %s, expected tables of at most %d levels", path,
      made.open[value] and "holds itself" or "lies too deep", DEEPEST)
  end
  made.open[value] = true
  local parts = {}
  for i, key in ipairs(sorted_keys(value, path)) do
    parts[i] = text_of(made, key, path, depth) .. "="
      .. text_of(made, rawget(value, key), place(path, key), depth + 1)
  end
  made.open[value] = nil
  return "{" .. table.concat(parts, ",") .. "}"
end

function text_of(made, value, path, depth)
  local kind = type(value)
  if is_tensor(value) then
    local name = free_name(made, path)
    made.tensors[name] = value
    return "@" .. quoted(name)
  end
  if kind == "string" then return quoted(value) end
  if kind == "number" then return number(value) end
  if kind == "boolean" then return tostring(value) end
  if kind == "table" then return table_text(made, value, path, depth) end
  errors.raise("gp.save: '%s' is %s, expected a tensor, a table, a string, a number or a boolean",
    path, errors.show(value))
end

--- Split a table into the tensors of the file, by name, and the text of everything else.
--- Errors: what cannot be saved, by its place.
---@param given table
---@return table<string, gpipe.Tensor> tensors
---@return string? text nil where there are only tensors with names
function tables.encode(given)
  local made = { tensors = {}, open = {} }
  local rest = {}
  for key, value in next, given do
    local named = type(key) == "string" and is_tensor(value)
    if named then made.tensors[key] = value else rest[key] = value end
  end
  if next(rest) == nil then return made.tensors end
  made.open[given] = true
  return made.tensors, table_text(made, rest, "", 1)
end

-- ---- reading ---------------------------------------------------------------------------------

-- Thrown as an error value, and caught by tables.decode: a fault of the file.
local Fault = {}

local function fault(reader, what)
  error(setmetatable({ text = ("%s at byte %d of its tables"):format(what, reader.at) }, Fault), 0)
end

local function take(reader, pattern)
  local found = reader.text:match("^" .. pattern, reader.at)
  if found then reader.at = reader.at + #found end
  return found
end

local function expect(reader, sign)
  if not take(reader, sign) then fault(reader, ("expected '%s'"):format(sign)) end
end

local function string_at(reader)
  local first = reader.at + 1
  local last = first
  while true do
    last = reader.text:find('["\\]', last)
    if not last then fault(reader, "an unfinished string") end
    if reader.text:sub(last, last) == '"' then break end
    last = last + 2
  end
  local wrong = false
  local value = reader.text:sub(first, last - 1):gsub("\\(.)(%d?%d?)", function(c, digits)
    if not c:find "%d" then return c .. digits end
    local byte = tonumber(c .. digits)
    wrong = wrong or #digits < 2 or byte > 255
    return wrong and "" or string.char(byte)
  end)
  if wrong then fault(reader, "an invalid escape") end
  reader.at = last + 1
  return value
end

local WORDS = {
  ["true"] = true, ["false"] = false, inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0,
}

local function word_at(reader)
  local word = take(reader, "[%w.+-]+") or fault(reader, "a value is missing")
  if WORDS[word] ~= nil then return WORDS[word] end
  local value = word:find "^%-?%d+$" and math.tointeger(tonumber(word))
    or word:find "^%-?0x" and word:find "p" and tonumber(word)
  return value or fault(reader, "an unknown value")
end

local value_at

local function table_at(reader, depth)
  local value = {}
  if depth > DEEPEST then fault(reader, "tables too deep") end
  expect(reader, "{")
  if take(reader, "}") then return value end
  repeat
    local key = reader.text:find('^[{@]', reader.at) and fault(reader, "a key is missing")
      or value_at(reader, depth)
    if key ~= key or value[key] ~= nil then fault(reader, "a key that cannot be one") end
    expect(reader, "=")
    value[key] = value_at(reader, depth + 1)
  until not take(reader, ",")
  expect(reader, "}")
  return value
end

local function tensor_at(reader)
  expect(reader, "@")
  if reader.text:sub(reader.at, reader.at) ~= '"' then fault(reader, "a name is missing") end
  local name = string_at(reader)
  local tensor = reader.tensors[name]
  if not tensor then fault(reader, ("no tensor %s"):format(quoted(name))) end
  reader.tensors[name] = nil
  return tensor
end

function value_at(reader, depth)
  local sign = reader.text:sub(reader.at, reader.at)
  if sign == '"' then return string_at(reader) end
  if sign == "@" then return tensor_at(reader) end
  if sign == "{" then return table_at(reader, depth) end
  return word_at(reader)
end

--- Restore the values that a text holds, beside the tensors that have names of their own.
---@param text string
---@param tensors table<string, gpipe.Tensor> all of the file; changed
---@return table? given as it was saved
---@return string? reason where the text is damaged
function tables.decode(text, tensors)
  local reader = { text = text, at = 1, tensors = tensors }
  local good, value = pcall(function()
    local value = table_at(reader, 1)
    if reader.at <= #text then fault(reader, "more than a table") end
    for name, tensor in pairs(tensors) do
      if value[name] ~= nil then fault(reader, ("'%s' is there twice"):format(name)) end
      value[name] = tensor
    end
    return value
  end)
  if good then return value end
  if getmetatable(value) == Fault then return nil, value.text end
  error(value, 0)
end

return tables
