-- tests/spec/plan/crossing_spec.lua - what a cut costs its stages beyond their layers: measured for
-- whole stages, and spread over other cuts by the bytes that cross them.
local crossing = require "gpipe.plan.crossing"
local cut = require "gpipe.profile.cut"
local gp = require "gpipe"
local request = require "gpipe.profile.request"
local runs = require "gpipe.profile.runs"
local nn = gp.nn

local function layers(count, bytes)
  local list = {}
  for i = 1, count do
    list[i] = { forward = 1, backward = 2, output_bytes = bytes and bytes[i] or 10 }
  end
  return list
end

-- What stages take, in seconds, as parts of so many layers.
local function parts(count, forward, backward)
  local stages = { F = {}, B = {} }
  for s, seconds in ipairs(forward) do stages.F[s] = seconds / count end
  for s, seconds in ipairs(backward) do stages.B[s] = seconds / (2 * count) end
  return stages
end

describe("a cut", function()
  it("costs a stage what it was measured to take beyond its layers", function()
    local known, six = crossing.new(), layers(6)
    crossing.note(known, { 2, 3, 1 }, parts(6, { 2.5, 3.25, 1.5 }, { 4, 6.5, 3 }), six)
    local sides = crossing.seconds(known, six)
    for _, one in ipairs { { 1, 2, 0.5, 0 }, { 3, 5, 0.25, 0.5 }, { 6, 6, 0.5, 1 } } do
      local forward, backward = crossing.of(sides, one[1], one[2], 6)
      assert.is_true(math.abs(forward - one[3]) < 1e-9 and math.abs(backward - one[4]) < 1e-9)
    end
  end)

  it("costs more where more rows cross it", function()
    local known = crossing.new()
    crossing.note(known, { 1, 1 }, parts(2, { 1.5, 1 }, { 2, 2 }), layers(2))
    local sides = crossing.seconds(known, layers(2, { 20, 20 }))
    assert.same({ 1, 0 }, { crossing.of(sides, 1, 1, 2) })
  end)

  it("that was not measured costs what others do for their bytes, and gains nothing", function()
    local known = crossing.new()
    crossing.note(known, { 2, 3, 1 }, parts(6, { 3, 5, 2 }, { 3, 5, 1 }), layers(6))
    local other = crossing.seconds(known, layers(6, { 10, 10, 40, 10, 10, 10 }))
    assert.same({ 4, 0 }, { crossing.of(other, 1, 3, 6) })
    assert.same({ 4, 0 }, { crossing.of(other, 4, 6, 6) })
  end)

  it("costs nothing where none was measured, nor does a stage of all layers", function()
    assert.is_nil(crossing.seconds(nil, layers(2)))
    assert.same({ 0, 0 }, { crossing.of(nil, 1, 1, 2) })
    local known = crossing.new()
    crossing.note(known, { 1, 1 }, parts(2, { 9, 9 }, { 9, 9 }), layers(2))
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

  it("copy images that cross, which no layer shows", function()
    local x = gp.ones { 4, 16, 8, 8 }
    local wanted = request.of("who", convolutions(), { x, x }, { chunks = 1, loss = nn.MSELoss() })
    local function copies(balance)
      local run <close> = runs.open(wanted, "cpu:0", "never", { whole = true, balance = balance })
      local count = 0
      for _, e in ipairs(run:entries()) do
        count = count + (e.action and e.op == "copy" and 1 or 0)
      end
      return count
    end
    assert.is_true(copies { 2, 2 } > copies { 4 })
    assert.is_true(copies { 1, 2, 1 } > copies { 2, 2 })
  end)
end)
