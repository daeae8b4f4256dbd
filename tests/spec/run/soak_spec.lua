-- tests/spec/run/soak_spec.lua - a training run that is killed at random moments ends as if it had
-- never been killed: tests/soak/kill with few kills, or with 200 under --full.

local child = require "tests.child"

describe("a run that is killed again and again #process", function()
  it("ends with the same bytes", function()
    child.seconds = 3600 -- on a machine that others use
    local count = os.getenv "GPIPE_TEST_FULL" and 200 or 20
    local line = ("GPIPE_LUA=%s tests/soak/kill %d"):format(child.quote(child.program), count)
    local out, err, code = child.shell(line)
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches(("killed %d times"):format(count), out)
  end)
end)
