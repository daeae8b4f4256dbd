-- lua/gpipe/command/watch.lua - `gpipe-lua watch [DIR]`: the page of runs, served to this machine.

local words = require "gpipe.command.words"

local command = {
  name = "watch", usage = "watch [DIR]",
  about = "Serves the page of the training runs below DIR (runs) to browsers of this machine,\n"
    .. "with what the runs write meanwhile. Ctrl-C ends it.",
  flags = {
    { "--port N", 7007, "port of http://127.0.0.1:N/; 0 takes any free port", min = 0 },
  },
}

local function is_interrupt(fault) return type(fault) == "table" and fault.code == "interrupt" end

-- Serve until Ctrl-C, which is no failure here.
local function serve(made)
  local good, fault = pcall(function()
    while true do made:step() end
  end)
  made:close()
  if good or is_interrupt(fault) then return 0 end
  return words.fail(command, tostring(fault))
end

return function(given)
  local values, operands = words.read(command, given)
  if not values then return operands end
  if values.port > 65535 then
    return words.refuse(command, ("--port is %d, expected at most 65535"):format(values.port))
  end
  local list, code = words.runs(command, operands --[[@as string[] ]])
  if not list then return code end
  local made, fault = require("gpipe.run_reader.server").open(list, values.port)
  if not made then return words.fail(command, fault) end
  print(("%s shows the runs in %s (Ctrl-C ends)"):format(made:address(), list.dir))
  io.stdout:flush()
  return serve(made)
end
