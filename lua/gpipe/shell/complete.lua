-- lua/gpipe/shell/complete.lua - completion by Tab: names of globals, fields and methods, and files
-- inside a string.
--
-- No code of the user runs: names.lua calls no metamethod.

local names = require "gpipe.shell.names"
local terminal = require "gpipe.terminal"

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%a+" do
  KEYWORDS[#KEYWORDS + 1] = word
end

-- The text of the string that is open at the end of the line; nil if none is.
local function open_string(line)
  local quote, begin
  local i = 1
  while i <= #line do
    local c = line:sub(i, i)
    if quote and c == "\\" then i = i + 1
    elseif c == quote then quote = nil
    elseif not quote and (c == '"' or c == "'") then quote, begin = c, i + 1
    end
    i = i + 1
  end
  return quote and line:sub(begin)
end

local function beginning_with(word, list)
  local found = {}
  for _, name in ipairs(list) do
    if name:sub(1, #word) == word then found[#found + 1] = name end
  end
  table.sort(found)
  return found
end

local function names_for(line)
  local path, sign, word = line:match "([%a_][%w_.:%[%]]*)([.:])([%w_]*)$"
  if path then
    local value = names.resolve(path)
    return word, value == nil and {} or names.list(value, sign == ":")
  end
  word = line:match "[%a_][%w_]*$"
  if not word then return nil end
  local list = names.list(_G)
  table.move(KEYWORDS, 1, #KEYWORDS, #list + 1, list)
  return word, list
end

local function files_for(text)
  local folder, word = text:match "^(.*/)([^/]*)$"
  return word or text, terminal.list(folder or ".")
end

-- The candidates for the word before the cursor, and that word; nothing if Tab inserts a tab.
local function candidates(line)
  local text = open_string(line)
  if text and (text == "" or text:find "%s$") then return nil end
  local word, list
  if text then word, list = files_for(text) else word, list = names_for(line) end
  if word then return beginning_with(word, list), word end
end

local function common_beginning(list)
  local first, last = list[1], list[#list] -- sorted
  local n = 0
  while n < #first and first:byte(n + 1) == last:byte(n + 1) do n = n + 1 end
  return first:sub(1, n)
end

--- The replacements for a text at the end of a line: first the common beginning of all candidates,
--- then the candidates.
---@param line string up to the cursor
---@param text string the text to replace
---@return string[]? nil if there is no candidate
return function(line, text)
  local list, word = candidates(line)
  if not list then return { text .. "\t" } end
  if #list == 0 then return nil end
  for i, name in ipairs(list) do
    local shown = name:sub(math.max(0, #word - #text) + 1)
    list[i] = text:sub(1, math.max(0, #text - #word)) .. shown
  end
  table.insert(list, 1, common_beginning(list))
  return list
end
