-- lua/gpipe/machine.lua - `gp.devices` and `gp.memory`: what there is to run on, and what is held.

local core = require "gpipe.core"
local options = require "gpipe.options"

local machine = {}

---@class gpipe.Memory
---@field live integer bytes
---@field peak integer bytes
---@field limit integer bytes
---@field collects integer
---@field allocations integer

---@class gpipe.Device
---@field name string "cpu:0"
---@field kind string "cpu", "cuda"
---@field cores? integer
---@field memory? integer bytes; CPU devices share the machine's
---@field available? boolean false where it cannot be used
---@field why? string why not

--- Devices named on the command line with --devices, else nil.
---@return string[]?
function machine.configured()
  local found, config = pcall(require, "gpipe.config")
  return found and config.devices or nil
end

local function cpu_devices(info)
  local list = {}
  for i = 1, info.cores do
    list[i] = { name = "cpu:" .. i - 1, kind = "cpu", cores = 1, memory = info.memory }
  end
  return list
end

local function named_devices(names, info)
  local list = {}
  for i, name in ipairs(names) do
    if type(name) == "table" then name = name.name or name[1] end
    list[i] = { name = name, kind = name:match("^%a+"), cores = 1, memory = info.memory }
  end
  return list
end

--- The devices of this machine, or those that `--devices` chose: one CPU device a core.
--- ```lua
--- for _, d in ipairs(gp.devices()) do print(d.name, d.cores) end
--- print(gp.devices{why = true}[#gp.devices() + 1].why)
--- ```
---@param opts? {why?: boolean} why: also what is absent, with the reason
---@return gpipe.Device[]
function machine.devices(opts)
  local o = options.check("gp.devices", opts, { why = { type = "boolean", default = false } })
  local info, names = core.machine(), machine.configured()
  local list = names and #names > 0 and named_devices(names, info) or cpu_devices(info)
  if o.why then
    list[#list + 1] = {
      name = "cuda", kind = "cuda", available = false, why = "this build has no CUDA part",
    }
  end
  return list
end

--- Bytes that the runtime holds per device: now, and at most so far.
---
--- `limit` is what may be held before Lua's garbage is collected, `collects` how often it was;
--- `allocations` counts calls, and is flat while a pipeline steps.
--- ```lua
--- print(gp.memory().cpu.live)
--- ```
---@return table<string, gpipe.Memory>
function machine.memory()
  return { cpu = core.memory() }
end

return machine
