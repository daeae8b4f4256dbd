-- tests/spec/train/events_spec.lua - event files: the bytes that TensorBoard reads.
--
-- TensorBoard 2.21 read the golden bytes with tests/golden/events.py, which printed the values that
-- were written. Of a folder with a second file whose `start` is 6 it showed the steps up to 5 of
-- the first file and those of the second.
local gp = require "gpipe"
local bytes = require "gpipe.train.event_bytes"

local TIME = 1700000000
local GOLDEN = {
  version = "1800000000000000 a37f4b22 09 00000040fc54d941 1a0d627261696e2e4576656e743a32 eced8f9d",
  start = "1000000000000000 95fbfe18 09 00000040fc54d941 10ac02 3a020801 95410618",
  scalar = "2000000000000000 29eda950 09 00002040fc54d941 1007"
    .. " 2a130a110a0a747261696e2f6c6f7373 1500002040 f68c67bf",
  text = "3300000000000000 0ca72056 09 00000040fc54d941"
    .. " 2a280a26 0a06636f6e666967 4a080a060a0474657874 42120807 120412020801 42086c72203d20302e31"
    .. " 178e0516",
  histogram = "a800000000000000 fcd8de2d 09 00000040fc54d941 1001 2a9a010a97010a0177 2a9101"
    .. " 09000000000000f0bf 11000000000000e03f 190000000000001040 210000000000000000"
    .. " 29000000000000f83f 3230 2b14facdbe24f0bf 08996919155aedbf 0000000000000000"
    .. " 11ea2d819997713d fae55a25d31fde3f b03125ee8091e03f"
    .. " 3a30 0000000000000000 000000000000f03f 0000000000000000 000000000000f03f"
    .. " 0000000000000000 0000000000000040 3135e5cc",
}

local folder
before_each(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
end)
after_each(function() os.execute("rm -rf " .. folder) end)

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function hex(text)
  return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Returns the events of a file; checks each frame.
