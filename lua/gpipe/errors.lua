-- lua/gpipe/errors.lua - how our Lua code raises: at the user's line, with a hint where one helps.
--
-- Errors point at the user's line, however many of our own functions lie between it and here, so no
-- module counts levels. Every text reads `who: what is, what was wanted`.

local errors = {}

-- Frames whose source starts with this are ours: "@/usr/share/lua/5.4/gpipe/", or "@gpipe/" when
-- the modules are embedded in the program.
local own_prefix = debug.getinfo(1, "S").source:match("^(.*)errors%.lua$") or "@gpipe/"
errors.own_prefix = own_prefix

local QUOTED = 40 -- characters of a string value that an error text shows
local LISTED = 200 -- names that a list shows
local PATH = 300 -- characters of a path that are shown, more than people type
local COMPARED = 2000 -- names that a misspelt one is compared with

-- ---- raising -------------------------------------------------------------------------------

--- The level of the user's nearest function, for an `error` called by the caller of this one;
--- 0 (no position) when there is none.
---@return integer
function errors.level()
  local level = 2
  local info = debug.getinfo(level, "S")
  while info do
    local own = info.source:sub(1, #own_prefix) == own_prefix
    if info.what ~= "C" and not own then return level - 1 end
    level = level + 1
    info = debug.getinfo(level, "S")
  end
  return 0
end

--- Raise an error at the user's line. The text reads `who: what is, what was wanted`.
---@param format string as for string.format
---@param ... any
function errors.raise(format, ...)
  local text = select("#", ...) > 0 and format:format(...) or format
  error(text, errors.level())
end

-- ---- codes -----------------------------------------------------------------------------------

local marked = {} -- text and code of the last error that was raised with a code

--- Raise an error that errors.code_of can tell from others.
---@param code string as those of the runtime: "shape"
---@param format string
---@param ... any
function errors.raise_as(code, format, ...)
  local level = errors.level()
  local info = level > 0 and debug.getinfo(level, "Sl")
  local where = info and ("%s:%d: "):format(info.short_src, info.currentline) or ""
  marked.text, marked.code = where .. format:format(...), code
  error(marked.text, 0)
end

--- The code of an error that was just caught: "shape", "memory" and so on of the runtime; nil where
--- it has none. Errors are told apart by this, never by their wording.
---@param message any
---@return string?
function errors.code_of(message)
  if message == marked.text then return marked.code end
  return require("gpipe.core").failure(message)
end

-- ---- suggestions -----------------------------------------------------------------------------

-- The edit distance with swaps of neighbouring bytes (optimal string alignment).
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost)
      local swapped = i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j)
      if swapped then row[j] = math.min(row[j], before[j - 2] + 1) end
    end
    before, last = last, row
  end
  return last[#b]
end

-- Find the name that the word has in another library, if it is among the names.
local function by_habit(word, names)
  local meant = require("gpipe.habits")[word]
  if not meant then return nil end
  local has = {}
  for _, name in ipairs(names) do has[name] = true end
  for _, name in ipairs(meant) do
    if has[name] then return name end
  end
end

-- Find the only name that begins with the word: "MSELoss" for "MSE".
local function by_beginning(word, names)
  local found
  for _, name in ipairs(names) do
    if #word >= 3 and name:sub(1, #word):lower() == word:lower() then
      if found then return nil end
      found = name
    end
  end
  return found
end

--- The name that was probably meant: one that another library calls so, one with similar spelling
--- (one slip in a short name, two in a longer one), or one that begins so; nil if there is none.
---@param word string
---@param names string[]
---@return string?
function errors.suggest(word, names)
  local meant = by_habit(word, names)
  if meant then return meant end
  if #word > QUOTED then return nil end
  local best, best_distance, left = nil, 3, COMPARED
  for _, name in ipairs(names) do
    local allowed = #name <= 2 and 0 or #name <= 5 and 1 or 2
    if math.abs(#name - #word) <= allowed and left > 0 then
      left = left - 1
      local d = distance(word:lower(), name:lower())
      if d <= allowed and d < best_distance then best, best_distance = name, d end
    end
  end
  return best or by_beginning(word, names)
end

--- Refuse a name that does not exist but resembles one that does; other names are nil as in any
--- table.
---@param who string
---@param key any
---@param names string[]
function errors.refuse_near(who, key, names)
  local near = type(key) == "string" and #key > 3 and errors.suggest(key, names)
  if near then
    errors.raise("%s: there is no '%s' (did you mean '%s'?)", who, errors.name(key), near)
  end
end

--- A name for an error text that puts quotes around it: without control characters, and cut if it
--- is long.
---@param text string
---@param most? integer characters
---@return string
function errors.name(text, most)
  most = most or QUOTED
  return (#text > most and text:sub(1, most) .. "..." or text):gsub("%c", "?") .. ""
end

--- A path for an error text, cut if it is longer than any system takes.
---@param path string
---@return string
function errors.path(path) return errors.name(path, PATH) end

--- Names separated by commas; of many only the first ones.
---@param names string[]
---@param most? integer
---@return string
function errors.list(names, most)
  most = most or LISTED
  local shown = {}
  for i = 1, math.min(#names, most) do shown[i] = errors.name(tostring(names[i])) end
  local rest = #names - #shown
  return table.concat(shown, ", ") .. (rest > 0 and (" and %d more"):format(rest) or "")
end

--- The text that follows an unknown name: " (did you mean 'kernel'?)", or the list of the names
--- that exist.
---@param word any
---@param names string[]
---@param plural string what the names are: "options", "schedules"
---@param most? integer names that are listed
---@return string
function errors.hint(word, names, plural, most)
  local near = type(word) == "string" and errors.suggest(word, names)
  if near then return (" (did you mean '%s'?)"):format(near) end
  if #names == 0 then return (" (there are no %s)"):format(plural) end
  return (" (%s are %s)"):format(plural, errors.list(names, most))
end

--- A value as an error text shows it: `"same" (string)`, `3.5 (float)`, `a table`.
---@param value any
---@return string
function errors.show(value)
  local kind = math.type(value) or type(value)
  if kind == "string" then
    return ('"%s" (string)'):format(errors.name(value))
  end
  if kind == "integer" then return tostring(value) end
  if kind == "float" then
    return (value ~= value and "nan" or ("%.14g"):format(value)) .. " (float)"
  end
  if kind == "boolean" or kind == "nil" then return tostring(value) end
  local name = getmetatable(value)
  if name == "gpipe.Tensor" then return "a tensor" end
  if type(name) == "table" and type(rawget(name, "__name")) == "string" then
    return "a " .. name.__name
  end
  return "a " .. kind
end

return errors
