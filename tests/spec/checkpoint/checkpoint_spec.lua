-- tests/spec/checkpoint/checkpoint_spec.lua - a saved training goes on with the same bits, wherever
-- it is cut and however often it is stopped; damage is named, and damaged files are never used.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local expect = require "tests.support.expect"
local fails_with = expect.fails_with
local nn, optim = gp.nn, gp.optim

local x, y = gp.randn({ 16, 4 }, { seed = 1 }), gp.randn({ 16, 2 }, { seed = 2 })

local function model()
  return nn.Sequential {
    nn.Linear(4, 8), nn.Dropout(0.3), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2),
  }
end

-- Opens a pipeline with its optimizer in use; the weights are always drawn from the same numbers.
local function make(opts, optimizer)
  gp.seed(3)
  local given = { chunks = 4, loss = nn.MSELoss(), deferred_batch_norm = true }
  for key, value in pairs(opts) do given[key] = value end
  local pipe = gp.pipeline(given.model or model(), (function() given.model = nil return given end)())
  local opt = (optimizer or optim.AdamW)(pipe:parameters(), { lr = 1e-2 })
  pipe:use(opt, { clip_norm = 1 })
  return pipe, opt
end

local function steps(pipe, n)
  local losses = {}
  for i = 1, n do losses[i] = pipe:step(x, y) end
  return losses
end

local function assert_same(a, b)
  for name, tensor in pairs(a) do assert.is_true(gp.equal(tensor, b[name]), name) end
end

local folder
before_each(function()
  folder = os.tmpname()
  os.remove(folder)
end)
after_each(function() os.execute(("rm -rf '%s'"):format(folder)) end)

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(path, bytes)
  local file <close> = assert(io.open(path, "wb"))
  file:write(bytes)
end

