-- lua/gpipe/screen.lua - how much text fits on the terminal, and whether it has colours.

local core = require "gpipe.core"

local screen = {}

local LEAST_COLUMNS, COLUMNS = 20, 80 -- 80 is what every terminal has
local LEAST_ROWS, ROWS = 10, 32

local function size_of(name, measured)
  return math.tointeger(tonumber(os.getenv(name))) or measured
end

--- The number of characters in a line of a file's terminal, by default of standard output. Shells
--- set COLUMNS to override it.
---@param file? file*
---@return integer
function screen.columns(file)
  local columns = core.terminal_size(file or io.stdout)
  return math.max(LEAST_COLUMNS, size_of("COLUMNS", columns) or COLUMNS)
end

--- The number of lines of the terminal; LINES overrides it. If standard output is not a terminal,
--- it is as many as one reads at a glance.
---@return integer
function screen.rows()
  local _, rows = core.terminal_size(io.stdout)
  return math.max(LEAST_ROWS, size_of("LINES", rows) or ROWS)
end

--- Return whether output may be read on a screen: standard output is a terminal, or a shell sets
--- COLUMNS.
---@return boolean
function screen.is_bounded()
  return core.terminal_size(io.stdout) ~= nil or os.getenv "COLUMNS" ~= nil
end

--- Return whether output to a file may have colours: it is a terminal that supports them, and
--- NO_COLOR is not set.
---@param file file*
---@return boolean
function screen.has_colours(file)
  local refused = os.getenv "NO_COLOR"
  return not (refused and refused ~= "") and os.getenv "TERM" ~= "dumb" and core.is_terminal(file)
end

-- Return whether the locale has braille characters.
local function has_unicode()
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    local value = os.getenv(name)
    if value and value ~= "" then return value:lower():find "utf%-?8" ~= nil end
  end
  return false
end

local LEAST_PICTURE, MOST_PICTURE = 4, 1000 -- lines
local MOST_COLUMNS = 10000

--- Options of pictures in a terminal.
screen.PICTURE = {
  width = { type = "integer", min = LEAST_COLUMNS, max = MOST_COLUMNS },
  height = { type = "integer", min = LEAST_PICTURE, max = MOST_PICTURE },
  colour = { type = "boolean" },
  unicode = { type = "boolean" },
}

--- Fill in the options that were not given, from the size of standard output's terminal.
---@param o table
function screen.fill_in(o)
  o.width = o.width or screen.columns()
  o.height = o.height or math.max(LEAST_PICTURE, math.min(16, screen.rows() - 8))
  if o.colour == nil then o.colour = screen.has_colours(io.stdout) end
  if o.unicode == nil then o.unicode = has_unicode() end
end

-- Break one line between words.
local function fold_line(line, columns)
  local lines, at = {}, line:match "^%s*"
  for word in line:gmatch "%S+" do
    local longer = at:find "%S" and at .. " " .. word or at .. word
    if #longer > columns and at:find "%S" then
      lines[#lines + 1] = at
      longer = word
    end
    at = longer
  end
  lines[#lines + 1] = at
  return table.concat(lines, "\n")
end

--- Fit the lines of a text to the terminal: longer ones are broken between words.
---@param text string
---@return string
function screen.fold(text)
  local columns = screen.columns()
  return (text:gsub("[^\n]+", function(line)
    return #line > columns and fold_line(line, columns) or nil
  end))
end

return screen
