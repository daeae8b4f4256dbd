-- lua/gpipe/shell/commands.lua - those lines of the interactive mode that are not Lua: `?name`,
-- `$ command`, and `exit` or `quit` typed alone.

local documentation = require "gpipe.shell.documentation"
local screen = require "gpipe.screen"

local commands = {}

local function explain(name)
  return function() print(screen.fold(documentation.of_name(name))) end
end

-- Run a shell command, which writes to the terminal itself; print its exit code if it is not 0.
local function run_shell(command)
  return function()
    io.stdout:flush()
    local _, how, code = os.execute(command)
    if code ~= 0 then print(("%s %d"):format(how, code)) end
  end
end

local function leave() os.exit(true, true) end

--- `exit` and `quit`: shown, called or typed alone they end the program.
commands.leave = setmetatable({}, {
  __name = "exit",
  __tostring = function() return "exit() leaves, Ctrl-D too" end,
  __call = function(_, code) os.exit(code == nil or code, true) end,
})

--- The command in a line, as a function without arguments; nil if the line is Lua.
---@param line string
---@return function?
function commands.find(line)
  local name = line:match "^%s*%?%s*([%a_][%w_.:]*)%s*$"
  if name then return explain(name) end
  if line:find "^%s*%?%s*$" then return function() print(require "gpipe.shell.help") end end
  local command = line:match "^%s*%$%s*(%S.*)$"
  if command then return run_shell(command) end
  local word = line:match "^%s*(%a+)%s*;?%s*$"
  if (word == "exit" or word == "quit") and rawget(_G, word) == commands.leave then return leave end
end

return commands
