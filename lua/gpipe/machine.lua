-- lua/gpipe/machine.lua - `gp.devices` and `gp.memory`: the devices of the machine, and the memory
-- in use.

local core = require "gpipe.core"
local options = require "gpipe.options"
local readable = require "gpipe.readable"

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
---@field model? string "NVIDIA H100 80GB HBM3"
---@field capability? string "9.0"
---@field multiprocessors? integer
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

-- GPUs, or nil and why there is none.
local function gpu_devices()
  local found, why = core.gpus()
  if not found then return nil, why end
  local list = {}
  for i, gpu in ipairs(found) do
    list[i] = {
      name = "cuda:" .. i - 1, kind = "cuda", memory = gpu.memory, model = gpu.model,
      capability = gpu.capability, multiprocessors = gpu.multiprocessors,
    }
  end
  return list
end

local function named_devices(names, info)
  local list = {}
  for i, name in ipairs(names) do
    if type(name) == "table" then name = name.name or name[1] end
    local device = core.device(name) -- nil for a name that a pipeline will refuse
    list[i] = { name = name, kind = device and device.kind }
    if list[i].kind == "cpu" then list[i].cores, list[i].memory = 1, info.memory end
  end
  return list
end

--- Names of the GPUs; an empty list where there is none.
---@return string[]
function machine.gpus()
  local names = {}
  for i, gpu in ipairs(gpu_devices() or {}) do names[i] = gpu.name end
  return names
end

--- The devices of this machine, or those that `--devices` chose: one CPU device a core, then the
--- GPUs.
--- ```lua
--- for _, d in ipairs(gp.devices()) do print(d.name, d.memory) end
--- for _, d in ipairs(gp.devices{why = true}) do print(d.name, d.why) end
--- ```
---@param opts? {why?: boolean} why: also what is absent, with the reason
---@return gpipe.Device[]
function machine.devices(opts)
  local o = options.check("gp.devices", opts, { why = { type = "boolean", default = false } })
  local info, names = core.machine(), machine.configured()
  local chosen = names and #names > 0
  local list = chosen and named_devices(names, info) or cpu_devices(info)
  local gpus, why = gpu_devices()
  if gpus and not chosen then table.move(gpus, 1, #gpus, #list + 1, list) end
  if o.why and not gpus then
    list[#list + 1] = { name = "cuda", kind = "cuda", available = false, why = why }
  end
  return readable(list)
end

---@class gpipe.Library
---@field name string "cuDNN"
---@field version? string "9.19.0"; nil where it is missing
---@field why? string why it is missing

--- The libraries that GPUs use, found or missing: an empty list without the CUDA plugin.
---@return gpipe.Library[]
function machine.libraries() return core.gpu_libraries() end

--- One line of a report: "cuDNN 9.19.0", "cuDNN: missing (why)".
---@param library gpipe.Library
---@return string
function machine.library_text(library)
  local why = library.why and (" (%s)"):format(library.why) or ""
  return ("%s%s%s"):format(library.name, library.version and " " .. library.version or ": missing",
    why)
end

---@class gpipe.ProcessMemory bytes; all fields but the first add up to it
---@field resident integer what the kernel has given pages to
---@field runtime integer tensors, pipelines, plans: gp.memory().cpu.live
---@field script integer Lua's objects
---@field libraries integer what libraries allocate
---@field files integer the program, its libraries, mapped data files
---@field code integer what oneDNN generates
---@field stacks integer of all threads
---@field unused integer freed and kept by the C library; below 0 where memory was not touched yet

local function process_memory()
  local now, script = core.resident(), math.floor(1024 * collectgarbage "count")
  return readable {
    resident = now.resident, runtime = now.runtime, script = script,
    libraries = now.allocated - now.runtime - script, files = now.files, code = now.code,
    stacks = now.stacks, unused = now.heap - now.allocated,
  }
end

--- Bytes that the runtime holds on each device: now, and the most so far.
---
--- For `cpu`, `limit` is how many bytes may be held before Lua's garbage is collected, and
--- `collects` is how often that happened; `allocations` counts allocations, and does not grow while
--- a pipeline steps. GPUs that were used have `live` and `peak`, counted by the runtime (without
--- what libraries hold), and `total`.
--- ```lua
--- print(gp.memory().cpu.live)
--- print(gp.memory{process = true}.process)
--- ```
---@param opts? {process?: boolean} process: also what the whole process has in memory, and for what
---@return table<string, gpipe.Memory>
function machine.memory(opts)
  local o = options.check("gp.memory", opts, { process = { type = "boolean", default = false } })
  local memory = readable { cpu = readable(core.memory()) }
  if o.process then memory.process = process_memory() end
  for i, gpu in ipairs(core.gpus(true) or {}) do
    memory["cuda:" .. i - 1] = readable { live = gpu.live, peak = gpu.peak, total = gpu.memory }
  end
  return memory
end

return machine
