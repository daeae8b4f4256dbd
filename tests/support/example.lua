-- tests/support/example.lua - runs the examples as a user does, in a process of their own.
local example = {}

-- Returns the interpreter that runs this file.
local function interpreter()
  local first = 0
  while arg[first - 1] do first = first - 1 end
  return arg[first]
end

--- Run `gpipe-lua examples/LINE`; returns its output with its errors, and the exit code.
---@param line string
---@return string text
---@return integer code
function example.run(line)
  local pipe = assert(io.popen(("%s examples/%s 2>&1"):format(interpreter(), line)))
  local text = pipe:read "a"
  local _, _, code = pipe:close()
  return text, code
end

return example
