-- tests/spec/sweep/soak_spec.lua - a sweep that is killed again and again: tests/soak/sweep with
-- few kills, or with 50 under --full.

local child = dofile "tests/child.lua"

describe("a sweep that is killed at random moments", function()
  it("loses at most the running trials, and ends with the same values", function()
    local count = os.getenv "GPIPE_TEST_FULL" and 50 or 5
    child.seconds = math.max(child.seconds, 6 * count)
    local out, err, code = child.shell(("GPIPE_LUA=%s tests/soak/sweep %d"):format(
      child.quote(child.program), count))
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.is_truthy(out:find(("%d kills, %d trials"):format(count, 12 * count + 40), 1, true), out)
  end)
end)
