-- lua/gpipe/screen.lua - how much fits on the terminal.

local core = require "gpipe.core"

local screen = {}

local LEAST_COLUMNS, COLUMNS = 20, 80 -- 80 is what every terminal has
local LEAST_ROWS, ROWS = 10, 32

local function size_of(name, measured)
  return math.tointeger(tonumber(os.getenv(name))) or measured
end

--- Characters of a line of a file, standard output where none is given. COLUMNS is set by shells
--- that want it obeyed.
---@param file? file*
---@return integer
function screen.columns(file)
  local columns = core.terminal_size(file or io.stdout)
  return math.max(LEAST_COLUMNS, size_of("COLUMNS", columns) or COLUMNS)
end

--- Lines of the terminal, with LINES as COLUMNS; where standard output is none, as many as are read
--- at a glance.
---@return integer
function screen.rows()
  local _, rows = core.terminal_size(io.stdout)
  return math.max(LEAST_ROWS, size_of("LINES", rows) or ROWS)
end

--- Whether somebody may read on a screen what is printed: a terminal, or a shell that says how
--- wide.
---@return boolean
function screen.is_bounded()
  return core.terminal_size(io.stdout) ~= nil or os.getenv "COLUMNS" ~= nil
end

--- Whether what is written to a file may have colours: it is a terminal that knows them, and
--- NO_COLOR does not forbid.
---@param file file*
---@return boolean
function screen.has_colours(file)
  local refused = os.getenv "NO_COLOR"
  return not (refused and refused ~= "") and os.getenv "TERM" ~= "dumb" and core.is_terminal(file)
end

-- Whether the locale has the characters of braille.
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

--- Settle those of them that were not given, by the terminal that standard output is.
---@param o table
function screen.fill_in(o)
  o.width = o.width or screen.columns()
  o.height = o.height or math.max(LEAST_PICTURE, math.min(16, screen.rows() - 8))
  if o.colour == nil then o.colour = screen.has_colours(io.stdout) end
  if o.unicode == nil then o.unicode = has_unicode() end
end

-- One line broken between words.
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

--- A text whose lines fit the terminal: longer ones are broken between words.
---@param text string
---@return string
function screen.fold(text)
  local columns = screen.columns()
  return (text:gsub("[^\n]+", function(line)
    return #line > columns and fold_line(line, columns) or nil
  end))
end

return screen
