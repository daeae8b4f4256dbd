-- tests/spec/plan/crossing_spec.lua - what a cut costs its stages beyond their layers: measured for
-- whole stages, and spread over other cuts by the bytes that cross them.
local crossing = require "gpipe.plan.crossing"
local cut = require "gpipe.profile.cut"
local gp = require "gpipe"
local request = require "gpipe.profile.request"
local nn = gp.nn

local function layers(count, bytes)
  local list = {}
  for i = 1, count do
    list[i] = { forward = 1, backward = 2, output_bytes = bytes and bytes[i] or 10 }
  end
  return list
end

describe("a cut", function()
  it("costs a stage what it was measured to take beyond its layers", function()
    local known, six = crossing.new(), layers(6)
    crossing.note(known, { 2, 3, 1 }, { F = { 2.5, 3.25, 1.5 }, B = { 4, 6.5, 3 } }, six)
    local sides = crossing.seconds(known, six)
    assert.same({ 0.5, 0 }, { crossing.of(sides, 1, 2, 6) })
    assert.same({ 0.25, 0.5 }, { crossing.of(sides, 3, 5, 6) })
    assert.same({ 0.5, 1 }, { crossing.of(sides, 6, 6, 6) })
  end)

  it("costs more where more rows cross it", function()
    local known = crossing.new()
    crossing.note(known, { 1, 1 }, { F = { 1.5, 1 }, B = { 2, 2 } }, layers(2))
    local sides = crossing.seconds(known, layers(2, { 20, 20 }))
    assert.same({ 1, 0 }, { crossing.of(sides, 1, 1, 2) })
  end)

  it("that was not measured costs what others do for their bytes, and gains nothing", function()
    local known = crossing.new()
    crossing.note(known, { 2, 3, 1 }, { F = { 3, 5, 2 }, B = { 3, 5, 1 } }, layers(6))
    local other = crossing.seconds(known, layers(6, { 10, 10, 40, 10, 10, 10 }))
    assert.same({ 4, 0 }, { crossing.of(other, 1, 3, 6) })
    assert.same({ 4, 0 }, { crossing.of(other, 4, 6, 6) })
  end)

  it("costs nothing where none was measured, nor does a stage of all layers", function()
    assert.is_nil(crossing.seconds(nil, layers(2)))
    assert.same({ 0, 0 }, { crossing.of(nil, 1, 1, 2) })
    local known = crossing.new()
    crossing.note(known, { 1, 1 }, { F = { 9, 9 }, B = { 9, 9 } }, layers(2))
    assert.same({ 0, 0 }, { crossing.of(crossing.seconds(known, layers(2)), 1, 2, 2) })
  end)
end)

describe("the stages of a cut", function()
  local function convolutions()
    local list = {}
    for i = 1, 4 do list[i] = nn.Conv2d(16, 16, 3, { padding = 1 }) end
    return nn.Sequential(list)
  end

  local function measured(model, sample, balance, loss)
    local wanted = request.of("who", model, sample, { chunks = 1, loss = loss })
    return cut.measure(wanted, { device = { "cpu:0", threads = 1 }, repeats = 5 }, balance)
  end

  it("are measured whole, with a loss and without one", function()
    local x = gp.ones { 4, 16, 32, 32 }
    for _, loss in ipairs { false, nn.MSELoss() } do
      local stages = measured(convolutions(), { x, x }, { 1, 3 }, loss or nil)
      assert.equal(2, #stages.F)
      assert.is_true(stages.F[1] > 0 and stages.B[1] > 0)
      assert.is_true(stages.F[2] > stages.F[1] and stages.B[2] > stages.B[1])
    end
  end)

  it("copy images that cross", function() -- three cuts for one, so it is no matter of luck
    local x = gp.ones { 4, 16, 64, 64 }
    local function sum(stages)
      local seconds = 0
      for s = 1, #stages.F do seconds = seconds + stages.F[s] + stages.B[s] end
      return seconds
    end
    local times = 0
    for _ = 1, 5 do
      local apart = sum(measured(convolutions(), { x, x }, { 1, 1, 1, 1 }, nn.MSELoss()))
      local together = sum(measured(convolutions(), { x, x }, { 4 }, nn.MSELoss()))
      times = times + (apart > together and 1 or 0)
    end
    assert.is_true(times >= 3)
  end)
end)
