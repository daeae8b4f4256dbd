-- tests/spec/pipeline/guard_spec.lua - a task that touches memory which its accesses do not name is
-- found by a build with the address sanitizer.
--
-- All other specs of such a build show that no access is missing. Here one is: the guard is told to
-- overlook a buffer.

local child = dofile "tests/child.lua"

local found = os.getenv "GPIPE_SANITIZE" == "address" and it or pending

local SCRIPT = [[
local gp = require "gpipe"
local nn = gp.nn
local model = nn.Sequential { nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4) }
local pipe <close> = gp.pipeline(model, { balance = { 2, 1 }, chunks = 4, schedule = "zb_h1",
  checkpoint = CHECKPOINT, devices = { "cpu:0", "cpu:1" }, loss = nn.MSELoss(), seed = 1 })
pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
pipe:step(gp.ones { 8, 4 }, gp.ones { 8, 4 })
print "done"
]]

local function run(checkpoint, hidden)
  local script = child.file((SCRIPT:gsub("CHECKPOINT", ("%q"):format(checkpoint))))
  local out, err = child.run({ script }, { environment = { GPIPE_GUARD_HIDE = hidden } })
  os.remove(script)
  return out, err
end

describe("a task's memory", function()
  found("is all that it touches", function()
    for _, checkpoint in ipairs { "never", "always", "except_last" } do
      assert.equal("done\n", (run(checkpoint, "nothing")))
    end
  end)

  for _, case in ipairs { { "never", "saved" }, { "always", "recomputed" },
    { "never", "gradients" }, { "never", "temporary" } } do
    found("is poisoned where an access is missing: " .. case[2], function()
      local out, err = run(table.unpack(case))
      assert.equal("", out)
      assert.matches("AddressSanitizer: use%-after%-poison", err)
    end)
  end
end)
