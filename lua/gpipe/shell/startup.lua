-- lua/gpipe/shell/startup.lua - runs the user's init.lua when the interactive mode starts: in
-- $XDG_CONFIG_HOME/gpipe-lua, without that variable in ~/.config/gpipe-lua.

local terminal = require "gpipe.terminal"

local startup = {}

local function path()
  local config, home = os.getenv "XDG_CONFIG_HOME", os.getenv "HOME"
  if config and config:sub(1, 1) == "/" then return config .. "/gpipe-lua/init.lua" end
  if home and home:sub(1, 1) == "/" then return home .. "/.config/gpipe-lua/init.lua" end
end

--- Run the file if there is one. Its errors are reported, and the mode starts all the same.
function startup.run()
  local name = path()
  local file = name and io.open(name)
  if not file then return end
  file:close()
  local chunk, message = loadfile(name)
  if not chunk then return terminal.complain(message) end
  local ok, text = terminal.call(chunk)
  if not ok then terminal.complain(text) end
end

return startup
