-- tests/spec/data/loader_spec.lua - batches made by threads, their position, functions of items.
local gp = require "gpipe"

local function numbers(n)
  local x = gp.arange(0, n - 1, 1, { dtype = "i64" })
  return gp.data.tensors(x, x)
end

local function walk(batches)
  local seen = {}
  for x in batches do seen[#seen + 1] = table.concat(x:totable(), " ") end
  return table.concat(seen, "|")
end

local function raised(f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  return text
end

local function threads()
  local count = 0
  for _ in io.popen("ls /proc/" .. io.open("/proc/self/stat"):read("a"):match "^%d+" .. "/task")
    :lines() do count = count + 1 end
  return count
end

describe("batches of threads", function()
  it("are those of the script's own thread, in the same order", function()
    local d = numbers(101):shuffle(3)
    local want = walk(d:batches(7))
    for _, workers in ipairs { 1, 2, 5 } do
      for _, prefetch in ipairs { 1, 3, 40 } do
        assert.equal(want, walk(d:batches(7, { workers = workers, prefetch = prefetch })))
      end
    end
    assert.equal(walk(d:batches(7, { drop_last = true })),
      walk(d:batches(7, { drop_last = true, workers = 2 })))
    local _, part = d:split(0.3)
    assert.equal(walk(part:batches(5)), walk(part:batches(5, { workers = 2 })))
  end)

  it("go on where a state was taken, with any number of workers then and now", function()
    local d = numbers(50):shuffle(1)
    for _, before in ipairs { 0, 1, 3 } do
      for _, after in ipairs { 0, 2 } do
        local it = d:batches(8, { workers = before })
        local head, state = {}, nil
        for x in it do
          head[#head + 1] = table.concat(x:totable(), " ")
          if #head == 3 then
            state = it:state()
            break
          end
        end
        local again = numbers(50):shuffle(1):batches(8, { workers = after }):restore(state)
        assert.equal(walk(d:batches(8)), table.concat(head, "|") .. "|" .. walk(again))
        assert.equal(walk(d:batches(8)), walk(again)) -- the next epoch is complete
      end
    end
  end)

  it("save the end of an epoch as a position", function()
    local it = numbers(5):batches(2)
    walk(it)
    local state = it:state()
    assert.equal("", walk(numbers(5):batches(2):restore(state)))
  end)

  it("refuse a state of other data", function()
    local state = numbers(5):batches(2):state()
    local function refused(d, n, fact)
      local text = raised(function() d:batches(n):restore(state) end)
      assert.truthy(text:find(fact, 1, true), text)
    end
    refused(numbers(6), 2, "count = 5")
    refused(numbers(5), 3, "size = 2")
    refused(numbers(5):shuffle(1), 2, "another order")
  end)

  it("leave no thread behind after break, an error, close", function()
    collectgarbage()
    local before = threads()
    local d = numbers(1000)
    for _ in d:batches(2, { workers = 3 }) do break end -- luacheck: ignore 512
    assert.equal(before, threads())
    pcall(function()
      for _ in d:batches(2, { workers = 3 }) do error "x" end -- luacheck: ignore 512
    end)
    assert.equal(before, threads())
    local it = d:batches(2, { workers = 3 })
    it()
    it:close()
    assert.equal(before, threads())
    assert.equal(0, it()[1])
    it:close()
  end)

  it("are made of windows too", function()
    local d = assert(gp.data.bytes { path = "LICENSE", context = 5, stride = 3 })
    local function all(workers)
      local out = {}
      for x, y in d:shuffle(1):batches(9, { workers = workers }) do
        out[#out + 1] = x:bytes() .. y:bytes()
      end
      return table.concat(out)
    end
    assert.equal(all(0), all(2))
  end)
end)

describe("functions of items", function()
  it("map each item and put batches together", function()
    local d = numbers(5):map(function(x, y) return gp.tensor { x, 2 * x }, y + 0.5 end)
    local shapes = {}
    for x, y in d:shuffle(1):batches(2) do
      shapes[#shapes + 1] = table.concat(x.shape, "x") .. " " .. y.dtype
      assert.equal(x[1][1] + 0.5, y[1])
    end
    assert.same({ "2x2 f32", "2x2 f32", "1x2 f32" }, shapes)
    assert.equal(8, (d:map(function(x, y) return x[2], y end):item(5)))
  end)

  it("take items of a list and of a function", function()
    local list = gp.data.from { { 5, 0 }, { 6, 1 }, { 7, 2 } }
    assert.equal("5 6|7", walk(list:batches(2)))
    assert.equal("7", walk(list:filter(function(_, y) return y > 1 end):batches(2)))
    local made = gp.data.from(function(i) return gp.full({ i }, i) end, { count = 3 })
    for x in made:batches(3, { pad = 0 }) do
      assert.same({ { 1, 0, 0 }, { 2, 2, 0 }, { 3, 3, 3 } }, x:totable())
    end
    assert.truthy(raised(gp.data.from, print):find("'count' is missing", 1, true))
    assert.truthy(raised(gp.data.from, {}):find("0 items", 1, true))
  end)

  it("filter and shard", function()
    local d = numbers(300):filter(function(x) return x % 100 == 7 end)
    assert.equal("7 107 207", walk(d:batches(9)))
    local n = numbers(7)
    assert.equal("0 3 6/1 4/2 5", walk(n:shard(0, 3):batches(9)) .. "/" ..
      walk(n:shard(1, 3):batches(9)) .. "/" .. walk(n:shard(2, 3):batches(9)))
    local s = n:shuffle(2)
    assert.equal(walk(s:batches(1)):gsub("|", " "), (walk(s:shard(0, 1):batches(9))))
  end)

  it("pad and sort by length", function()
    local d = numbers(6):map(function(x) return gp.full({ 6 - x }, x), x end)
    local shapes = {}
    for x, y in d:batches(2, { pad = -1, sort_by = function(x) return x:size(1) end }) do
      shapes[#shapes + 1] = x:size(2)
      assert.equal(-1, x[1][-1])
      assert.equal(y[2], x[2][-1])
    end
    assert.same({ 2, 4, 6 }, shapes)
    assert.truthy(raised(function() walk(d:batches(2)) end):find("pad = 0", 1, true))
  end)

  it("shuffle each epoch of a seed anew", function()
    local d = numbers(50)
    local function order(...) return walk(d:shuffle(...):batches(50)) end
    assert.equal(order(4, 2), order(4, 2))
    assert.not_equal(order(4, 2), order(4, 3))
    assert.equal(order(4), order(4, 0))
  end)
end)
