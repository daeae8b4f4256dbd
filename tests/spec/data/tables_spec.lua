-- tests/spec/data/tables_spec.lua - Lua tables that gp.save writes beside tensors.
local gp = require "gpipe"

local function path_of_new_file()
  local path = os.tmpname()
  finally(function() os.remove(path) end)
  return path
end

local function content(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local function there_and_back(given)
  local path = path_of_new_file()
  assert(gp.save(path, given))
  return (assert(gp.load(path)))
end

describe("tables beside tensors", function()
  it("come back equal, whatever they hold", function()
    local every_byte = {}
    for i = 0, 255 do every_byte[i + 1] = string.char(i) end
    local given = {
      text = "häß→\n\"quoted\\\"", bytes = table.concat(every_byte), empty = "", digits = "\0007",
      whole = 7, least = math.mininteger, most = math.maxinteger, real = 0.1, whole_real = 1.0,
      tiny = 5e-324, large = -1.7976931348623157e308, zero = -0.0, infinite = -math.huge,
      yes = true, no = false, none = {}, list = { 1, "two", { 3 } }, sparse = { [3] = 1, [-1] = 2 },
      [1] = "first", [2.5] = "real key", [true] = "boolean key",
      deep = { [""] = { ["a.b"] = { c = { false } } } },
    }
    local got = there_and_back(given)
    assert.same(given, got)
    for _, name in ipairs { "whole", "real", "whole_real" } do
      assert.equal(math.type(given[name]), math.type(got[name]))
    end
    assert.equal("-0.0", tostring(got.zero))
    local nan = there_and_back { x = 0 / 0 }.x
    assert.is_true(nan ~= nan)
  end)

  it("may hold tensors, also of names that clash, and views", function()
    local t = gp.arange(1, 6):reshape { 2, 3 }
    local got = there_and_back {
      ["a.b"] = gp.ones { 1 }, a = { b = t:transpose(1, 2), c = { t, t } }, [1] = gp.zeros { 2 },
      ["bad \xff"] = { x = gp.ones({ 2 }, { dtype = "i64" }) }, __metadata__ = { gp.ones { 3 } },
    }
    assert.same({ 1 }, got["a.b"]:totable())
    assert.same({ { 1, 4 }, { 2, 5 }, { 3, 6 } }, got.a.b:totable())
    assert.same({ t:totable(), t:totable() }, { got.a.c[1]:totable(), got.a.c[2]:totable() })
    assert.same({ 0, 0 }, got[1]:totable())
    assert.equal("i64", got["bad \xff"].x.dtype)
    assert.equal(3, got.__metadata__[1]:numel())
  end)

  it("leave files of only named tensors as they were", function()
    local a, b = path_of_new_file(), path_of_new_file()
    assert(gp.save(a, { x = gp.ones { 2 } }, { p = "1" }))
    assert(gp.save(b, { x = gp.ones { 2 }, epoch = 3 }, { p = "1" }))
    assert.is_nil(content(a):find("gpipe.tables", 1, true))
    local _, metadata = assert(gp.load(b))
    assert.same({ p = "1" }, metadata)
  end)

  it("make the same file, in whatever order they were filled", function()
    local a, b = path_of_new_file(), path_of_new_file()
    local one, two = {}, {}
    for i = 1, 50 do one["k" .. i], two["k" .. 51 - i] = i, 51 - i end
    assert(gp.save(a, { t = one }))
    assert(gp.save(b, { t = two }))
    assert.equal(content(a), content(b))
  end)

  it("do not depend on the locale", function()
    local before = os.setlocale()
    finally(function() os.setlocale(before) end)
    if not os.setlocale "de_DE.UTF-8" then return end
    assert.equal(1.5, there_and_back({ x = 1.5 }).x)
  end)

  local itself = {}
  itself.again = { itself }
  local deep = {}
  for _ = 1, 200 do deep = { deep } end
  for _, case in ipairs {
    { { config = { layers = { 1, print } } }, "config.layers[2]", "a function" },
    { { config = { model = gp.nn.Linear(1, 1) } }, "config.model", "a nn.Linear" },
    { { t = itself }, "t.again[1]", "holds itself" }, { { t = deep }, "too deep", "100" },
    { { t = { [print] = 1 } }, "'t'", "a key" }, { { ["x"] = io.stdout }, "'x'", "a FILE" },
  } do
    it("are refused with the place of what cannot be saved: " .. case[2], function()
      local good, text = pcall(gp.save, "/no/such/folder", case[1])
      assert.is_false(good)
      assert.truthy(text:find(case[2], 1, true), text)
      assert.truthy(text:find(case[3], 1, true), text)
    end)
  end

  it("reserve their key in the metadata", function()
    assert.is_false(pcall(gp.save, "x", {}, { ["gpipe.tables"] = "{}" }))
  end)
end)

describe("a damaged text of tables", function()
  local tables = require "gpipe.io.tables"

  -- Loads the text as a file would hold it.
  local function load_of(text)
    local core = require "gpipe.core"
    local path = path_of_new_file()
    assert(core.archive_save(path, { "w" }, { gp.ones { 1 } }, { tables.KEY, text }))
    local good, message, code = gp.load(path)
    return good, message, code, path
  end

  for _, text in ipairs {
    "", "{", "}", "{}x", "{=1}", "{1=2", "{1=2,}", "{1=2,1=3}", "{nan=1}", "{{}=1}", "{@\"w\"=1}",
    '{1=@"v"}', '{1=@"w",2=@"w"}', "{1=@w}", '{"w"=1}', '{1="a}', '{1="\\"}', '{1="\\9"}',
    '{1="\\999"}', "{1=0x}", "{1=12e3}", "{1=nil}", "{1=1.5}", "{1= 2}", "{1=os.exit()}",
    "{1=99999999999999999999}", ("{1="):rep(200) .. "1" .. ("}"):rep(200),
  } do
    it(("is an error that names the file: %s"):format(text:sub(1, 30)), function()
      local good, message, code, path = load_of(text)
      assert.is_nil(good)
      assert.equal("format", code)
      assert.equal(path, message:sub(1, #path))
      assert.truthy(message:find "byte %d")
    end)
  end

  it("is an error, or another value, wherever one byte changes", function()
    local tensors = { w = gp.ones { 1 } }
    local _, text = tables.encode { a = { 1, 2.5, "x\0" }, b = { w = tensors.w }, c = true }
    for at = 1, #text do
      for _, c in ipairs { "{", '"', "0", "\\", "@", "=" } do
        local changed = text:sub(1, at - 1) .. c .. text:sub(at + 1)
        local value, reason = tables.decode(changed, { ["b.w"] = tensors.w })
        assert.is_true(value ~= nil or type(reason) == "string")
      end
    end
  end)
end)
