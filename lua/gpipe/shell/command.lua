-- gpipe/shell/command.lua - implements those switches of gpipe-lua that print something.
--
-- The program's C code decides when to call it; this module knows what to say about devices.

local counted = require "gpipe.counted"
local sizes = require "gpipe.sizes"

local command = {}

local function describe(device)
  if device.why then return ("%-10s not available: %s"):format(device.name, device.why) end
  local cores = device.cores and counted(device.cores, "core")
  local memory = device.memory and sizes.text(device.memory)
  local model = device.model
    and ("%s (compute capability %s, %d multiprocessors)"):format(device.model,
    device.capability, device.multiprocessors)
  local facts = {}
  for _, fact in ipairs { device.kind or false, model or false, cores or false, memory or false } do
    if fact then facts[#facts + 1] = fact end
  end
  return ("%-10s %s"):format(device.name, table.concat(facts, ", "))
end

--- Print one line per device: its properties, or why it is not available; then how CPU devices
--- multiply bf16, and the libraries that GPUs use.
function command.list_devices()
  local gp = require "gpipe"
  local machine = require "gpipe.machine"
  local path, lacks = require("gpipe.core").bf16_path()
  for _, device in ipairs(gp.devices { why = true }) do print(describe(device)) end
  print("           bf16 on CPU devices: " .. path .. (lacks and (" (%s)"):format(lacks) or ""))
  for _, library in ipairs(machine.libraries()) do
    print("           " .. machine.library_text(library))
  end
end

return command
