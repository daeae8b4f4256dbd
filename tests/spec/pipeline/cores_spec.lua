-- tests/spec/pipeline/cores_spec.lua - cpu:N is a place on the machine, whatever other devices a
-- script uses.

local child = dofile "tests/child.lua"
local core = require "gpipe.core"

-- Prints the cores on which the worker of each device may run, as the system reports them: "cpu:1
-- 1\n".
local SCRIPT = [[
  local gp = require "gpipe"
  local layers, devices = {}, {}
  for i, name in ipairs(arg) do
    layers[i], devices[i] = gp.nn.Linear(2, 2), { name, threads = 1 }
  end
  local pipe <close> = gp.pipeline(gp.nn.Sequential(layers), { devices = devices, loss = gp.nn.MSELoss() })
  pipe:step(gp.zeros { 4, 2 }, gp.zeros { 4, 2 })
  for id in io.popen("ls /proc/self/task/../../$PPID/task"):lines() do
    local file = io.open("/proc/self/task/" .. id .. "/status")
    local text = file and file:read "a" or ""
    local name, cores = text:match "^Name:%s*(cpu:%d+)\n.*Cpus_allowed_list:%s*([%d,-]+)"
    if name then print(name, cores) end
    if file then file:close() end
  end
]]

-- {["cpu:1"] = "1"}
local function cores_of(...)
  local found, script = {}, child.file(SCRIPT)
  local out, err = child.run { script, ... }
  os.remove(script)
  for name, cores in out:gmatch "(cpu:%d+)\t(%S+)" do found[name] = cores end
  assert(next(found), out .. err)
  return found
end

local function on_cores(sentence, wanted, f)
  it(sentence, function()
    local file = io.open "/proc/self/status"
    if not file then pending("there is no /proc to tell where threads run") return end
    file:close()
    if core.machine().cores < wanted then pending("this machine has too few cores") return end
    f()
  end)
end

describe("a CPU device", function()
  on_cores("has cores of its own, also in a script that uses no other device", 2, function()
    local first, second = cores_of("cpu:0")["cpu:0"], cores_of("cpu:1")["cpu:1"]
    assert.are_not.equal(first, second)
    assert.are.same({ ["cpu:0"] = first, ["cpu:1"] = second }, cores_of("cpu:0", "cpu:1"))
    assert.are.same({ ["cpu:0"] = first, ["cpu:1"] = second }, cores_of("cpu:1", "cpu:0"))
  end)
end)
