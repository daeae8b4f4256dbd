-- tests/spec/data/sets_spec.lua - subsets, several data sets as one, samples, batches of a function,
-- items of several inputs and targets.
local gp = require "gpipe"
local expect = require "tests.support.expect"

local fails_with = expect.fails_with

local function ids(list) return gp.tensor(list, { dtype = "i64" }) end

local function numbers(n, first)
  local x = gp.arange(first or 1, (first or 1) + n - 1, 1, { dtype = "i64" })
  return gp.data.tensors(x, 10 * x)
end

local function show(value)
  if type(value) ~= "table" then return table.concat(value:reshape { -1 }:totable(), " ") end
  local parts = {}
  for i, part in ipairs(value) do parts[i] = show(part) end
  return table.concat(parts, "+")
end

-- Returns inputs and targets of the batches: "1 2:10 20|3:30".
local function walk(batches)
  local seen = {}
  for x, y in batches do seen[#seen + 1] = show(x) .. ":" .. show(y) end
  return table.concat(seen, "|")
end

describe("gp.data.subset", function()
  it("takes a range or positions, also of shuffled, split and mapped data", function()
    local d = numbers(10)
    assert.equal("3 4 5:30 40 50", walk(gp.data.subset(d, { 3, 5 }):batches(9)))
    assert.equal("9 10:90 100", walk(gp.data.subset(d, { -2, -1 }):batches(9)))
    assert.equal("8 9 10:80 90 100", walk(gp.data.subset(d, { from = 8 }):batches(9)))
    assert.equal("1 2:10 20", walk(gp.data.subset(d, { to = 2 }):batches(9)))
    assert.equal("7 7 1 10:70 70 10 100", walk(gp.data.subset(d, { 7, 7, 1, -1 }):batches(9)))
    assert.equal("9 2:90 20", walk(gp.data.subset(d, ids { 9, 2 }):batches(9)))
    assert.equal("4:40", walk(gp.data.subset(d, { 4 }):batches(9)))
    local _, tail = d:split(0.5)
    assert.equal("7 8:70 80", walk(gp.data.subset(tail, { 2, 3 }):batches(9)))
    local s = d:shuffle(3)
    assert.equal(s:item(4), (gp.data.subset(s, { 4, 6 }):item(1)))
    local m = gp.data.subset(d:map(function(x, y) return x + 1, y end), { 2, 3 })
    assert.equal("3 4:20 30", walk(m:batches(2, { workers = 2 })))
    assert.equal("9 2:90 20", walk(gp.data.subset(d, ids { 9, 2 }):batches(9, { workers = 2 })))
  end)

  it("refuses positions that do not exist", function()
    local d = numbers(4)
    fails_with("d is 3, expected a dataset", gp.data.subset, 3, { 1, 2 })
    fails_with("positions is nil, expected {from, to}", gp.data.subset, d)
    fails_with("to is 5, expected 1 to 4", gp.data.subset, d, { 1, 5 })
    fails_with("from is 0, expected 1 to 4", gp.data.subset, d, { 0, 2 })
    fails_with("the range is from 3 to 2", gp.data.subset, d, { 3, 2 })
    fails_with("position 3 is 9, expected 1 to 4", gp.data.subset, d, { 1, 2, 9 })
    fails_with("no positions", gp.data.subset, d, {})
    fails_with("position 1 is 1.5 (float)", gp.data.subset, d, { 1.5 })
    fails_with("positions has the field \"form\"", gp.data.subset, d, { form = 1 })
    fails_with("expected an i64 tensor", gp.data.subset, d, gp.ones { 2 })
  end)
end)

describe("gp.data.concat", function()
  it("puts data sets one after the other, and is shuffled as a whole", function()
    local d = gp.data.concat { numbers(3), numbers(2, 7), gp.data.subset(numbers(9), { 9, 9 }) }
    assert.equal(6, #d)
    assert.equal("1 2 3 7:10 20 30 70|8 9:80 90", walk(d:batches(4)))
    assert.equal(8, (d:item(5)))
    local one, seen = walk(d:shuffle(5):batches(6)), {}
    for word in one:match "^[^:]*":gmatch "%d+" do seen[#seen + 1] = tonumber(word) end
    table.sort(seen)
    assert.same({ 1, 2, 3, 7, 8, 9 }, seen)
    assert.equal(one, walk(d:shuffle(5):batches(6, { workers = 3 })))
    local x = gp.data.concat { numbers(4):shuffle(1), numbers(4, 5):shard(1, 2) }
    assert.equal(walk(numbers(4):shuffle(1):batches(4)) .. "|6 8:60 80", walk(x:batches(4)))
  end)

  it("keeps dtypes, lists and several inputs as the parts have them", function()
    for _, dtype in ipairs { "f64", "i32", "u8", "bool", "f16" } do
      local t = gp.ones({ 3 }, { dtype = dtype })
      local d = gp.data.concat { gp.data.tensors(t, t), gp.data.tensors(t, t) }
      for x, y in d:shuffle(1):batches(6) do assert.same({ dtype, dtype }, { x.dtype, y.dtype }) end
    end
    local texts = gp.data.from { { "a", 1 }, { "b", 2 } }
    for x in gp.data.concat { texts, texts }:batches(4) do assert.same({ "a", "b", "a", "b" }, x) end
    local two = gp.data.tensors({ ids { 1, 2 }, ids { 3, 4 } }, ids { 5, 6 })
    assert.equal("1 2 1 2+3 4 3 4:5 6 5 6", walk(gp.data.concat { two, two }:batches(4)))
    local long = gp.data.from { { ids { 1 }, 0 } }
    local longer = gp.data.from { { ids { 2, 3 }, 1 } }
    assert.equal("1 0 2 3:0 1", walk(gp.data.concat { long, longer }:batches(2, { pad = 0 })))
  end)

  it("is loaded by threads where its parts are, with the same bits", function()
    local parts = {}
    for i = 1, 5 do
      local x = gp.rand({ 4 + i, 3, 2 }, { seed = i })
      local part = gp.data.tensors(x, gp.arange(1, 4 + i, 1, { dtype = "i64" }))
      parts[i] = i % 2 == 0 and part:shuffle(i) or gp.data.subset(part, { 2, -1 })
    end
    parts[6] = gp.data.concat { parts[1], parts[2] }
    local d = gp.data.concat(parts)
    local function all(set, workers)
      local seen = {}
      for x, y in set:batches(4, { workers = workers }) do
        seen[#seen + 1] = x:bytes() .. y:bytes()
      end
      return table.concat(seen)
    end
    for _, set in ipairs { d, d:shuffle(3), (d:split(0.6)), d:sample { count = 90,
      replacement = true, seed = 1 } } do
      local want = all(set, 0)
      for _, workers in ipairs { 1, 3 } do assert.equal(want, all(set, workers)) end
    end
    local other = gp.data.concat { parts[1], gp.data.tensors(gp.ones { 3 }, gp.ones { 3 }) }
    fails_with("gp.data.concat: batches of the data sets are", all, other:shuffle(1), 2)
  end)

  it("names the parts that do not fit together", function()
    fails_with("the data sets are an empty list", gp.data.concat, {})
    fails_with("the data sets are nil", gp.data.concat)
    fails_with("the data sets are a gpipe.Dataset, expected a list", gp.data.concat, numbers(2))
    fails_with("element 2 is 3, expected a dataset", gp.data.concat, { numbers(2), 3 })
    local other = gp.data.tensors(gp.ones { 2, 3 }, gp.ones { 2 })
    fails_with("items are i64 [] and f32 [3]", function()
      walk(gp.data.concat { numbers(2), other }:batches(4))
    end)
  end)

  it("has the names of classes that all parts have", function()
    local t = ids { 0, 1 }
    local a, b = gp.data.tensors(t, t, { "x", "y" }), gp.data.tensors(t, t, { "x", "y" })
    assert.same({ "x", "y" }, gp.data.concat { a, b }.classes)
    assert.is_nil(gp.data.concat { a, gp.data.tensors(t, t, { "y", "x" }) }.classes)
  end)
end)

describe("d:sample", function()
  local function counts(d, n)
    local seen = {}
    for i = 1, n do seen[i] = 0 end
    for x in d:batches(1000) do
      for _, v in ipairs(x:totable()) do seen[v] = seen[v] + 1 end
    end
    return seen
  end

  it("draws by weights, as often as they say", function()
    local seen = counts(numbers(4):sample { weights = { 1, 0, 3, 6 }, count = 20000, seed = 1 }, 4)
    assert.equal(0, seen[2])
    for i, share in pairs { [1] = 0.1, [3] = 0.3, [4] = 0.6 } do
      assert.is_true(math.abs(seen[i] / 20000 - share) < 0.015, seen[i])
    end
    local alike = counts(numbers(3):sample { replacement = true, count = 9000, seed = 2 }, 3)
    for i = 1, 3 do assert.is_true(math.abs(alike[i] - 3000) < 200) end
    local tensor = gp.tensor { 0, 1, 0 }
    assert.same({ 0, 5, 0 }, counts(numbers(3):sample { weights = tensor, count = 5 }, 3))
  end)

  it("draws without replacement, first by weights", function()
    local first = { 0, 0, 0 }
    for seed = 1, 2000 do
      local d = numbers(3):sample { weights = { 1, 2, 7 }, replacement = false, seed = seed }
      assert.same({ 1, 1, 1 }, counts(d, 3))
      local x = d:item(1)
      first[x] = first[x] + 1
    end
    for i, share in ipairs { 0.1, 0.2, 0.7 } do
      assert.is_true(math.abs(first[i] / 2000 - share) < 0.04, first[i])
    end
    local d = numbers(3):sample { weights = { 1, 0, 1 }, replacement = false, count = 2 }
    assert.same({ 1, 0, 1 }, counts(d, 3))
    assert.equal(4, #numbers(9):sample { count = 4 })
  end)

  it("depends only on seed and epoch, and goes on from a state", function()
    local d, weights = numbers(50), {}
    for i = 1, 50 do weights[i] = i end
    local function drawn(opts, workers)
      opts.weights = weights
      return walk(d:sample(opts):batches(7, { workers = workers }))
    end
    assert.equal(drawn { seed = 3 }, drawn({ seed = 3 }, 2))
    assert.equal(drawn { seed = 3, epoch = 2 }, drawn { seed = 3, epoch = 2 })
    assert.not_equal(drawn { seed = 3, epoch = 1 }, drawn { seed = 3, epoch = 2 })
    assert.not_equal(drawn { seed = 3 }, drawn { seed = 4 })
    gp.seed(5)
    local one, other = drawn {}, drawn {}
    assert.not_equal(one, other)
    gp.seed(5)
    assert.equal(one, drawn {})
    local s = d:sample { weights = weights, count = 200, seed = 8 }
    local it, again = (s:batches(20)), (s:batches(20, { workers = 2 }))
    it()
    it()
    again:restore(it:state())
    assert.equal(show((it())), show((again())))
  end)

  it("is drawn anew in each epoch, and goes on from a state there", function()
    local d = numbers(20)
    local function make()
      return gp.data.epochs(function(epoch)
        return d:sample { count = 6, seed = 2, epoch = epoch }
      end, { batch = 4, epochs = 3, seed = 1 })
    end
    local all, e = {}, make()
    for x in e do all[#all + 1] = show(x) end
    assert.equal(6, #all)
    assert.not_equal(all[1] .. all[2], all[3] .. all[4])
    local one, other = make(), make()
    for _ = 1, 3 do one() end
    assert.equal(all[4], show((other:restore(one:state())())))
    fails_with("data is 3, expected a dataset, or a function", gp.data.epochs, 3, { batch = 1 })
    local wrong = gp.data.epochs(function() return 7 end, { batch = 1 })
    fails_with("the function gave 7 for epoch 1, expected a dataset", wrong.next, wrong)
  end)

  it("refuses invalid weights", function()
    local d = numbers(3)
    for _, case in ipairs {
      { { weights = { 1, 2 } }, "2 weights, expected one for each of 3 items" },
      { { weights = { 1, -2, 1 } }, "weight 2 is -2, expected a number >= 0" },
      { { weights = { 1, 0 / 0, 1 } }, "weight 2 is nan" },
      { { weights = { 1, "2", 1 } }, "weight 2 is \"2\" (string)" },
      { { weights = { 0, 0, 0 } }, "the weights sum to 0" },
      { { weights = gp.ones { 3, 1 } }, "0 weights" },
      { { weights = 3 }, "expected a table or a tensor" },
      { { count = 4 }, "only 3 items can be drawn without replacement" },
      { { weights = { 1, 0, 1 }, replacement = false }, "only 2 items" },
      { { count = 0 }, "option 'count' is 0" }, { { num_samples = 3 }, "did you mean 'count'" },
      { 3, "the options are 3" },
    } do
      fails_with(case[2], d.sample, d, case[1])
    end
  end)
end)

describe("d:collate", function()
  it("returns what the function makes of the items, in any order and for any part", function()
    local d = numbers(7):collate(function(items)
      local sum = 0
      for _, item in ipairs(items) do sum = sum + item[1] * item[2] end
      return ids { sum }, ids { #items }
    end)
    assert.equal("140:3|770:3|490:1", walk(d:batches(3)))
    assert.equal(20, select(2, d:item(2)))
    assert.equal("40:1", walk(gp.data.subset(d, { 2, 2 }):batches(3)))
    assert.equal("50:2|410:2|490:1", walk(d:filter(function(x) return x ~= 3 and x ~= 6 end)
      :batches(2)))
    assert.equal("36:1", walk(gp.data.subset(d, { 1, 1 }):map(function() return 6, 6 end)
      :batches(1)))
    local both = gp.data.concat { gp.data.subset(d, { 1, 2 }), gp.data.subset(d, { 1, 1 }) }
    assert.equal("60:3", walk(both:batches(3)))
  end)

  it("refuses a wrong function, a result that is no batch, and padding", function()
    local d = numbers(3)
    fails_with("fn is 3, expected a function", d.collate, d, 3)
    local empty = d:collate(function() end)
    fails_with("the function gave nil, expected a batch", function() walk(empty:batches(1)) end)
    fails_with("option 'pad' is 0", function() walk(empty:batches(1, { pad = 0 })) end)
    fails_with("different functions of d:collate", gp.data.concat, { d, empty })
  end)
end)

describe("several inputs and targets", function()
  local function two(n)
    local a, b = {}, {}
    for i = 1, n do a[i], b[i] = i, 100 + i end
    return gp.data.tensors({ ids(a), ids(b) }, { ids(a) * 10, ids(b) * 10 })
  end

  it("of tensors work with everything that data sets do", function()
    local d = two(6)
    assert.equal("1 2+101 102:10 20+1010 1020", walk(gp.data.subset(d, { 1, 2 }):batches(2)))
    local x, y = d:item(3)
    assert.same({ { 3, 103 }, { 30, 1030 } }, { x, y })
    assert.same({ { 3, 103 }, { 30, 1030 } }, d[3])
    local a, b = d:shuffle(2):split(0.5)
    local seen = {}
    for _, part in ipairs { a, b } do
      for v, w in part:batches(2, { workers = 2 }) do
        for i = 1, v[1]:numel() do
          assert.equal(v[1][i] + 100, v[2][i])
          assert.equal(10 * v[1][i], w[1][i])
          seen[#seen + 1] = v[1][i]
        end
      end
    end
    table.sort(seen)
    assert.same({ 1, 2, 3, 4, 5, 6 }, seen)
    local mapped = d:map(function(u, v) return { u[1] + u[2], u[1] }, v[2] end)
    assert.equal("102 104+1 2:1010 1020", walk(gp.data.subset(mapped, { 1, 2 }):batches(2)))
    assert.equal("4 6+104 106:40 60+1040 1060",
      walk(d:filter(function(u) return u[1] % 2 == 0 and u[1] > 2 end):batches(2)))
    assert.equal("2 4+102 104:20 40+1020 1040|6+106:60+1060", walk(d:shard(1, 2):batches(2)))
  end)

  it("go on from a state in the same order", function()
    local d = two(9):shuffle(4)
    local it, again = (d:batches(2)), (d:batches(2, { workers = 2 }))
    it()
    again:restore(it:state())
    assert.equal(walk(again), (function()
      local rest = {}
      for x, y in function() return it() end do rest[#rest + 1] = show(x) .. ":" .. show(y) end
      return table.concat(rest, "|")
    end)())
  end)

  it("of Lua are stacked place by place, and padded where they differ in length", function()
    local d = gp.data.from {
      { { ids { 1 }, 0.5 }, { 1, ids { 7 } } }, { { ids { 2, 3 }, 1.5 }, { 2, ids { 8 } } },
    }
    for x, y in d:batches(2, { pad = -1 }) do
      assert.same({ { 1, -1 }, { 2, 3 } }, x[1]:totable())
      assert.same({ 0.5, 1.5 }, x[2]:totable())
      assert.same({ "f32", "i64", "i64" }, { x[2].dtype, y[1].dtype, y[2].dtype })
      assert.same({ { 7 }, { 8 } }, y[2]:totable())
    end
    local nested = gp.data.from { { { ids { 1 }, { ids { 2 }, 3 } }, 0 } }
    for x in nested:batches(1) do assert.equal(3, x[2][2][1]) end
    local stream = gp.data.stream(function()
      local i = 0
      return function()
        i = i + 1
        if i <= 3 then return { i, 2 * i }, i end
      end
    end)
    assert.equal("1 2+2 4:1 2|3+6:3", walk(stream:batches(2)))
  end)

  it("train a pipeline, as batches of epochs", function()
    local Two = gp.nn.class("Two")
    function Two:init() self.a, self.b = gp.nn.Linear(2, 1), gp.nn.Linear(3, 1) end
    function Two:forward(a, b) return self.a(a) + self.b(b) end
    local d = gp.data.tensors({ gp.rand { 8, 2 }, gp.rand { 8, 3 } }, gp.ones { 8, 1 })
    local pipe <close> = gp.pipeline(gp.nn.Sequential { Two() }, { chunks = 2,
      loss = gp.nn.MSELoss() })
    local steps = 0
    for x, y in gp.data.epochs(d, { batch = 4, epochs = 2, seed = 1 }) do
      steps = steps + 1
      assert.is_true(pipe:step(x, y) > 0)
    end
    assert.equal(4, steps)
  end)

  it("are refused by name where they do not fit", function()
    fails_with("x[2] has 2, expected the same number", gp.data.tensors,
      { gp.ones { 3 }, gp.ones { 2 } }, gp.ones { 3 })
    fails_with("x is an empty list", gp.data.tensors, {}, gp.ones { 3 })
    fails_with("y[1] is 3, expected a tensor", gp.data.tensors, gp.ones { 3 }, { 3 })
    local d = gp.data.from { { { 1, 2 }, 0 }, { { 1, 2, 3 }, 0 } }
    fails_with("item 2 of a batch is a list of 3, the first one a list of 2", function()
      walk(d:batches(2))
    end)
    local holes = gp.data.from { { 1, 0 }, { 2 } }
    fails_with("item 2 of a batch has no target", function() walk(holes:batches(2)) end)
    local mixed = gp.data.from { { gp.ones { 1 }, 0 }, { 3, 1 } }
    fails_with("item 2 of a batch is 3, the first one f32 [1]", function()
      walk(mixed:batches(2, { pad = 0 }))
    end)
  end)

  it("leave the list's own tensors alone when a function writes to an item", function()
    local list = { { gp.ones { 2 }, { gp.ones { 1 }, 2 } } }
    local d = gp.data.from(list):map(function(x, y)
      x:add_(1)
      y[1]:add_(1)
      return x, y
    end)
    for _ = 1, 2 do assert.same({ { 2, 2 } }, d:batches(1)():totable()) end
    assert.same({ 1, 1 }, list[1][1]:totable())
  end)
end)

describe("names of PyTorch", function()
  it("are answered with gpipe's name for the same", function()
    for name, way in pairs { DataLoader = "d:batches(n", TensorDataset = "gp.data.tensors(x, y)",
      ConcatDataset = "gp.data.concat", Subset = "gp.data.subset", random_split = "split(0.8)",
      WeightedRandomSampler = "d:sample", collate_fn = "d:collate(fn)" } do
      fails_with(way, function() return gp.data[name] end)
    end
    local d = numbers(3)
    fails_with("d:batches(n, {workers = 2})", function() return gp.DataLoader end)
    fails_with("gp.data.subset(d", function() return d.subset end)
    fails_with("did you mean 'workers'", d.batches, d, 2, { num_workers = 2 })
    fails_with("d:collate(fn)", d.batches, d, 2, { collate_fn = print })
    fails_with("d:shuffle(seed)", d.batches, d, 2, { shuffle = true })
    fails_with("did you mean 'batch'", gp.data.epochs, d, { batch_size = 2 })
  end)
end)
