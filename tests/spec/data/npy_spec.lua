-- tests/spec/data/npy_spec.lua - .npy files and elements as bytes; damaged files.
local gp = require "gpipe"
local npy = require "gpipe.io.npy"
local expect = require "tests.support.expect"
local fails_with = expect.fails_with

-- numpy.save wrote this for numpy.array([[1.5, -2.0], [0.25, 8.0]], order="F") with dtype float32.
local HEADER = "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }"
local COLUMNS = HEADER .. (" "):rep(127 - #HEADER) .. "\n" .. string.pack("<ffff", 1.5, 0.25, -2, 8)

describe("bytes", function()
  it("are written and read back for every dtype and order", function()
    for _, dtype in ipairs { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" } do
      local t = gp.arange(0, 5):reshape(2, 3):to(dtype)
      assert.is_true(gp.equal(t, gp.frombytes(t:bytes(), { 2, 3 }, dtype)))
      local turned = t:transpose()
      assert.is_true(gp.equal(turned:contiguous(), gp.frombytes(turned:bytes(), { 3, 2 }, dtype)))
    end
    assert.equal("", gp.zeros({ 0, 3 }):bytes())
    assert.equal(string.pack("<ff", 1, 2), gp.tensor({ 1, 2 }):bytes())
  end)

  it("are checked", function()
    fails_with("there are 3 bytes, expected 2 elements of 4", gp.frombytes, "abc", { 2 }, "f32")
    fails_with("byte 2 is 7, which is no bool", gp.frombytes, "\1\7", { 2 }, "bool")
    fails_with("the first argument is 3, expected a string", gp.frombytes, 3, { 2 }, "bool")
  end)
end)

describe("a .npy file", function()
  it("holds one tensor of any shape and dtype but bf16", function()
    local path = os.tmpname() .. ".npy"
    for _, dtype in ipairs { "f32", "f64", "f16", "i64", "i32", "u8", "bool" } do
      for _, shape in ipairs { {}, { 3 }, { 2, 3 }, { 0, 2 }, { 1, 2, 1, 3 } } do
        local t = gp.rand(shape, { seed = 1 }):gt(0.5):to(dtype)
        assert(gp.save(path, t))
        local back = assert(gp.load(path))
        assert.equal(dtype, back.dtype)
        assert.is_true(gp.equal(t, back))
        local file = assert(io.open(path, "rb"))
        local text = file:read "a"
        file:close()
        assert.equal(0, (#text - #t:bytes()) % 64)
      end
    end
    os.remove(path)
    fails_with("a .npy file cannot hold bf16", gp.save, path, gp.ones({ 1 }):to "bf16")
    fails_with('expected "x.npy" or a table', gp.save, "x", gp.ones { 1 })
  end)

  it("may hold columns first", function()
    assert.same({ { 1.5, -2 }, { 0.25, 8 } }, npy.decode(COLUMNS):totable())
  end)

  it("that is cut off anywhere, or has a wrong header, is refused", function()
    for length = 0, #COLUMNS - 1 do
      local tensor, why = npy.decode(COLUMNS:sub(1, length))
      assert.is_nil(tensor)
      assert.equal("string", type(why))
    end
    local function with(from, to)
      local text = COLUMNS:gsub(from, (to:gsub("%%", "%%%%")))
      return select(2, npy.decode(text))
    end
    assert.matches("the type \"<f3\" %(string%), which no dtype here is", with("<f4", "<f3"))
    assert.matches("complex numbers", with("<f4", "<c8"))
    assert.matches("16 bytes of elements, expected 36", with("%(2, 2%)", "(3, 3)"))
    assert.matches("expected", with("%(2, 2%)", "(9999999999999999999, 2)"))
    assert.matches("expected", with("%(2, 2%)", "(3000000000, 3000000000, 3000000000)"))
    assert.matches("the shape is", with("%(2, 2%)", "(2, x)"))
    assert.matches("lacks", with("'shape'", "'shame'"))
    assert.matches("does not begin", npy.decode "<!DOCTYPE html>" and "" or
      select(2, npy.decode "<!DOCTYPE html>"))
  end)

  it("is converted where NumPy wrote another width or order of bytes", function()
    local samples = dofile "tests/golden/npy.lua"
    for _, sample in ipairs(samples.read) do
      local t = assert(npy.decode((sample.data:gsub("..", function(h)
        return string.char(tonumber(h, 16))
      end))))
      assert.equal(sample.dtype, t.dtype, sample.name)
      assert.same(sample.shape, t.shape, sample.name)
      assert.same(sample.values, t:reshape { -1 }:totable(), sample.name)
    end
    for _, sample in ipairs(samples.refused) do
      local t, why = npy.decode((sample.data:gsub("..", function(h)
        return string.char(tonumber(h, 16))
      end)))
      assert.is_nil(t, sample.name)
      assert.truthy(why:find(sample.why, 1, true), sample.name .. ": " .. why)
    end
  end)

  it("with a header beyond 10,000 bytes is refused at once, as NumPy does", function()
    for _, text in ipairs { "'shape':(", "{'descr':", "(", "[", "'", "1," } do
      local header = text:rep(9999 // #text)
      local tensor, why = npy.decode("\x93NUMPY\1\0" .. string.pack("<s2", header))
      assert.is_nil(tensor)
      assert.is_true(#why < 200, why)
      header = text:rep(100000)
      tensor, why = npy.decode("\x93NUMPY\2\0" .. string.pack("<s4", header))
      assert.is_nil(tensor)
      assert.matches("expected at most 10000", why)
    end
    local _, why = npy.decode(COLUMNS:gsub("%(2, 2%)", "(" .. ("2,"):rep(3000) .. ")"))
    assert.is_true(#why < 200, why)
  end)

  it("with any one bit flipped is read or refused, never more", function()
    for at = 1, #COLUMNS - 16 do
      for bit = 0, 7 do
        local byte = COLUMNS:byte(at) ~ (1 << bit)
        local text = COLUMNS:sub(1, at - 1) .. string.char(byte) .. COLUMNS:sub(at + 1)
        local tensor, why = npy.decode(text)
        assert.is_true(tensor ~= nil or type(why) == "string")
      end
    end
  end)

  it("that is missing, or is no .npy file, gives nil, a message and a code", function()
    local tensor, message, code = gp.load "/nowhere/x.npy"
    assert.is_nil(tensor)
    assert.truthy(message)
    assert.equal("io", code)
    local path = os.tmpname() .. ".npy"
    local file = assert(io.open(path, "wb"))
    file:write "version https://git-lfs.github.com/spec/v1"
    file:close()
    tensor, message, code = gp.load(path)
    os.remove(path)
    assert.is_nil(tensor)
    assert.truthy(message:find(path, 1, true))
    assert.equal("format", code)
  end)
end)