local function files()
  local pipe <close> = io.popen(("ls -A '%s'"):format(folder))
  local list = {}
  for name in pipe:lines() do list[#list + 1] = name end
  return list
end

describe("a checkpoint goes on with the same bits", function()
  local function resumes(first, second, optimizer)
    return function()
      local pipe <close>, opt = make(first, optimizer)
      steps(pipe, 3)
      opt.lr = 5e-3
      assert(gp.checkpoint.save(folder, { pipe = pipe, opt = opt }))
      local losses = steps(pipe, 4)
      local want, moments = pipe:state_dict(), opt:state_dict()
      pipe:close()
      local again <close>, other = make(second, optimizer)
      assert(gp.checkpoint.load(folder, { pipe = again, opt = other }))
      assert.are.equal(5e-3, other.lr)
      assert.are.same(losses, steps(again, 4))
      assert_same(want, again:state_dict())
      assert_same(moments, other:state_dict())
    end
  end

  it("of one stage", resumes({}, {}))
  it("of another cut", resumes({ balance = { 2, 3 } }, { balance = { 1, 1, 3 } }))
  it("of another schedule", resumes({ balance = { 2, 3 }, schedule = "gpipe" },
    { balance = { 1, 4 }, schedule = "zb_h1" }))
  it("in halves", resumes({ balance = { 2, 3 }, precision = "bf16" },
    { balance = { 3, 2 }, precision = "bf16" }))
  it("in f16, with the loss scale", resumes({ precision = "f16" },
    { balance = { 3, 2 }, precision = "f16" }))
  it("with momentum", resumes({ balance = { 2, 3 } }, {},
    function(params, opts)
      opts.momentum = 0.9
      return optim.SGD(params, opts)
    end))
end)

describe("gp.checkpoint.save", function()
  it("keeps what the script adds, tensors too", function()
    local extra = { epoch = 3, names = { "a", "b" }, mean = gp.ones { 2 }, none = {} }
    assert(gp.checkpoint.save(folder, { model = model(), extra = extra }))
    local back = assert(gp.checkpoint.load(folder, { model = model() }))
    assert.are.equal(3, back.epoch)
    assert.are.same({ "a", "b" }, back.names)
    assert.is_true(gp.equal(extra.mean, back.mean))
  end)

  it("keeps the streams of random numbers", function()
    local one = model()
    gp.seed(9)
    gp.rand { 3 }
    nn.Dropout(0.5)(gp.ones { 4 })
    assert(gp.checkpoint.save(folder, { model = one }))
    local want = { gp.rand { 3 }, nn.Dropout(0.5)(gp.ones { 64 }), nn.Linear(2, 2).weight:value() }
    gp.seed(1)
    assert(gp.checkpoint.load(folder, { model = one }))
    assert.is_true(gp.equal(want[1], gp.rand { 3 }))
    assert.is_true(gp.equal(want[2], nn.Dropout(0.5)(gp.ones { 64 })))
    assert.is_true(gp.equal(want[3], nn.Linear(2, 2).weight:value()))
  end)

  it("keeps the position in the data", function()
    local data = { at = 7 }
    function data:state() return { at = self.at } end
    function data:restore(s) self.at = s.at end
    assert(gp.checkpoint.save(folder, { model = model(), data = data }))
    data.at = 0
    assert(gp.checkpoint.load(folder, { model = model(), data = data }))
    assert.are.equal(7, data.at)
  end)

  it("writes what was there when it was called, in the background too", function()
    local pipe <close>, opt = make { balance = { 2, 3 } }
    steps(pipe, 2)
    local want = pipe:state_dict()
    local saving = assert(gp.checkpoint.save(folder, { pipe = pipe, opt = opt, background = true }))
    steps(pipe, 2)
    assert.is_true(saving:finish())
    assert.is_true(saving:done())
    assert(gp.checkpoint.load(folder, { pipe = pipe, opt = opt }))
    assert_same(want, pipe:state_dict())
  end)

  it("has a file for each stage, and is little larger than the state", function()
    local pipe <close>, opt = make { balance = { 2, 3 }, model = nn.Sequential {
      nn.Linear(4, 256), nn.Linear(256, 256), nn.Linear(256, 256), nn.Linear(256, 256),
      nn.Linear(256, 2) } }
    steps(pipe, 1)
    assert(gp.checkpoint.save(folder, { pipe = pipe, opt = opt }))
    assert.are.same({ "MANIFEST.json", "stage-0.safetensors", "stage-1.safetensors" }, files())
    local bytes, state = 0, 0
    for _, name in ipairs(files()) do bytes = bytes + #read(folder .. "/" .. name) end
    for _, p in ipairs(pipe:parameters()) do state = state + 3 * 4 * p.value:numel() end
    assert.is_true(bytes < 1.01 * state, ("%d of %d"):format(bytes, state))
  end)

  it("replaces the one that is there, and leaves nothing else behind", function()
    local one = model()
    for epoch = 1, 3 do
      assert(gp.checkpoint.save(folder .. "/deep/er", { model = one, extra = { epoch = epoch } }))
    end
    assert.are.equal(3, gp.checkpoint.load(folder .. "/deep/er/", { model = one }).epoch)
    local list <close> = io.popen(("find '%s' | wc -l"):format(folder))
    assert.are.equal(5, list:read "n") -- three folders, the manifest, one stage
  end)

  it("removes what a killed process left", function()
    assert(os.execute(("mkdir -p '%s/.c.tmp.999999999.0'"):format(folder)))
    write(folder .. "/.c.tmp.999999999.0/stage-0.safetensors", "half")
    assert(gp.checkpoint.save(folder .. "/c", { model = model() }))
    assert.are.same({ "c" }, files())
  end)

  it("says what the system refuses, and keeps the old one", function()
    local one = model()
    write(folder, "a file")
    local good, message, code = gp.checkpoint.save(folder, { model = one })
    assert.is_nil(good)
    assert.are.equal("io", code)
    assert.is_truthy(message:find("it exists and is no folder", 1, true), message)
    assert.are.equal("a file", read(folder))
    good, message = gp.checkpoint.save(folder .. "/below", { model = one })
    assert.is_nil(good)
    assert.is_truthy(message:find(folder, 1, true), message)
  end)

  it("raises for what cannot be saved", function()
    fails_with("folder is 3, expected a path", gp.checkpoint.save, 3, { model = model() })
    fails_with("missing option 'pipe' (or 'model')", gp.checkpoint.save, folder, {})
    fails_with("'bakground' (did you mean 'background'?)", gp.checkpoint.save, folder,
      { model = model(), bakground = true })
    fails_with("methods state and restore", gp.checkpoint.save, folder,
      { model = model(), data = {} })
    fails_with("'state.extra.f' is", gp.checkpoint.save, folder,
      { model = model(), extra = { f = print } })
  end)
end)

describe("gp.checkpoint.load", function()
  it("changes nothing where progress, data or random numbers do not fit", function()
    local function data(count)
      return gp.data.tensors(x:narrow(1, 1, count), y:narrow(1, 1, count)):shuffle(1):batches(4)
    end
    local pipe, opt = make {}
    local batches = data(16)
    steps(pipe, 3)
    batches()
    assert(gp.checkpoint.save(folder, { pipe = pipe, opt = opt, data = batches }))
    pipe:close()
    local other, its = make {}
    steps(other, 1)
    local before, moments = other:state_dict(), its:state_dict()
    local shorter = data(8)
    shorter()
    local place = shorter:state()
    fails_with("expected 8", gp.checkpoint.load, folder, { pipe = other, opt = its, data = shorter })
    assert_same(before, other:state_dict())
    assert.same(1, other:progress().steps)
    assert.same(place, shorter:state())
    for name, value in pairs(moments) do
      local now = its:state_dict()[name]
      assert.is_true(type(value) ~= "userdata" or gp.equal(value, now), name)
    end
    other:close()
  end)

  it("goes on in another precision, also where that has no loss scale", function()
    local pipe, opt = make { precision = "f16" }
    steps(pipe, 2)
    assert(gp.checkpoint.save(folder, { pipe = pipe, opt = opt }))
    local want = pipe:state_dict()
    pipe:close()
    for _, precision in ipairs { "f32", "bf16" } do
      local other <close>, its = make { precision = precision }
      assert(gp.checkpoint.load(folder, { pipe = other, opt = its }))
      assert_same(want, other:state_dict())
      assert.equal(2, other:progress().steps)
      steps(other, 1)
    end
  end)

  it("names at once all that does not fit, and changes nothing", function()
    assert(gp.checkpoint.save(folder, { model = model() }))
    local other = nn.Sequential { nn.Linear(4, 3), nn.Linear(3, 2) }
    local before = other:state_dict()
    local text = expect.failure(gp.checkpoint.load, folder, { model = other })
    for _, part in ipairs { "model.1.weight is f32 8x4, expected f32 3x4", "missing: model.2.weight",
      "unexpected: model.5.bias" } do
      assert.is_truthy(text:find(part, 1, true), text)
    end
    assert_same(before, other:state_dict())
  end)

  it("refuses another optimizer, and one that was not saved", function()
    local pipe <close>, opt = make {}
    assert(gp.checkpoint.save(folder, { pipe = pipe, opt = opt }))
    pipe:close()
    local other <close>, adam = make({}, optim.Adam)
    fails_with("is optim.AdamW with 1 group, expected optim.Adam", gp.checkpoint.load, folder,
      { pipe = other, opt = adam })
    assert(gp.checkpoint.save(folder, { pipe = other }))
    fails_with("has no optimizer, expected one for 'opt'", gp.checkpoint.load, folder,
      { pipe = other, opt = adam })
  end)

  it("says where there is no checkpoint", function()
    local state, message, code = gp.checkpoint.load(folder, { model = model() })
    assert.is_nil(state)
    assert.are.equal("io", code)
    assert.is_truthy(message:find("MANIFEST.json: cannot read: No such file", 1, true), message)
  end)

  it("finds the old one where a process was killed while it replaced it", function()
    local aside = folder:gsub("([^/]+)$", ".%1.old")
    local old, new = model(), model()
    assert(gp.checkpoint.save(folder, { model = old }))
    assert(os.rename(folder, aside)) -- killed between the two renames of a system without exchange
    assert(gp.checkpoint.load(folder .. "/", { model = new }))
    assert_same(old:state_dict(), new:state_dict())
    assert(gp.checkpoint.save(folder, { model = new }))
    assert.is_nil(os.rename(aside, aside))
    assert(os.execute(("cp -r '%s' '%s'"):format(folder, aside))) -- killed while removing it
    assert(gp.checkpoint.save(folder, { model = new }))
    assert.is_nil(os.rename(aside, aside))
  end)

  it("names the file of every changed byte and every file that is short", function()
    local one = nn.Sequential { nn.Linear(2, 1) }
    assert(gp.checkpoint.save(folder, { model = one }))
    for _, name in ipairs(files()) do
      local path = folder .. "/" .. name
      local whole = read(path)
      for i = 1, #whole do
        write(path, whole:sub(1, i - 1) .. string.char(whole:byte(i) ~ 1 << i % 8)
          .. whole:sub(i + 1))
        local state, message = gp.checkpoint.read(folder)
        assert.is_nil(state)
        assert.is_truthy(message:find(path, 1, true), message)
      end
      for length = 0, #whole - 1, 7 do
        write(path, whole:sub(1, length))
        local state, message = gp.checkpoint.read(folder)
        assert.is_nil(state)
        assert.is_truthy(message:find(path, 1, true), message)
      end
      write(path, whole)
    end
    assert.is_truthy(gp.checkpoint.read(folder))
  end)
end)
