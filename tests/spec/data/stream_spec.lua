-- tests/spec/data/stream_spec.lua - gp.data.stream and gp.data.epochs: walks whose position can be
-- saved.

local expect = require "tests.support.expect"
local gp = require "gpipe"

local failure = expect.failure

local passes = 0

-- Streams 1 .. n, with ten times each as target.
local function count(n, opts)
  return gp.data.stream(function()
    passes = passes + 1
    local i = 0
    return function()
      i = i + 1
      if i <= n then return i, 10 * i end
    end
  end, opts)
end

local function inputs(batches)
  local list = {}
  for x in batches do list[#list + 1] = table.concat(x:totable(), " ") end
  return table.concat(list, ", ")
end

describe("gp.data.stream", function()
  it("gives batches in every pass, the last one shorter or not at all", function()
    local s = count(7)
    local b = s:batches(3)
    assert.equal("1 2 3, 4 5 6, 7", inputs(b))
    assert.equal("1 2 3, 4 5 6, 7", inputs(b))
    assert.equal("1 2 3, 4 5 6", inputs(s:batches(3, { drop_last = true })))
    for x, y in s:batches(7) do
      assert.equal("i64", x.dtype)
      assert.equal(70, y[7])
    end
    assert.equal("", inputs(count(0):batches(3)))
  end)

  it("does not call an iterator again after its end, as a coroutine would raise", function()
    local s = gp.data.stream(function()
      return coroutine.wrap(function()
        for i = 1, 5 do coroutine.yield(i, i) end
      end)
    end)
    local function all(x) return x end
    local ways = { s, s:map(all), s:filter(all), s:shuffle(1), s:shard(0, 1),
      s:filter(all):map(all):shuffle(3):shard(0, 1) }
    for _, way in ipairs(ways) do
      for _, size in ipairs { 1, 2, 5, 6 } do
        local b, seen = way:batches(size), 0
        for _ = 1, 2 do
          for x in b do seen = seen + #x end
        end
        assert.equal(10, seen)
      end
    end
  end)

  it("maps, filters and shards", function()
    local s = count(10)
    assert.equal("2 4 6 8 10", inputs(s:filter(function(x) return x % 2 == 0 end):batches(5)))
    assert.equal("3 6 9", inputs(s:shard(2, 3):batches(4)))
    local function third(x, y) return x / 4, y end
    assert.equal("0.25 0.5", inputs(count(2):map(third):batches(2)))
  end)

  it("shuffles within the buffer, only by seed and epoch", function()
    local s = count(100, { buffer = 10 })
    local one = inputs(s:shuffle(1, 1):batches(100))
    math.randomseed(5)
    assert.equal(one, inputs(s:shuffle(1, 1):batches(100)))
    assert.are_not.equal(one, inputs(s:shuffle(1, 2):batches(100)))
    assert.are_not.equal(one, inputs(s:shuffle(2, 1):batches(100)))
    local seen, at = {}, 0
    for word in one:gmatch "%d+" do
      at = at + 1
      local value = tonumber(word)
      assert.is_nil(seen[value])
      seen[value] = true
      assert.is_true(value < at + 10) -- no item comes before it was read
    end
    assert.equal(100, at)
  end)

  it("goes on from a state with the batches that follow", function()
    local whole = count(20, { buffer = 8 }):shuffle(3, 1):batches(4)
    local list = {}
    for i = 1, 5 do list[i] = whole():totable() end
    assert.is_nil(whole())
    for cut = 0, 5 do
      local b = count(20, { buffer = 8 }):shuffle(3, 1):batches(4)
      for _ = 1, cut do b() end
      local again = count(20, { buffer = 8 }):shuffle(3, 1):batches(4):restore(b:state())
      for i = cut + 1, 5 do assert.same(list[i], again():totable()) end
      assert.is_nil(again())
    end
  end)

  it("refuses a state of another order or size, and anything but an iterator", function()
    local b = count(20):shuffle(3):batches(4)
    assert.matches("shuffled by 3, 0", failure(function()
      count(20):shuffle(4):batches(4):restore(b:state())
    end))
    assert.matches("batches of 4", failure(function()
      count(20):shuffle(3):batches(5):restore(b:state())
    end))
    assert.matches("a pass began with 3", failure(function()
      gp.data.stream(function() return 3 end):batches(2)()
    end))
    assert.matches("expected a function", failure(function() gp.data.stream { 1, 2 } end))
    assert.matches("'buffr'", failure(function() count(3, { buffr = 3 }) end))
  end)

  it("is walked by gp.data.epochs, whose position is one of the stream", function()
    local function make() return gp.data.epochs(count(10, { buffer = 4 }), { batch = 4, seed = 2 }) end
    local e, list = make(), {}
    assert.is_nil(e:steps())
    for i = 1, 8 do list[i] = e:next():totable() end
    assert.equal(3, e.epoch)
    assert.same({ 4, 4, 2 }, { #list[1], #list[2], #list[3] })
    for cut = 1, 7 do
      local first = make()
      for _ = 1, cut do first:next() end
      local again = make():restore(first:state())
      for i = cut + 1, 8 do assert.same(list[i], again:next():totable()) end
    end
    assert.matches("no batch of 4", failure(function()
      gp.data.epochs(count(3), { batch = 4, drop_last = true }):next()
    end))
  end)
end)

describe("gp.data.epochs", function()
  local data = gp.data.tensors(gp.arange(1, 10), gp.arange(1, 10))

  local function walk(opts, batches)
    local e = gp.data.epochs(data, opts)
    local list = {}
    for i = 1, batches do list[i] = table.concat(e:next():totable(), " ") end
    return list, e
  end

  it("gives every epoch an order of its own, and all items in each", function()
    local list, e = walk({ batch = 5, seed = 1 }, 4)
    assert.equal(2, e.epoch)
    assert.are_not.equal(list[1] .. list[2], list[3] .. list[4])
    for _, epoch in ipairs { list[1] .. " " .. list[2], list[3] .. " " .. list[4] } do
      local sum = 0
      for word in epoch:gmatch "%d+" do sum = sum + tonumber(word) end
      assert.equal(55, sum)
    end
    assert.same({ "1.0 2.0 3.0 4.0 5.0", "6.0 7.0 8.0 9.0 10.0", "1.0 2.0 3.0 4.0 5.0" },
      (walk({ batch = 5, shuffle = false }, 3)))
  end)

  it("ends after its epochs, and counts its steps", function()
    local e = gp.data.epochs(data, { batch = 4, epochs = 2 })
    local count_of = 0
    for _ in e do count_of = count_of + 1 end
    assert.same({ 6, 6 }, { count_of, e:steps() })
    assert.is_nil(gp.data.epochs(data, { batch = 4 }):steps())
    assert.equal(4, gp.data.epochs(data, { batch = 4, epochs = 2, drop_last = true }):steps())
  end)

  it("goes on from a state, at the end of an epoch too, whatever the workers", function()
    local list = walk({ batch = 4, seed = 9 }, 9)
    for cut = 0, 8 do
      local first = gp.data.epochs(data, { batch = 4, seed = 9 })
      for _ = 1, cut do first:next() end
      local again = gp.data.epochs(data, { batch = 4, seed = 9, workers = 2 })
        :restore(first:state())
      for i = cut + 1, 9 do assert.equal(list[i], table.concat(again:next():totable(), " ")) end
      again:close()
    end
  end)

  it("refuses by name what is not a state", function()
    local d = gp.data.tensors(gp.ones { 4, 1 }, gp.ones { 4 })
    for _, it in ipairs { (d:batches(2)), (count(3):batches(2)), gp.data.epochs(d, { batch = 2 }) } do
      for _, wrong in ipairs { false, 3, "x", {}, { 1 } } do
        assert.truthy(failure(it.restore, it, wrong):find("expected what state() gave", 1, true))
      end
      assert.truthy(failure(it.restore, it):find("restore: the state is nil, expected", 1, true))
    end
  end)

  it("refuses a state of another seed", function()
    local state = gp.data.epochs(data, { batch = 4, seed = 9 }):state()
    assert.matches("seed = 9, expected 8", failure(function()
      gp.data.epochs(data, { batch = 4, seed = 8 }):restore(state)
    end))
  end)
end)
