-- lua/gpipe/shell/mistakes.lua - what the interactive mode adds to an error: the source lines that
-- it mentions, and the name that was probably meant.
--
-- Lines are numbered through the session, so that "stdin:7" always means the same line.

local errors = require "gpipe.errors"
local names = require "gpipe.shell.names"

local mistakes = {}

local lines = {} -- all lines typed so far
local began = 1 -- the first line of the latest text

--- The number of lines typed before.
---@return integer
function mistakes.count() return #lines end

--- Record a text that was typed.
---@param text string
function mistakes.note(text)
  began = #lines + 1
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
end

local function suggest(word, value)
  local near = errors.suggest(word, names.list(value))
  return near and (" (did you mean '%s'?)"):format(near)
end

-- The value whose field a name is, according to the line that uses it; nil if that is no path of
-- globals.
local function holder(line, word)
  for path, field in (line or ""):gmatch "([%a_][%w_.]*)[.:]([%a_][%w_]*)" do
    if field == word then return names.resolve(path) end
  end
end

-- Suggest another name for the one that is nil in the first line of a message.
local function meant(message)
  local number = message:match "^stdin:(%d+):"
  local kind, word = message:match "nil value %((%a+) '([%a_][%w_]*)'%)"
  if kind == "global" then return suggest(word, _G) end
  local value = (kind == "field" or kind == "method")
    and holder(lines[tonumber(number)], word)
  return value ~= nil and value and suggest(word, value)
end

-- Add the source line below each frame of the traceback, unless it is the line just typed.
local function with_lines(traceback)
  local only = began == #lines and #lines
  return (traceback:gsub("(\n\tstdin:(%d+):[^\n]*)", function(frame, number)
    local line = lines[tonumber(number)]
    if not line or tonumber(number) == only then return nil end
    return frame .. "\n\t    " .. line:gsub("^%s+", "")
  end))
end

--- The text of an error, with hints that help to find the mistake.
---@param message string
---@return string
function mistakes.explain(message)
  local first, rest = message:match "^([^\n]*)(.*)$"
  return first .. (meant(first) or "") .. with_lines(rest)
end

--- Suggest another name if one that was typed alone has no value; nil if no name is similar.
---@param text string
---@return string?
function mistakes.nothing(text)
  local path, word = text:match "^%s*=?%s*([%w_.]-)%.?([%a_][%w_]*)%s*$"
  if not word or word == "nil" then return nil end
  local value = names.resolve(path)
  local near = value ~= nil and suggest(word, value)
  return near and ("there is no '%s'%s"):format(word, near) or nil
end

return mistakes
