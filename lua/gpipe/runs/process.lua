-- lua/gpipe/runs/process.lua - whether the process that wrote a state is still there.

local core = require "gpipe.core"
local read = require "gpipe.runs.read"

local process = {}

--- The name of this machine; "" where the system does not say.
---@return string
function process.host() return (select(2, core.process())) end

--- Whether a process of this machine runs; nil where that cannot be known. One that has ended and
--- that nobody has waited for does not run.
---@param pid integer
---@return boolean?
function process.runs(pid)
  if not read.text "/proc/self/stat" then return nil end
  local text = read.text(("/proc/%d/stat"):format(pid))
  local state = text and text:match "^%d+ %(.*%) (%a)"
  return state ~= nil and state ~= "Z" and state ~= "X"
end

return process
