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
end)
