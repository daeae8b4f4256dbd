-- tests/spec/data/pictures_spec.lua - folders of PNG and JPEG files: values compared with Pillow's,
-- random areas, damage.
local gp = require "gpipe"

local samples = dofile "tests/golden/images.lua"
local folder

local function bytes_of(name)
  return (samples[name].data:gsub("..", function(h) return string.char(tonumber(h, 16)) end))
end

local function write(name, text)
  local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(text)
end

before_each(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir -p %s/b %s/a"):format(folder, folder)))
end)
after_each(function() os.execute("rm -r " .. folder) end)

-- Returns the first image of a folder that holds this file, or nil and the error.
local function image_of(name, text, opts)
  write("a/" .. name, text)
  opts = opts or { size = 5, normalise = false }
  opts.path = folder
  local d, message = gp.data.images(opts)
  if not d then return nil, message end
  local good, x = pcall(d.item, d, 1)
  os.remove(folder .. "/a/" .. name)
  if good then return x end
  return nil, x
end

describe("gp.data.images", function()
  for name, sample in pairs(samples) do
    it("reads " .. name .. " as Pillow does, within its rounding", function()
      local x = assert(image_of(name, bytes_of(name)))
      assert.same({ 3, 5, 5 }, x.shape)
      for i, v in ipairs(x:reshape { -1 }:totable()) do
        assert.is_true(math.abs(v * 255 - sample.values[i]) <= 1.6, ("%d: %g %g"):format(i, v * 255,
          sample.values[i]))
      end
    end)

    it("refuses every truncation of " .. name, function()
      local text = bytes_of(name)
      for n = 0, #text - 3 do
        local x, message = image_of(name, text:sub(1, n))
        assert.is_nil(x)
        assert.truthy(message:find(folder .. "/a/" .. name, 1, true), message)
        assert.is_true(n == 0 or message:find ": byte %d+: " ~= nil, message)
      end
    end)

    it("survives flipped bits of " .. name, function()
      local text = bytes_of(name)
      for at = 1, #text, #text > 800 and 7 or 1 do
        for bit = 0, 7 do
          local byte = string.char(text:byte(at) ~ 1 << bit)
          image_of(name, text:sub(1, at - 1) .. byte .. text:sub(at + 1))
        end
      end
    end)
  end

  it("gives an image of 16 bits the values of its 8 bits, whatever its gamma says", function()
    local seen = {}
    for _, name in ipairs { "grey16.png", "grey16_gamma.png" } do
      seen[#seen + 1] = assert(image_of(name, bytes_of(name))):bytes()
    end
    assert.equal(seen[1], seen[2])
    local plain, gamma = image_of("a.png", bytes_of "rgb.png"), image_of("a.png", bytes_of "gamma.png")
    assert.is_true(gp.equal(plain, gamma))
  end)

  -- Makes a progressive JPEG of one component whose scans say that all blocks are empty.
  local function empty_scans(side, scans)
    local bits, blocks = {}, (side // 8) ^ 2
    while blocks > 0 do -- code 0 and 14 bits: a run of 2^14 plus their value
      bits[#bits + 1] = "0" .. ("1"):rep(14)
      blocks = blocks - 32767
    end
    local data = table.concat(bits)
    data = (data .. ("1"):rep(-#data % 8)):gsub(("."):rep(8), function(b)
      local byte = string.char(tonumber(b, 2))
      return byte == "\xff" and "\xff\0" or byte
    end)
    local scan = "\xff\xda\0\8\1\1\0\1\63\0" .. data
    return "\xff\xd8" .. string.pack(">I2I2BI2I2BBBB", 0xffc2, 11, 8, side, side, 1, 1, 0x11, 0)
      .. "\xff\xc4\0\20\16\1" .. ("\0"):rep(15) .. "\xe0"
      .. "\xff\xdb\0\67\0" .. ("\1"):rep(64) .. scan:rep(scans) .. "\xff\xd9"
  end

  it("bounds the work of all scans of a progressive JPEG", function()
    assert.truthy(image_of("x.jpg", empty_scans(64, 400)))
    local x, message = image_of("x.jpg", empty_scans(64, 501))
    assert.is_nil(x)
    assert.truthy(message:find("more than 500 scans of 64 x 64", 1, true), message)
    x, message = image_of("x.jpg", empty_scans(8192, 18) .. ("\0"):rep(9000))
    assert.is_nil(x)
    assert.truthy(message:find("more than 16 scans", 1, true), message)
  end)

  it("refuses a JPEG of two components by name", function()
    local text = "\xff\xd8" .. string.pack(">I2I2BI2I2BBBBBBB", 0xffc0, 14, 8, 8, 8, 2, 1, 0x11, 0, 2,
      0x11, 0) .. "\xff\xda\0\8\1\1\0\0\63\0\xff\xd9"
    local x, message = image_of("x.jpg", text)
    assert.is_nil(x)
    assert.truthy(message:find("2 components, expected grey, colour or CMYK", 1, true), message)
  end)

  it("numbers the classes by the names of their folders", function()
    write("b/1.png", bytes_of "rgb.png")
    write("a/2.JPG", bytes_of "baseline.jpg")
    write("a/notes.txt", "not an image")
    local d = assert(gp.data.images { path = folder .. "/", size = 4 })
    assert.same({ "a", "b" }, d.classes)
    assert.equal(2, #d)
    for _, y in d:batches(2) do assert.same({ 0, 1 }, y:totable()) end
  end)

  it("draws areas by the shuffle's seed and the image, whatever the workers", function()
    for i = 1, 9 do write(("a/%d.png"):format(i), bytes_of "rgb.png") end
    local d = assert(gp.data.images { path = folder, size = 6, train = true })
    local function all(seed, workers, size)
      local out = {}
      for x in d:shuffle(seed):batches(size or 2, { workers = workers }) do
        out[#out + 1] = x:bytes()
      end
      return table.concat(out)
    end
    local want = all(1, 0)
    assert.equal(want, all(1, 2))
    assert.equal(want, all(1, 3, 4))
    assert.not_equal(want, all(2, 0))
    assert.is_false(gp.equal((d:item(1)), (d:item(2))))
  end)

  it("refuses other files and hostile sizes", function()
    local png = bytes_of "rgb.png"
    local huge = png:sub(1, 16) .. ("\x7f\xff\xff\xff"):rep(2) .. png:sub(25)
    for _, text in ipairs { "version https://git-lfs.github.com/spec/v1\n", "<html>", "\x80\4x", huge,
      "\xff\xd8\xff" } do
      local x, message = image_of("x.png", text)
      assert.is_nil(x)
      assert.truthy(message:find(folder .. "/a/x.png", 1, true), message)
    end
    local d, message, code = gp.data.images { path = folder }
    assert.is_nil(d)
    assert.equal("io", code)
    assert.truthy(message:find("no images", 1, true))
  end)

  it("refuses images of other kinds rather than leaving them out", function()
    write("a/1.png", bytes_of "rgb.png")
    write("b/2.WEBP", "RIFF")
    local d, message, code = gp.data.images { path = folder }
    assert.is_nil(d)
    assert.equal("format", code)
    assert.truthy(message:find("b/2.WEBP: an image of another kind", 1, true), message)
  end)

  it("raises for a damaged image at its batch", function()
    write("a/1.png", bytes_of "rgb.png")
    write("a/2.png", "not a png")
    write("b/3.png", bytes_of "rgb.png")
    local d = assert(gp.data.images { path = folder, size = 4 })
    local seen = 0
    local good, text = pcall(function() for _ in d:batches(1) do seen = seen + 1 end end)
    assert.is_false(good)
    assert.equal(1, seen)
    assert.truthy(text:find("a/2.png", 1, true))
  end)
end)
