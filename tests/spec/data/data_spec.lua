-- tests/spec/data/data_spec.lua - datasets: bytes, tables, tensors; splitting, shuffling, batches.
local gp = require "gpipe"

-- Writes a new file with this text.
local function file_of(text)
  local path = os.tmpname()
  finally(function() os.remove(path) end)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

local function raised(f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  return text
end

-- Returns the 0-based row numbers of a walk, as text: "0 1 2|3 4".
local function walk(batches)
  local seen = {}
  for x in batches do seen[#seen + 1] = table.concat(x:reshape { -1 }:totable(), " ") end
  return table.concat(seen, "|")
end

local function numbers(n)
  local x = gp.arange(0, n - 1, 1, { dtype = "i64" })
  return gp.data.tensors(x, x)
end

describe("gp.data.bytes", function()
  it("cuts a file into windows whose targets lie one byte further", function()
    local d = assert(gp.data.bytes { path = file_of("abcdefghij"), context = 3 })
    assert.equal(3, #d)
    local seen = {}
    for x, y in d:batches(2) do
      assert.equal("i64", x.dtype)
      seen[#seen + 1] = { x:totable(), y:totable() }
    end
    assert.same({
      { { { 97, 98, 99 }, { 100, 101, 102 } }, { { 98, 99, 100 }, { 101, 102, 103 } } },
      { { { 103, 104, 105 } }, { { 104, 105, 106 } } },
    }, seen)
  end)

  it("reads ids above 127 and zero bytes as they are", function()
    local d = assert(gp.data.bytes { path = file_of("\0\xff\x80"), context = 2 })
    local x, y = d:item(1)
    assert.same({ 0, 255 }, x:totable())
    assert.same({ 255, 128 }, y:totable())
  end)

  it("moves windows by the stride and keeps the targets of two parts apart", function()
    local d = assert(gp.data.bytes { path = file_of(("x"):rep(41)), context = 4, stride = 1 })
    assert.equal(37, #d)
    local a, b = d:split(0.5)
    assert.equal(37 - 3, #a + #b)
  end)

  it("joins the files of a folder in the order of their names", function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir -p " .. folder .. "/b/.git"))
    finally(function() os.execute("rm -r " .. folder) end)
    for name, text in pairs { ["c.txt"] = "56", ["a.txt"] = "12", ["b/x.lua"] = "34",
      [".h"] = "99" } do
      local file = assert(io.open(folder .. "/" .. name, "w"))
      file:write(text)
      file:close()
    end
    local function bytes_of(opts)
      opts.context = 1
      local d, text = assert(gp.data.bytes(opts)), {}
      for x, y in d:batches(1) do text[#text + 1] = string.char(x:item(), y:item()) end
      return table.concat(text, " ")
    end
    assert.equal("12 23 34 45 56", bytes_of { dir = folder })
    assert.equal("12 25 56", bytes_of { path = folder, match = "%.txt$" })
    assert.equal("56 61 12", bytes_of { files = { folder .. "/c.txt", folder .. "/a.txt" } })
  end)

  it("returns nil, message, code for files that are not there or too short", function()
    local d, message, code = gp.data.bytes { path = "/no/such", context = 3 }
    assert.is_nil(d)
    assert.equal("/no/such: cannot read: No such file or directory", message)
    assert.equal("io", code)
    local path = file_of("abc")
    d, message, code = gp.data.bytes { path = path, context = 3 }
    assert.is_nil(d)
    assert.truthy(message:find(": 3 bytes in 1 file, expected at least context + 1 = 4", 1, true))
    assert.equal("format", code)
    d, message = gp.data.bytes { files = {}, context = 3 }
    assert.is_nil(d)
    assert.truthy(message:find("there are no files", 1, true))
  end)

  local wrong = {
    { { context = 3 }, "no data is named, expected exactly one of path, dir and files" },
    { { path = "a", dir = "b", context = 3 }, "path and dir are given, expected exactly one" },
    { { path = "a" }, "missing option 'context'" },
    { { path = "a", context = 0 }, "option 'context' is 0, expected an integer >= 1" },
    { { path = "a", contxt = 3 }, "unknown option 'contxt' (did you mean 'context'?)" },
    { { files = { 7 }, context = 3 }, "file 1 is 7, expected a path" },
  }
  for _, case in ipairs(wrong) do
    it("says: " .. case[2], function()
      assert.truthy(raised(gp.data.bytes, case[1]):find(case[2], 1, true))
    end)
  end
end)

describe("gp.data.csv", function()
  it("makes f32 features and i64 ids", function()
    local d = assert(gp.data.csv { path = file_of("a,label,b\n1,0,2.5\n3,2,4\n"),
      target = "label" })
    assert.equal(2, #d)
    for x, y in d:batches(2) do
      assert.same({ { 1, 2.5 }, { 3, 4 } }, x:totable())
      assert.equal("f32", x.dtype)
      assert.same({ 0, 2 }, y:totable())
      assert.equal("i64", y.dtype)
    end
  end)

  it("makes f32 targets where they are not all whole", function()
    local d = assert(gp.data.csv { path = file_of("1;2;0.5\n3;4;1\n"), header = false,
      separator = ";" })
    local x, y = d:item(-2)
    assert.same({ 1, 2 }, x:totable())
    assert.equal(0.5, y)
  end)

  -- Returns the rows that the dataset holds, or nil.
  local function rows(text, header)
    local d = gp.data.csv { path = file_of(text), header = header }
    return d and #d
  end

  it("loses no row of a file without a header", function()
    assert.equal(2, rows "1,2,0\n3,4,1\n")
    assert.equal(1, rows "1,2,0\n")
    assert.equal(2, rows "-1.5,+2e3,0\n3,4,1\n")
    assert.equal(1, rows "a,2,0\n3,4,1\n")
    assert.equal(1, rows "1a,2,0\n3,4,1\n")
  end)

  it("takes numbers as names where an option says so", function()
    assert.equal(1, rows("1,2,0\n3,4,1\n", true))
    assert.is_nil(rows("1,2,0\n", true))
    assert.is_nil(rows("a,b\n1,2\n", false))
  end)

  it("takes the target by number, from either end", function()
    local path = file_of("a,b,c\n1,2,3\n")
    for target, rest in pairs { [1] = { 2, 3 }, [2] = { 1, 3 }, [3] = { 1, 2 }, [-3] = { 2, 3 } } do
      assert.same(rest, (assert(gp.data.csv { path = path, target = target }):item(1)):totable())
    end
  end)

  it("takes several targets, chosen columns and missing cells", function()
    local path = file_of("a,b,c,d\n1,2,3,4\n5,,7,8\n")
    local d = assert(gp.data.csv { path = path, target = { "d", 1 }, missing = -1 })
    for x, y in d:batches(2) do
      assert.same({ { 2, 3 }, { -1, 7 } }, x:totable())
      assert.same({ { 4, 1 }, { 8, 5 } }, y:totable())
      assert.equal("f32", y.dtype)
    end
    d = assert(gp.data.csv { path = path, target = { "d" }, columns = { 3, "a" }, missing = 0 })
    for x, y in d:batches(2) do
      assert.same({ { 3, 1 }, { 7, 5 } }, x:totable())
      assert.same({ { 4 }, { 8 } }, y:totable())
    end
    assert.is_nil((gp.data.csv { path = path, target = "d" }))
    assert.truthy(raised(gp.data.csv, { path = path, missing = 0, columns = { "e" } })
      :find("there is no column 'e'", 1, true))
    assert.truthy(raised(gp.data.csv, { path = path, missing = 0, columns = { true } })
      :find("columns is true", 1, true))
  end)

  it("makes classes of a target of words", function()
    local path = file_of("size,kind,name\n1,pear,x\n2,apple,y\n3,pear,z\n")
    local d = assert(gp.data.csv { path = path, target = "kind", columns = { "size" } })
    assert.same({ "apple", "pear" }, d.classes)
    for x, y in d:batches(3) do
      assert.same({ { 1 }, { 2 }, { 3 } }, x:totable())
      assert.same({ 1, 0, 1 }, y:totable())
      assert.equal("i64", y.dtype)
    end
    assert.same({ "apple", "pear" }, d:shuffle(1):split(0.5).classes)
    local none, message = gp.data.csv { path = path, target = "kind" }
    assert.is_nil(none)
    assert.truthy(message:find(":2: column 3 (name) is 'x', expected a number", 1, true), message)
    d = assert(gp.data.csv { path = path, target = "size", words = { "kind", 3 } })
    for x, y in d:batches(3) do
      assert.same({ { 1, 0 }, { 0, 1 }, { 1, 2 } }, x:totable())
      assert.same({ 1, 2, 3 }, y:totable())
    end
  end)

  it("refuses numbers among words, words among numbers, and empty words", function()
    for text, wanted in pairs {
      ["a,b\n1,x\n2,3\n"] = ":3: column 2 (b) is '3', expected a word as in other lines",
      ["a,b\n1,3\n2,x\n"] = ":3: column 2 (b) is 'x', expected a number",
      ["a,b\n1,x\n2,\n"] = ":3: column 2 (b) is empty, expected a word",
    } do
      local d, message = gp.data.csv { path = file_of(text) }
      assert.is_nil(d)
      assert.truthy(message:find(wanted, 1, true), message)
    end
    local many = { "a,b" }
    for i = 1, 65537 do many[i + 1] = i .. ",w" .. i end
    local d, message = gp.data.csv { path = file_of(table.concat(many, "\n")) }
    assert.is_nil(d)
    assert.truthy(message:find("more than 65536 different words", 1, true), message)
  end)

  it("names a column that is given twice", function()
    local path = file_of("a,b\n1,2\n")
    assert.truthy(raised(gp.data.csv, { path = path, columns = { "b" } })
      :find("column 2 (b) is named twice", 1, true))
  end)

  it("keeps empty fields between tabs", function()
    local path = file_of("1\t\t3\n4\t5\t6\n")
    local d = assert(gp.data.csv { path = path, separator = "\t", missing = -1 })
    assert.same({ 1, -1 }, (d:item(1)):totable())
  end)

  it("returns nil, message, code with file:line for a field that is not a number", function()
    local path = file_of("a,b\n1,2\n\n3,four\n")
    local d, message, code = gp.data.csv { path = path }
    assert.is_nil(d)
    assert.equal(path .. ":4: column 2 (b) is 'four', expected a number", message)
    assert.equal("format", code)
  end)

  it("refuses what would change silently: large ids, other encodings, f32's range", function()
    local wide = "\xff\xfe" .. ("a,y\n1,2\n"):gsub(".", "%0\0")
    for text, wanted in pairs {
      ["a,y\n1,4611686018427387905\n"] = "expected a whole number below 2^53",
      ["a,y\n1,9007199254740993\n"] = "expected a whole number below 2^53",
      ["a,y\n1e39,1\n"] = "'1e39', expected a number that f32 holds",
      ["a,y\n1,d\xf6g\n"] = "expected text in UTF-8",
      [wide] = "it is text in UTF-16 or UTF-32",
      ["\x1f\x8b\8\0\0,\n"] = "it is gzip data",
    } do
      local d, message, code = gp.data.csv { path = file_of(text) }
      assert.is_nil(d)
      assert.equal("format", code)
      assert.truthy(message:find(wanted, 1, true), message)
    end
    local d = assert(gp.data.csv { path = file_of "a,y\n1,9007199254740991\n2,-5\n" })
    assert.same({ 9007199254740991, -5 }, d:batches(2)() and select(2, d:batches(2)()):totable())
    d = assert(gp.data.csv { path = file_of "a,y\n1,1e20\n" })
    assert.equal("f32", select(2, d:batches(1)()).dtype)
  end)

  it("raises for a target that is not there", function()
    local path = file_of("width,label\n1,2\n")
    assert.truthy(raised(gp.data.csv, { path = path, target = "lable" })
      :find("there is no column 'lable' (did you mean 'label'?)", 1, true))
    assert.truthy(raised(gp.data.csv, { path = path, target = 3 })
      :find("target is column 3, the file has 2", 1, true))
    assert.truthy(raised(gp.data.csv, { path = file_of("1,2\n"), target = "a", header = false })
      :find("the file has no header", 1, true))
  end)

  it("finds thousands of columns by their names, and lists few in an error", function()
    local names, ones = {}, {}
    for i = 1, 60000 do names[i], ones[i] = "column_" .. i, 1 end
    local path = file_of(table.concat(names, ",") .. "\n" .. table.concat(ones, ",") .. "\n")
    local features = table.move(names, 1, 59999, 1, {})
    local d = assert(gp.data.csv { path = path, columns = features, target = "column_60000" })
    assert.equal(59999, d:item(1):numel())
    for _, wrong in ipairs { "nothing_like_it", "column_60001", ("x"):rep(1e6) } do
      local text = raised(gp.data.csv, { path = path, target = wrong })
      assert.is_true(#text < 400, text)
    end
  end)

  it("reads the digits that ship with the examples", function()
    local d = assert(gp.data.csv { path = "examples/data/digits.csv", target = "label" })
    assert.equal(1797, #d)
    local counts = {}
    for x, y in d:batches(100) do
      assert.same({ y:size(1), 64 }, x.shape)
      for _, digit in ipairs(y:totable()) do counts[digit + 1] = (counts[digit + 1] or 0) + 1 end
    end
    assert.same({ 178, 182, 177, 183, 181, 182, 181, 179, 174, 180 }, counts)
  end)
end)

describe("a dataset", function()
  it("gives the last, smaller batch unless drop_last", function()
    local d = numbers(7)
    assert.equal("0 1 2|3 4 5|6", walk(d:batches(3)))
    assert.equal("0 1 2|3 4 5", walk(d:batches(3, { drop_last = true })))
    assert.equal(3, #d:batches(3))
    assert.equal(2, #d:batches(3, { drop_last = true }))
    assert.equal("", walk(d:batches(8, { drop_last = true })))
  end)

  it("can be walked again, also after a break and inside of itself", function()
    local b = numbers(5):batches(2)
    for _ in b do break end -- luacheck: ignore 512
    assert.equal("0 1|2 3|4", walk(b))
    local outer = {}
    for x in b do
      outer[#outer + 1] = x[1]
      assert.equal("0 1|2 3|4", walk(b))
    end
    assert.same({ 0, 2, 4 }, outer)
  end)

  it("can be read item by item, and begins anew after its end", function()
    local b, sizes = numbers(5):batches(2), {}
    for _ = 1, 5 do
      local x = b()
      sizes[#sizes + 1] = x and x:size(1) or 0
    end
    assert.same({ 2, 2, 1, 0, 2 }, sizes)
  end)

  it("splits into parts that follow one another and cover all", function()
    local a, b, c = numbers(10):split(0.5, 0.3)
    assert.equal("0 1 2 3 4/5 6 7/8 9",
      walk(a:batches(9)) .. "/" .. walk(b:batches(9)) .. "/" .. walk(c:batches(9)))
    assert.equal(2, select("#", numbers(10):split(0.8, 0.2)))
    local half, rest = b:split(0.5)
    assert.equal("5 6/7", walk(half:batches(9)) .. "/" .. walk(rest:batches(9)))
  end)

  it("is shuffled only by the seed, and has every item once", function()
    local d = numbers(50)
    local one = walk(d:shuffle(1):batches(50))
    assert.equal(one, walk(d:shuffle(1):batches(50)))
    assert.not_equal(one, walk(d:shuffle(2):batches(50)))
    assert.not_equal(one, walk(d:batches(50)))
    local items = {}
    for n in one:gmatch("%d+") do items[#items + 1] = tonumber(n) end
    table.sort(items)
    for i = 1, 50 do assert.equal(i - 1, items[i]) end
  end)

  it("is shuffled by gp.seed without a seed of its own, in another order each time", function()
    finally(function() gp.seed(0) end)
    local d = numbers(50)
    local function three(seed)
      gp.seed(seed)
      return { walk(d:shuffle():batches(50)), walk(d:shuffle():batches(50)),
        walk(d:shuffle():batches(50)) }
    end
    local orders = three(7)
    assert.same(orders, three(7))
    assert.not_same(orders, three(8))
    assert.equal(orders[1], walk(d:shuffle(7):batches(50)))
    assert.not_equal(orders[1], orders[2])
    assert.not_equal(orders[2], orders[3])
  end)

  it("shuffles without changing what is drawn afterwards", function()
    finally(function() gp.seed(0) end)
    gp.seed(7)
    local t = gp.rand { 4 }
    gp.seed(7)
    numbers(50):shuffle()
    assert.is_true(gp.equal(t, gp.rand { 4 }))
  end)

  it("keeps the items of a part when it is shuffled, split, shuffled again", function()
    local _, tail = numbers(10):split(0.4)
    local a, b = tail:shuffle(3):split(0.5)
    local items = {}
    for n in (walk(a:shuffle(4):batches(9)) .. " " .. walk(b:batches(9))):gmatch("%d+") do
      items[#items + 1] = tonumber(n)
    end
    table.sort(items)
    assert.same({ 4, 5, 6, 7, 8, 9 }, items)
  end)

  it("is indexed from 1 and from the end", function()
    local d = numbers(3)
    assert.equal(0, d[1][1])
    assert.equal(2, (d:item(-1)))
    assert.is_nil(d[4])
    assert.truthy(raised(d.item, d, 4):find("item 4, expected 1 to 3", 1, true))
    assert.equal("Dataset(3 items of i64 [])", tostring(d))
  end)

  local wrong = {
    { function(d) d:split() end, "split: a fraction is missing" },
    { function(d) d:split(1.5) end,
      "split: fraction 1 is 1.5 (float), expected a number > 0 and <= 1" },
    { function(d) d:split(0) end, "split: fraction 1 is 0, expected a number" },
    { function(d) d:split(0.7, 0.7) end, "split: the fractions sum to 1.4, expected at most 1" },
    { function(d) d:split(0.01) end, "split: part 1 of 3 items would be empty" },
    { function(d) d:batches() end, "batches: n is missing" },
    { function(d) d:batches(0) end, "batches: n is 0, expected an integer >= 1" },
    { function(d) d:batches(2, { droplast = true }) end, "(did you mean 'drop_last'?)" },
    { function(d) d:shuffle("x") end, "shuffle: seed is \"x\" (string), expected an integer" },
    { function(d) d:batch(3) end, "there is no 'batch'" },
    { function() gp.data.tensors(gp.ones { 2 }, gp.ones { 3 }) end, "x has 2 rows and y has 3" },
    { function() gp.data.tensors(gp.ones { 2 }, 3) end, "y is 3, expected a tensor" },
  }
  for _, case in ipairs(wrong) do
    it("says: " .. case[2], function()
      assert.truthy(raised(case[1], numbers(3)):find(case[2], 1, true))
    end)
  end
end)
