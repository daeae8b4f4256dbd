-- tests/spec/tensor/hostile_spec.lua - every public function, method and option with wrong, extreme
-- and unusual arguments: nothing crashes, hangs, or fails inside our own Lua code.
--
-- Memory is limited, so that at the latest the system refuses sizes such as 2^40.

local child = dofile "tests/child.lua"

local sanitizer = os.getenv "GPIPE_SANITIZE" or ""
local LIMITED = sanitizer == "" or sanitizer == "none" or sanitizer == "OFF"
local ROUNDS = tonumber(os.getenv "GPIPE_HOSTILE_ROUNDS") or 6

describe("wrong arguments of", function()
  for _, place in ipairs { "gp", "nn", "init", "optim", "rates", "linalg", "methods",
    "data", "schedule", "train", "checkpoint", "models", "objects", "options" } do
    it(place .. " are refused or accepted", function()
      if not LIMITED then return pending "sanitizers map more memory than a limit allows" end
      local out, err, code = child.shell(("ulimit -v 4000000; HOSTILE_SECONDS=30 %s "
        .. "tests/support/hostile.lua %s %d"):format(child.quote(child.program), place, ROUNDS))
      local faults = {}
      for line in out:gmatch "fault\t([^\n]*)" do faults[#faults + 1] = line end
      assert.same({}, faults)
      local last = out:match "([^\n]*)\n$" or ""
      assert(last == "done", ("exit code %d in %s\n%s"):format(code, last, err:sub(-2000)))
    end)
  end
end)
