-- lua/gpipe/run_reader/process.lua - whether the process that wrote a state still runs.

local core = require "gpipe.core"

local process = {}

-- Read one line: files of /proc have no size, so they cannot be read as a whole by size.
local function first_line(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "l"
end

--- The name of this machine; "" where the system does not say.
---@return string
function process.host() return (select(2, core.process())) end

--- Whether a process of this machine runs; nil where that cannot be known. A zombie does not run.
---@param pid integer
---@return boolean?
function process.runs(pid)
  if not first_line "/proc/self/stat" then return nil end
  local text = first_line(("/proc/%d/stat"):format(pid))
  local state = text and text:match "^%d+ %(.*%) (%a)"
  return state ~= nil and state ~= "Z" and state ~= "X"
end

return process
