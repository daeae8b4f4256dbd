-- tests/spec/plan/partition_spec.lua - the cut into stages is the best one: compared with all cuts
-- of short lists, and on lists that mislead other partitioners.
local fails_with = require("tests.support.expect").fails_with
local partition = require "gpipe.pipeline.plan.partition"

local WHO = "who"
local function cut(costs, stages, opts) return partition.minimax(WHO, costs, stages, opts) end

-- ---- all cuts -----------------------------------------------------------------------------------

-- Returns the cost of a stage with the layers first .. last.
local function cost_of(costs, comm, first, last)
  local sum = 0
  for i = first, last do sum = sum + costs[i] end
  if not comm then return sum end
  return sum + (first > 1 and comm[first - 1] or 0) + (last < #costs and comm[last] or 0)
end

-- Tries all cuts, those with long first stages first; returns the first of the cheapest ones.
-- allows(layer, stage): may the layer be in the stage? apart(i): may a cut be after layer i?
local function best_of(costs, stages, comm, allows, apart)
  local best, cheapest = nil, math.huge
  local function try(at, counts, most)
    if most >= cheapest then return end
    local k = #counts + 1
    if k > stages then
      if at == #costs then best, cheapest = table.move(counts, 1, #counts, 1, {}), most end
      return
    end
    for stop = #costs - (stages - k), at + 1, -1 do
      local good = k < stages and (not apart or apart(stop)) or k == stages and stop == #costs
      for i = at + 1, good and stop or at do good = good and (not allows or allows(i, k - 1)) end
      if good then
        counts[k] = stop - at
        try(stop, counts, math.max(most, cost_of(costs, comm, at + 1, stop)))
        counts[k] = nil
      end
    end
  end
  try(0, {}, -1)
  return best, cheapest
end

-- Numbers of a sequence that is the same in every run.
local function numbers(seed)
  return function(low, high)
    seed = (seed * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return low + (seed >> 33) % (high - low + 1)
  end
end

local function list_of(draw, count, high)
  local list = {}
  for i = 1, count do list[i] = draw(0, high) end
  return list
end

describe("the partition", function()
  it("is the best of all cuts, on 10,000 random lists", function()
    local draw = numbers(1)
    for _ = 1, 10000 do
      local costs = list_of(draw, draw(1, 9), ({ 0, 1, 3, 20, 1000 })[draw(1, 5)])
      local stages = draw(1, #costs)
      local counts, largest = cut(costs, stages)
      local best, cheapest = best_of(costs, stages)
      assert.are.equal(cheapest, largest)
      assert.are.same(best, counts) -- ties: early stages take as many layers as possible
    end
  end)

  it("is the best of all cuts that cost something themselves", function()
    local draw = numbers(2)
    for _ = 1, 3000 do
      local costs = list_of(draw, draw(2, 8), ({ 0, 1, 3, 20 })[draw(1, 4)])
      local comm = list_of(draw, #costs - 1, ({ 0, 2, 30 })[draw(1, 3)])
      local stages = draw(1, #costs)
      local counts, largest = cut(costs, stages, { comm = comm })
      local best, cheapest = best_of(costs, stages, comm)
      assert.are.equal(cheapest, largest)
      assert.are.same(best, counts)
    end
  end)

  it("is the best of those that keep layers pinned and together", function()
    local draw, possible = numbers(3), 0
    for _ = 1, 3000 do
      local costs = list_of(draw, draw(2, 8), 9)
      local stages, comm = draw(1, #costs), nil
      if draw(0, 1) == 1 then comm = list_of(draw, #costs - 1, 5) end
      local layer, stage = draw(1, #costs), draw(0, stages - 1)
      local a, b = draw(1, #costs), draw(1, #costs)
      local best, cheapest = best_of(costs, stages, comm,
        function(i, k) return i ~= layer or k == stage end,
        function(i) return i < math.min(a, b) or i >= math.max(a, b) end)
      local good, counts, largest = pcall(cut, costs, stages,
        { comm = comm, pinned = { [layer] = stage }, together = { { a, b } } })
      assert.are.equal(best ~= nil, good, counts)
      if best then
        possible = possible + 1
        assert.are.equal(cheapest, largest)
        assert.are.same(best, counts)
      end
    end
    assert.is_true(possible > 1000)
  end)

  it("is exact for fractions too: no other cut has a smaller largest sum", function()
    local draw = numbers(4)
    for _ = 1, 500 do
      local costs = list_of(draw, draw(2, 8), 1000)
      for i, v in ipairs(costs) do costs[i] = v / 7 end
      local stages = draw(1, #costs)
      local _, largest = cut(costs, stages)
      local _, cheapest = best_of(costs, stages)
      assert.are.equal(cheapest, largest)
    end
  end)

  local function repeated(...)
    local list = {}
    for _, pair in ipairs { ... } do
      for _ = 1, pair[1] do list[#list + 1] = pair[2] end
    end
    return list
  end

  -- costs, stages, the best cut and its largest sum; then what the others do with them
  local misleading = {
    { repeated({ 12, 10 }, { 12, 11 }), 4, "6,6,6,6", 66, "torchgpipe cuts 15,3,3,3: 153" },
    { repeated({ 12, 1 }, { 2, 100 }), 3, "12,1,1", 100, "torchgpipe leaves a stage empty" },
    { { 1, 1, 1, 1, 13, 8 }, 5, "2,1,1,1,1", 13, "torchgpipe does not terminate" },
    { repeated({ 10, 1 }), 4, "3,3,3,1", 3, "torchgpipe cuts 2,2,2,4" },
    { repeated({ 1, 10 }, { 10, 1 }), 3, "1,9,1", 10, "torchgpipe cuts 3,3,5: 12" },
    { { 5, 4, 4, 10, 6, 7 }, 4, "3,1,1,1", 13, "torchgpipe leaves a stage empty: 1,3,0,2" },
    { { 1, 2, 3, 4, 5, 6 }, 2, "4,2", 11, "torchgpipe's own test" },
    { { 6, 5, 4, 3, 2, 1 }, 2, "2,4", 11, "torchgpipe's own test" },
    { { 0, 0 }, 2, "1,1", 0, "torchgpipe's own test" },
    { { 10, 20, 30, 40, 50, 60 }, 2, "4,2", 110, "torchgpipe's own test" },
    { { 4, 9, 5, 7 }, 3, "1,1,2", 12, "DeepSpeed cuts 2,1,1: 13" },
    { { 3, 9, 2, 7, 5, 5 }, 4, "1,1,2,2", 10, "DeepSpeed cuts 2,2,1,1: 12" },
    { { 4, 7, 6, 3, 3, 6 }, 4, "1,1,2,2", 9, "DeepSpeed cuts 2,1,2,1: 11" },
    { { 0, 0, 0, 0, 9 }, 3, "3,1,1", 9, "zeros are layers too" },
    { { 3 }, 1, "1", 3, "one layer" },
  }
  for _, case in ipairs(misleading) do
    local costs, stages, counts, largest, why = table.unpack(case)
    it(("of %d layers into %d is %s (%s)"):format(#costs, stages, counts, why), function()
      local found, most = cut(costs, stages)
      assert.are.same({ counts, largest + 0.0 }, { table.concat(found, ","), most })
    end)
  end

  it("of 10,000 layers into 1,024 stages takes seconds at most, also with costs of cuts",
    function()
      local draw = numbers(5)
      local costs, comm = list_of(draw, 10000, 1000000), list_of(draw, 9999, 1000)
      local begin = os.clock()
      local counts, largest = cut(costs, 1024)
      assert.is_true(os.clock() - begin < 5)
      assert.are.equal(1024, #counts)
      local _, dearer = cut(costs, 1024, { comm = comm })
      assert.is_true(os.clock() - begin < 30)
      assert.is_true(dearer >= largest)
    end)
end)

describe("the partition refuses", function()
  local refused = {
    { { 1, 2 }, 3, nil, "who: 3 stages and 2 layers, expected at least a layer per stage" },
    { {}, 1, nil, "who: 1 stage and 0 layers" },
    { { 1 }, 0, nil, "who: the number of stages is 0, expected an integer >= 1" },
    { { 1 }, 1.5, nil, "who: the number of stages is 1.5 (float), expected an integer" },
    { { 1 }, "1", nil, 'who: the number of stages is "1" (string)' },
    { { 1, -2 }, 1, nil, "who: the cost of layer 2 is -2, expected a finite number >= 0" },
    { { 0 / 0 }, 1, nil, "who: the cost of layer 1 is nan (float)" },
    { { math.huge }, 1, nil, "who: the cost of layer 1 is inf (float)" },
    { { 1, "2" }, 1, nil, 'who: the cost of layer 2 is "2" (string)' },
    { 3, 1, nil, "who: the costs are 3, expected a list of numbers" },
    { { 1, 2, 3 }, 2, { comm = { 1 } }, "who: there are 1 costs of cuts, expected 2" },
    { { 1, 2, 3 }, 2, { comm = { 1, -1 } }, "who: the cost of a cut after layer 2 is -1" },
    { { 1, 2 }, 2, { pinned = { [3] = 0 } }, "who: pinned: layer 3, expected one of 1..2" },
    { { 1, 2 }, 2, { pinned = { [1] = 2 } },
      "who: layer 1 is pinned to stage 2, and there are 2 stages, expected more stages" },
    { { 1, 2 }, 2, { pinned = { [1] = 0.5 } },
      "who: layer 1 is pinned to stage 0.5 (float), expected an integer >= 0" },
    { { 1, 2 }, 2, { together = { 1, 2 } },
      "who: together: group 1 is 1, expected a list of layers such as {1, 4}" },
    { { 1, 2 }, 2, { together = { {} } }, "who: together: group 1 is empty" },
    { { 1, 2 }, 2, { pinned = { [1] = 1, [2] = 0 } },
      "who: layer 1 is pinned to stage 1 and layer 2 to stage 0, expected stages in the order" },
    { { 1, 2 }, 2, { pinned = { [1] = 1 } }, "who: no cut of 2 layers into 2 stages" },
    { { 1, 2, 3 }, 2, { together = { { 1, 3 } } }, "who: no cut of 3 layers into 2 stages" },
    { { 1, 2, 3 }, 2, { together = { { 0, 3 } } }, "who: together: layer 0, expected one of 1..3" },
  }
  for _, case in ipairs(refused) do
    it(case[4], function() fails_with(case[4], cut, case[1], case[2], case[3]) end)
  end
end)
