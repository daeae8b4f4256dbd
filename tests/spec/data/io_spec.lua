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
    assert(gp.save(a, { x = gp.ones { 2 }, y = gp.zeros { 3 }, z = gp.ones { 1 } },
      { p = "1", q = "2" }))
    assert(gp.save(b, { z = gp.ones { 1 }, y = gp.zeros { 3 }, x = gp.ones { 2 } },
      { q = "2", p = "1" }))
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

  it("return nil, message, code where the system fails", function()
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
    assert.truthy(raised(gp.save, path, { ["\xff"] = gp.ones { 1 } }):find("not valid UTF-8", 1,
      true))
    assert.equal(before, content(path))
  end)

  local wrong = {
    { { 7, {} }, "gp.save: path is 7, expected a string" },
    { { "x" }, "gp.save: tensors is nil, expected a table" },
    { { "x", gp.nn.Linear(1, 1) }, "gp.save: tensors is a nn.Linear, expected a table" },
    { { "x", {}, { step = 7 } },
      "metadata 'step' is 7, expected a string (tostring(x) makes one)" },
    { { "x", {}, "note" }, "gp.save: metadata is \"note\" (string), expected a table of strings" },
    { { "x.npy", { a = gp.ones { 1 } } }, "a file that ends in .npy holds one tensor, expected a "
      .. "tensor, or another ending (.safetensors) for a table of them" },
    { { "x.NPZ", {} }, "a file that ends in .npz holds a zip archive of arrays, expected another" },
    { { "x\0y", {} }, "is \"x\\0y\" (string), expected a text without zeros" },
    { { "x", { __metadata__ = gp.ones { 1 } } }, "the name '__metadata__' belongs to the format" },
  }
  for _, case in ipairs(wrong) do
    it("say: " .. case[2], function()
      assert.truthy(raised(gp.save, table.unpack(case[1], 1, 3)):find(case[2], 1, true))
    end)
  end
end)

describe("a selection of items", function()
  local core = require "gpipe.core"
  local rows = gp.arange(1, 6):reshape { 3, 2 }
  local bytes = gp.tensor({ 1, 2, 3, 4 }, { dtype = "u8" })

  it("is a list of positions or an i64 tensor, from 1", function()
    local at = gp.tensor({ 3, 1 }, { dtype = "i64" })
    assert.same({ { 5, 6 }, { 1, 2 } }, core.gather_rows(rows, { 3, 1 }):totable())
    assert.same({ { 5, 6 }, { 1, 2 } }, core.gather_rows(rows, at):totable())
    local x, y = core.gather_windows(bytes, { 2 }, 2)
    assert.same({ { { 2, 3 } }, { { 3, 4 } } }, { x:totable(), y:totable() })
    assert.same({ 1, 2, 3, 4, 1, 2, 3, 4 }, core.join_bytes({ bytes, bytes }):totable())
  end)

  it("cannot be anything else", function()
    for _, at in ipairs { { 0 }, { 4 }, { 1.5 }, { "1" }, gp.ones { 2 },
      gp.zeros({ 1, 1 }, { dtype = "i64" }), 1 } do
      assert.is_false(pcall(core.gather_rows, rows, at))
    end
    for _, case in ipairs { { bytes, { 3 }, 2 }, { bytes, { 1 }, 4 }, { bytes, { 1 }, 0 },
      { rows, { 1 }, 1 } } do
      assert.is_false(pcall(core.gather_windows, table.unpack(case)))
    end
    assert.is_false(pcall(core.join_bytes, { rows }))
    assert.is_false(pcall(core.join_bytes, { 1 }))
    assert.is_false(pcall(core.permutation, -1, 0, 0))
  end)

  it("is a permutation of all positions, the same for the same seed and stream", function()
    local order = core.permutation(50, 3, 1):totable()
    assert.same(order, core.permutation(50, 3, 1):totable())
    assert.not_same(order, core.permutation(50, 3, 2):totable())
    table.sort(order)
    for i = 1, 50 do assert.equal(i, order[i]) end
  end)
end)
