-- lua/gpipe/shell/mistakes.lua - what the interactive mode adds to an error: the lines that it
-- names, and the name that was probably meant.
--
-- Lines are numbered over the session, so that "stdin:7" is one line, whatever was typed since.

local errors = require "gpipe.errors"
local names = require "gpipe.shell.names"

local mistakes = {}

local lines = {} -- all that were typed
local began = 1 -- the first one of the text that was typed last

--- The number of lines that were typed before.
---@return integer
function mistakes.count() return #lines end

--- Take a text that was typed.
---@param text string
function mistakes.note(text)
  began = #lines + 1
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
end

local function suggest(word, value)
  local near = errors.suggest(word, names.list(value))
  return near and (" (did you mean '%s'?)"):format(near)
end

-- What a name is a field of, by the line that uses it; nil where that is no path of globals.
local function holder(line, word)
  for path, field in (line or ""):gmatch "([%a_][%w_.]*)[.:]([%a_][%w_]*)" do
    if field == word then return names.resolve(path) end
  end
end

-- The name that is nil in the first line of a message, and what may be meant.
local function meant(message)
  local number = message:match "^stdin:(%d+):"
  local kind, word = message:match "nil value %((%a+) '([%a_][%w_]*)'%)"
  if kind == "global" then return suggest(word, _G) end
  local value = (kind == "field" or kind == "method")
    and holder(lines[tonumber(number)], word)
  return value ~= nil and value and suggest(word, value)
end

-- The line below each frame of the traceback, where it is not the one that was just typed.
local function with_lines(traceback)
  local only = began == #lines and #lines
  return (traceback:gsub("(\n\tstdin:(%d+):[^\n]*)", function(frame, number)
    local line = lines[tonumber(number)]
    if not line or tonumber(number) == only then return nil end
    return frame .. "\n\t    " .. line:gsub("^%s+", "")
  end))
end

--- An error's text with what helps to find the mistake.
---@param message string
---@return string
function mistakes.explain(message)
  local first, rest = message:match "^([^\n]*)(.*)$"
  return first .. (meant(first) or "") .. with_lines(rest)
end

--- What may be meant where a name typed alone stands for nothing; nil where no name is near.
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
