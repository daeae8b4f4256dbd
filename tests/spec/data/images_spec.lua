-- tests/spec/data/images_spec.lua - MNIST and CIFAR: values, augmentation, damage.
local gp = require "gpipe"

local folder

local function write(name, text)
  local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(text)
end

before_each(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
end)
after_each(function() os.execute("rm -r " .. folder) end)

local function idx(sizes, bytes)
  return (">I4"):pack(0x800 + #sizes) .. (">I4"):rep(#sizes):pack(table.unpack(sizes)) .. bytes
end

local IMAGES = idx({ 3, 2, 2 }, "\0\1\2\3\4\5\6\7\255\128\0\0")
local LABELS = idx({ 3 }, "\7\0\9")

local function digits(images, labels)
  write("t10k-images-idx3-ubyte", images or IMAGES)
  write("t10k-labels-idx1-ubyte", labels or LABELS)
  return gp.data.mnist { path = folder, split = "test", normalise = false }
end

describe("gp.data.mnist", function()
  it("reads plain and packed files", function()
    local d = assert(digits())
    local function check(x, y)
      assert.same({ 3, 1, 2, 2 }, x.shape)
      assert.same({ 7, 0, 9 }, y:totable())
      assert.equal("i64", y.dtype)
      assert.equal(1, x[3][1][1][1])
      assert.is_true(math.abs(x[2][1][2][2] - 7 / 255) < 1e-7)
    end
    for x, y in d:batches(4) do check(x, y) end
    os.execute("gzip " .. folder .. "/*")
    for x, y in assert(gp.data.mnist { path = folder, split = "test", normalise = false })
      :batches(4) do check(x, y) end
    local usual = assert(gp.data.mnist { path = folder, split = "test" })
    assert.is_true(math.abs(usual:item(1)[1][1][1] + 0.1307 / 0.3081) < 1e-6)
  end)

  it("says where missing files can be had", function()
    local d, message, code = gp.data.mnist { path = folder }
    assert.is_nil(d)
    assert.equal("io", code)
    assert.truthy(message:find("train-images-idx3-ubyte", 1, true))
    assert.truthy(message:find("https://", 1, true))
  end)

  it("refuses every truncation and every flipped bit of a header", function()
    for n = 0, #IMAGES - 1 do assert.is_nil((digits(IMAGES:sub(1, n)))) end
    for n = 0, #LABELS - 1 do assert.is_nil((digits(nil, LABELS:sub(1, n)))) end
    for at = 1, 16 do
      for bit = 0, 7 do
        local byte = string.char(IMAGES:byte(at) ~ 1 << bit)
        assert.is_nil((digits(IMAGES:sub(1, at - 1) .. byte .. IMAGES:sub(at + 1))))
      end
    end
  end)

  it("refuses every truncation and every flipped bit of packed files", function()
    digits()
    os.execute("gzip -n " .. folder .. "/t10k-images-idx3-ubyte")
    local name = folder .. "/t10k-images-idx3-ubyte.gz"
    local file = assert(io.open(name, "rb"))
    local packed = file:read "a"
    file:close()
    local function try(text)
      write("t10k-images-idx3-ubyte.gz", text)
      return gp.data.mnist { path = folder, split = "test", normalise = false }
    end
    local whole = assert(try(packed)):item(3):bytes()
    for n = 0, #packed - 1 do assert.is_nil((try(packed:sub(1, n)))) end
    for at = 1, #packed do
      for bit = 0, 7 do
        local d = try(packed:sub(1, at - 1) .. string.char(packed:byte(at) ~ 1 << bit)
          .. packed:sub(at + 1))
        if d then assert.equal(whole, d:item(3):bytes()) end -- a bit of a time stamp, say
      end
    end
  end)

  local FOREIGN = { "version https://git-lfs.github.com/spec/v1\n", "<!DOCTYPE html><html>",
    "\x80\4\x95", idx({ 1 << 31, 1 << 31, 1 << 31 }, ""), idx({ 60000, 28, 28 }, "abc") }
  it("refuses other files and hostile sizes, and names the file", function()
    for _, text in ipairs(FOREIGN) do
      local d, message, code = digits(text)
      assert.is_nil(d)
      assert.equal("format", code)
      assert.truthy(message:find(folder .. "/t10k-images-idx3-ubyte: byte ", 1, true), message)
    end
    assert.is_nil((digits(nil, idx({ 3 }, "\1\2\10"))))
    assert.is_nil((digits(nil, idx({ 2 }, "\1\2"))))
  end)
end)

local function record(label, value) return label .. value:rep(1024) .. ("\1"):rep(2048) end

describe("gp.data.cifar10 and cifar100", function()
  it("read records of one and of two labels", function()
    write("test_batch.bin", record("\3", "\51") .. record("\9", "\255"))
    local d = assert(gp.data.cifar10 { path = folder, split = "test", normalise = false })
    assert.equal("cat", d.classes[1 + select(2, d:item(1))])
    local x, y = d:item(1)
    assert.same({ 3, 32, 32 }, x.shape)
    assert.equal(3, y)
    assert.is_true(math.abs(x[1][32][32] - 0.2) < 1e-7 and math.abs(x[2][1][1] - 1 / 255) < 1e-7)
    write("test.bin", record("\3\99", "\51"))
    local fine = assert(gp.data.cifar100 { path = folder, split = "test" })
    assert.equal(99, (select(2, fine:item(1))))
  end)

  it("crop and flip by the shuffle's seed and the image, whatever the workers", function()
    local parts = {}
    for i = 1, 40 do
      local bytes = {}
      for k = 1, 3072 do bytes[k] = string.char((k * 7 + i) % 251) end
      parts[i] = string.char(i % 10) .. table.concat(bytes)
    end
    write("test_batch.bin", table.concat(parts))
    local d = assert(gp.data.cifar10 { path = folder, split = "test", augment = true })
    local function all(seed, workers, size)
      local out = {}
      for x in d:shuffle(seed):batches(size or 7, { workers = workers }) do
        out[#out + 1] = x:bytes()
      end
      return table.concat(out)
    end
    local want = all(1, 0)
    assert.equal(want, all(1, 2))
    assert.equal(want, all(1, 3, 11))
    assert.not_equal(want, all(2, 0))
    local plain = assert(gp.data.cifar10 { path = folder, split = "test" })
    local same = 0
    for i = 1, 40 do
      if gp.equal((plain:item(i)), (d:item(i))) then same = same + 1 end
    end
    assert.is_true(same < 5)
  end)

  it("refuse what is damaged", function()
    local good = record("\3", "a") .. record("\4", "b")
    for _, n in ipairs { 0, 1, 3072, 3074, #good - 1 } do
      write("test_batch.bin", good:sub(1, n))
      assert.is_nil((gp.data.cifar10 { path = folder, split = "test" }))
    end
    write("test_batch.bin", record("\3", "a") .. record("\10", "b"))
    local d, message = gp.data.cifar10 { path = folder, split = "test" }
    assert.is_nil(d)
    assert.truthy(message:find("byte 3073: the label is 10", 1, true), message)
    d, message = gp.data.cifar10 { path = folder }
    assert.is_nil(d)
    assert.truthy(message:find("cifar-10-binary.tar.gz", 1, true))
  end)
end)
