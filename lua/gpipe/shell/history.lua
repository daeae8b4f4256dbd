-- lua/gpipe/shell/history.lua - keeps what was typed in the interactive mode from one session to
-- the next.
--
-- The file has one entry a line and is $XDG_STATE_HOME/gpipe-lua/history or
-- ~/.local/state/gpipe-lua/history, which only its owner can read. Every entry is appended as it is
-- typed, so a session that is killed loses nothing, and two sessions at once do not lose each
-- other's entries.

local terminal = require "gpipe.terminal"

local history = {}

local KEPT = 1000 -- entries; the file is cut when it holds twice as many

-- The folder of the file; nil if the environment names none.
local function folder()
  local state, home = os.getenv "XDG_STATE_HOME", os.getenv "HOME"
  if state and state:sub(1, 1) == "/" then return state .. "/gpipe-lua" end
  if home and home:sub(1, 1) == "/" then return home .. "/.local/state/gpipe-lua" end
end

local function encode(text) return (text:gsub("\\", "\\\\"):gsub("\n", "\\n")) end

local function decode(line)
  return (line:gsub("\\(.)", function(c) return c == "n" and "\n" or c end))
end

local function read(path)
  local lines, file = {}, io.open(path, "r")
  if not file then return lines end
  for line in file:lines() do lines[#lines + 1] = line end
  file:close()
  return lines
end

-- Return whether the last line has no newline, which a killed session or an editor may cause.
local function ends_within_line(path)
  local file <close> = io.open(path, "rb")
  if not file or not file:seek("end", -1) then return false end
  return file:read(1) ~= "\n"
end

-- Keep only the last entries in the file.
local function shorten(path, lines)
  local kept = table.concat(lines, "\n", #lines - KEPT + 1) .. "\n"
  local new = path .. ".new"
  os.remove(new)
  if terminal.append(new, kept) then os.rename(new, path) end
end

--- Load the entries of earlier sessions into the line editor; return a function that saves the next
--- ones.
---@return fun(text: string): boolean?, string? true, or nil and why the entry could not be written
function history.open()
  local where = folder()
  if not where or not terminal.make_folder(where) then return function() return true end end
  local path = where .. "/history"
  local lines = read(path)
  for i = math.max(1, #lines - KEPT + 1), #lines do terminal.remember(decode(lines[i])) end
  if #lines > 2 * KEPT then shorten(path, lines) end
  local break_line = ends_within_line(path) and "\n" or ""
  return function(text)
    local good, why = terminal.append(path, break_line .. encode(text) .. "\n")
    break_line = ""
    return good, why
  end
end

return history
