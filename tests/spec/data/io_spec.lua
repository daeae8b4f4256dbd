-- tests/spec/data/io_spec.lua - gp.save and gp.load.
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

local function raised(f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  return text
end

describe("gp.save and gp.load", function()
  it("bring every dtype back bit by bit, with the metadata", function()
    local path, tensors = path_of_new_file(), {}
    for _, dtype in ipairs { "f32", "f64", "bf16", "f16", "i64", "i32", "u8" } do
      tensors[dtype] = gp.tensor({ { 1, 2, 3 }, { 4, 5, 250 } }, { dtype = dtype })
    end
    tensors.bool = gp.tensor { true, false }
    tensors["a scalar, ä"] = gp.tensor(2.5)
    tensors.empty = gp.zeros { 0, 3 }
    assert.is_true(gp.save(path, tensors, { step = "7", note = "a\n\"b\"" }))
    local loaded, metadata = assert(gp.load(path))
    for name, tensor in pairs(tensors) do
      assert.is_true(gp.equal(tensor, loaded[name]), name)
      loaded[name] = nil
    end
    assert.is_nil(next(loaded))
    assert.same({ step = "7", note = "a\n\"b\"" }, metadata)
  end)

  it("write the same bytes for the same tensors", function()
    local a, b = path_of_new_file(), path_of_new_file()
    assert(gp.save(a, { x = gp.ones { 2 }, y = gp.zeros { 3 }, z = gp.ones { 1 } }, { p = "1", q = "2" }))
    assert(gp.save(b, { z = gp.ones { 1 }, y = gp.zeros { 3 }, x = gp.ones { 2 } }, { q = "2", p = "1" }))
    assert.equal(content(a), content(b))
  end)

  it("save views as they look", function()
    local path = path_of_new_file()
    local t = gp.arange(1, 12):reshape { 3, 4 }
    assert(gp.save(path, { turned = t:transpose(1, 2), part = t:narrow(2, 2, 2) }))
    local loaded = assert(gp.load(path))
    assert.same(t:transpose(1, 2):totable(), loaded.turned:totable())
    assert.same(t:narrow(2, 2, 2):totable(), loaded.part:totable())
  end)

  it("save a model's state, which another model loads", function()
    local path = path_of_new_file()
    local a, b = gp.nn.Linear(4, 2), gp.nn.Linear(4, 2)
    assert(gp.save(path, a:state_dict()))
    b:load_state_dict((assert(gp.load(path))))
    assert.is_true(gp.equal(a(gp.ones { 1, 4 }), b(gp.ones { 1, 4 })))
  end)

  it("return nil, message, code where the world fails", function()
    local good, message, code = gp.save("/no/such/folder/x", { a = gp.ones { 1 } })
    assert.is_nil(good)
    assert.equal("/no/such/folder/x: cannot save: No such file or directory", message)
    assert.equal("io", code)
    good, message, code = gp.load("/no/such/file")
    assert.is_nil(good)
    assert.truthy(message:find("/no/such/file", 1, true))
    assert.equal("io", code)
  end)

  it("refuse a damaged file with its name and the fact, as code format", function()
    local path = path_of_new_file()
    assert(gp.save(path, { a = gp.ones { 4 } }))
    local text = content(path)
    local file = assert(io.open(path, "wb"))
    file:write(text:sub(1, -2))
    file:close()
    local good, message, code = gp.load(path)
    assert.is_nil(good)
    assert.equal(path .. ": the tensors have 16 bytes, the file has 15 after its header", message)
    assert.equal("format", code)
  end)

  it("leave the old file where saving fails", function()
    local path = path_of_new_file()
    assert(gp.save(path, { a = gp.ones { 4 } }))
    local before = content(path)
    assert.truthy(raised(gp.save, path, { ["\xff"] = gp.ones { 1 } }):find("not valid UTF-8", 1, true))
    assert.equal(before, content(path))
  end)

  local wrong = {
    { { 7, {} }, "gp.save: path is 7, expected a string" },
    { { "x" }, "gp.save: tensors is nil, expected a table" },
    { { "x", { gp.ones { 1 } } }, "gp.save: a name in the tensors is 1, expected a string" },
    { { "x", { a = { 1 } } }, "gp.save: 'a' is a table, expected a tensor (gp.tensor(x) makes one)" },
    { { "x", {}, { step = 7 } }, "metadata 'step' is 7, expected a string (tostring(x) makes one)" },
    { { "x", {}, "note" }, "gp.save: metadata is \"note\" (string), expected a table of strings" },
    { { "x\0y", {} }, "is \"x\\0y\" (string), expected a text without zeros" },
    { { "x", { __metadata__ = gp.ones { 1 } } }, "the name '__metadata__' belongs to the format" },
  }
  for _, case in ipairs(wrong) do
    it("say: " .. case[2], function()
      assert.truthy(raised(gp.save, table.unpack(case[1], 1, 3)):find(case[2], 1, true))
    end)
  end
end)
