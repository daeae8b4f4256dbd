-- tests/spec/run/faults_spec.lua - an earlier save stays whole, whatever the system refuses while a
-- checkpoint or a file is written, and wherever the process is killed: tests/soak/faults, of which
-- --full tries every call.

local child = require "tests.child"

describe("a save whose system calls fail #process", function()
  it("leaves the old one whole, says why and leaves nothing behind", function()
    local sanitizer = os.getenv "GPIPE_SANITIZE" or ""
    if sanitizer ~= "" then return pending "a sanitizer wants to be the only tracer" end
    child.seconds = 600 -- each save is a process under strace
    local line = ("GPIPE_LUA=%s tests/soak/faults %s"):format(child.quote(child.program),
      os.getenv "GPIPE_TEST_FULL" and "--full" or "")
    local out, err, code = child.shell(line)
    if code == 77 then return pending(out:match "[^\n]*") end
    assert.equal("", err)
    assert.equal(0, code)
    assert.is_truthy(out:find("%d+ were killed"))
  end)
end)
