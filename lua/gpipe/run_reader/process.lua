-- lua/gpipe/run_reader/process.lua - whether the process that wrote a state is still there.

local core = require "gpipe.core"

local process = {}

-- The system's own files have no size that could be asked for.
local function first_line(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "l"
end

--- The name of this machine; "" where the system does not say.
---@return string
function process.host() return (select(2, core.process())) end

--- Whether a process of this machine runs; nil where that cannot be known. One that has ended and
--- that nobody has waited for does not run.
---@param pid integer
---@return boolean?
function process.runs(pid)
  if not first_line "/proc/self/stat" then return nil end
  local text = first_line(("/proc/%d/stat"):format(pid))
  local state = text and text:match "^%d+ %(.*%) (%a)"
  return state ~= nil and state ~= "Z" and state ~= "X"
end

return process
