-- tests/spec/plan/way_spec.lua - how long values are on their way between two devices.

local way = require "gpipe.plan.way"

describe("the way between two devices", function()
  it("takes its latency and the bytes at its bandwidth where it is described", function()
    local link = way.new(1e-3, 1e6)
    assert.equal(1e-3, way.seconds(link, 0))
    assert.near(3e-3, way.seconds(link, 2000), 1e-12)
    assert.near(2e-3, way.busy(link, 2000), 1e-12)
  end)

  it("takes what messages took in the mean where it was measured, on straight lines between", function()
    local link = way.new(1e-3, 1e9, { { 8, 2e-3 }, { 1008, 4e-3 }, { 3008, 5e-3 } })
    assert.equal(2e-3, way.seconds(link, 0))
    assert.equal(2e-3, way.seconds(link, 8))
    assert.near(3e-3, way.seconds(link, 508), 1e-12)
    assert.near(4e-3, way.seconds(link, 1008), 1e-12)
    assert.near(4.5e-3, way.seconds(link, 2008), 1e-12)
    assert.near(7e-3, way.seconds(link, 7008), 1e-12) -- goes on like the last two sizes
  end)

  it("is taken up for what the bytes add to the time of the smallest message", function()
    local link = way.new(1e-3, 1e9, { { 8, 2e-3 }, { 1008, 4e-3 } })
    assert.equal(0, way.busy(link, 0))
    assert.near(2e-3, way.busy(link, 1008), 1e-12)
  end)

  it("gives both ends work where that was measured, on straight lines between", function()
    local link = way.new(1e-3, 1e9, { { 8, 2e-3, 1e-5, 2e-5 }, { 1008, 4e-3, 2e-5, 6e-5 } })
    local function check(bytes, send, receive)
      local s, r = way.work(link, bytes)
      assert.near(send, s, 1e-12)
      assert.near(receive, r, 1e-12)
    end
    check(0, 1e-5, 2e-5)
    check(508, 1.5e-5, 4e-5)
    check(2008, 3e-5, 1e-4)
    assert.same({ 0, 0 }, { way.work(way.new(1e-3, 1e9), 508) })
    assert.same({ 0, 0 }, { way.work(way.new(1e-3, 1e9, { { 8, 2e-3 }, { 16, 3e-3 } }), 12) })
  end)
end)