local function events_of(text)
  local list, at = {}, 1
  while at <= #text do
    local length = ("<I8"):unpack(text, at)
    local event, next_at = text:sub(at + 12, at + 11 + length), at + 16 + length
    assert.equal(bytes.record(event), text:sub(at, next_at - 1))
    list[#list + 1], at = event, next_at
  end
  return list
end

describe("a file of events", function()
  it("has the bytes of the golden file", function()
    local path = folder .. "/golden.tfevents"
    local events = assert(gp.train.events(path, { time = TIME, start = 300 }))
    events:scalar(7, "train/loss", 2.5, TIME + 0.5)
    events:text(0, "config", "lr = 0.1", TIME)
    events:histogram(1, "w", gp.tensor { -1, 0, 0.5, 0.5 }, TIME)
    assert(events:close())
    local wanted = {}
    for _, name in ipairs { "version", "start", "scalar", "text", "histogram" } do
      wanted[#wanted + 1] = GOLDEN[name]:gsub(" ", "")
    end
    assert.equal(table.concat(wanted), hex(read(path)))
  end)

  it("begins with only the version record, and has 88 bytes with a scalar", function()
    local path = folder .. "/a.tfevents"
    local events <close> = assert(gp.train.events(path, { time = TIME }))
    assert.equal(40, #read(path))
    events:scalar(7, "train/loss", 2.5, TIME + 0.5)
    assert(events:flush())
    assert.equal(88, #read(path))
  end)

  it("has a name of its own in a folder, which it creates", function()
    local one = assert(gp.train.events(folder .. "/runs/a"))
    local two = assert(gp.train.events(folder .. "/runs/a"))
    assert.are_not.equal(one.path, two.path)
    assert.matches("/runs/a/events%.out%.tfevents%.%d+%.[^/]+%.%d+%.%d+$", one.path)
    one:close()
    two:close()
  end)

  it("is written in whole records, also of many", function()
    local events = assert(gp.train.events(folder))
    for step = 1, 1050 do assert(events:scalar(step, "loss", 1 / step)) end
    local before = #events_of(read(events.path))
    assert.is_true(before > 800 and before < 1051, before)
    events:close()
    assert.equal(1051, #events_of(read(events.path)))
  end)

  it("takes its times from the clock, in ascending order", function()
    local events = assert(gp.train.events(folder))
    for step = 1, 5 do events:scalar(step, "loss", 1) end
    events:close()
    local last = os.time() - 60
    for _, event in ipairs(events_of(read(events.path))) do
      local time = ("<d"):unpack(event, 2)
      assert.is_true(time >= last and time < os.time() + 60)
      last = time
    end
  end)

  it("holds infinities and NaN as they are", function()
    local events = assert(gp.train.events(folder))
    events:scalar(1, "loss", 0 / 0)
    events:scalar(2, "loss", math.huge)
    events:close()
    local list = events_of(read(events.path))
    local nan = ("<f"):unpack(list[2], #list[2] - 3)
    assert.is_true(nan ~= nan)
    assert.equal(math.huge, (("<f"):unpack(list[3], #list[3] - 3)))
  end)

  it("has a histogram for every parameter and gradient", function()
    local pipe <close> = gp.pipeline(gp.nn.Sequential { gp.nn.Linear(3, 2), gp.nn.Linear(2, 2) },
      { loss = gp.nn.MSELoss(), balance = { 1, 1 } })
    pipe:step(gp.ones { 4, 3 }, gp.ones { 4, 2 })
    local events = assert(gp.train.events(folder))
    assert(events:parameters(1, pipe))
    events:close()
    local text = read(events.path)
    for _, part in ipairs { "parameters/", "gradients/" } do
      for _, name in ipairs { "1.weight", "1.bias", "2.weight", "2.bias" } do
        assert.is_truthy(text:find(part .. name, 1, true), part .. name)
      end
    end
  end)
end)

describe("an error of the system", function()
  it("is raised for a file that exists, and nothing is overwritten", function()
    local path = folder .. "/old.tfevents"
    local file = assert(io.open(path, "w"))
    file:write "old"
    file:close()
    local events, message, code = gp.train.events(path)
    assert.is_nil(events)
    assert.equal("io", code)
    assert.is_truthy(message:find(path, 1, true), message)
    assert.equal("old", read(path))
  end)

  it("is raised for a folder that cannot be made, and names the file", function()
    local events, message, code = gp.train.events "/proc/none/here"
    assert.is_nil(events)
    assert.equal("io", code)
    assert.is_truthy(message:find("/proc/none", 1, true), message)
  end)

  it("is raised for a full disk, and names the file and counts the records", function()
    local path = folder .. "/full.tfevents"
    assert(os.execute("ln -s /dev/full " .. path))
    local events, message, code = gp.train.events(path)
    assert.is_nil(events)
    assert.equal("io", code)
    assert.is_truthy(message:find(path, 1, true), message)
    assert.is_truthy(message:find("No space left", 1, true), message)
  end)
end)

describe("a histogram", function()
  local histogram = require "gpipe.train.histogram"

  it("counts each element in the bucket that its value is in", function()
    local values = { 0, 2e-13, -2e-13, 3, -3, 1e-5, -1e-5, 1e30, -1e30, 7, 7 }
    local h = histogram(gp.tensor(values, { dtype = "f64" }))
    local found = 0
    for i, count in ipairs(h.counts) do
      local low, high = h.limits[i - 1] or -math.huge, h.limits[i]
      local inside = 0
      for _, v in ipairs(values) do
        if v >= low and v < high then inside = inside + 1 end
      end
      assert.equal(inside, count, ("%g to %g"):format(low, high))
      found = found + count
    end
    assert.equal(#values, found)
  end)

  it("leaves out infinities and NaN", function()
    local h = histogram(gp.tensor { 1, 0 / 0, math.huge, 2 })
    assert.same({ 2, 1, 2, 3, 5 }, { h.count, h.min, h.max, h.sum, h.squares })
    assert.is_nil(histogram(gp.tensor { 0 / 0 }))
  end)

  it("is the same for strided values, and for several pieces", function()
    local x = gp.randn { 700, 1600 }
    assert.same(histogram(x:contiguous():reshape { 700 * 1600 }).counts,
      histogram(x:transpose(1, 2)).counts)
  end)
end)

describe("a mistake", function()
  local cases = {
    { "a step below 0", function(e) e:scalar(-1, "a", 1) end, { "step", "-1" } },
    { "a step that is no integer", function(e) e:scalar(1.5, "a", 1) end, { "step", "1.5" } },
    { "a value that is no number", function(e) e:scalar(1, "a", "x") end, { "value", '"x"' } },
    { "a name that is none", function(e) e:scalar(1, 2, 1) end, { "name", "2" } },
    { "a text that is none", function(e) e:text(1, "a", {}) end, { "text", "table" } },
    { "a tensor that is none", function(e) e:histogram(1, "a", 3) end, { "tensor", "3" } },
    { "a closed file", function(e) e:close() e:scalar(1, "a", 1) end, { "closed" } },
  }
  for _, case in ipairs(cases) do
    it("is named: " .. case[1], function()
      local events = assert(gp.train.events(folder))
      local good, message = pcall(case[2], events)
      events:close()
      assert.is_false(good)
      for _, word in ipairs(case[3]) do
        assert.is_truthy(message:find(word, 1, true), message)
      end
    end)
  end
end)
