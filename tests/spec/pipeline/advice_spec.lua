-- tests/spec/pipeline/advice_spec.lua - advice of a pipeline about what is no mistake: devices
-- without a stage, devices that will mostly wait, and what would fit into the memory of CPUs.

local child = dofile "tests/child.lua"

-- Runs text with a function p(n, options) that makes a pipeline of n layers; returns stderr.
local function said(text, arguments)
  local script = child.file([[
    local gp = require "gpipe"
    local nn = gp.nn
    local function p(n, opts)
      local layers = {}
      for i = 1, n do layers[i] = nn.Linear(2, 2) end
      opts.loss = nn.MSELoss()
      local pipe <close> = gp.pipeline(nn.Sequential(layers), opts)
      return pipe
    end
    local function ones(n)
      local list = {}
      for i = 1, n do list[i] = 1 end
      return list
    end
  ]] .. text)
  local list = arguments or {}
  list[#list + 1] = script
  local _, err, code = child.run(list)
  os.remove(script)
  assert.equal(0, code, err)
  return err
end

local function lines(text) return select(2, text:gsub("\n", "")) end

describe("a device that is named and gets no stage", function()
  it("is reported once, with the reason", function()
    local text = said [[
      for i = 1, 3 do p(2, {balance = {1, 1}, devices = {"cpu:0", "cpu:1", {"cpu:2", threads = 1}}}) end]]
    assert.matches("cpu:2[^\n]*not used", text)
    assert.equal(1, lines(text))
  end)

  it("is reported where the schedule puts several stages on a device", function()
    local text = said 'p(3, {balance = {1, 2}, devices = {"cpu:0", "cpu:1"}, schedule = "zbv"})'
    assert.matches("cpu:1[^\n]*not used[^\n]*2 stages on 1 device", text)
  end)

  it("is reported by its position where its name is used as well", function()
    assert.matches("entry 3 %(cpu:0%) is not used",
      said 'p(2, {balance = {1, 1}, devices = {"cpu:0", "cpu:1", "cpu:0"}})')
  end)

  it("is reported where the command line named it", function()
    assert.matches("cpu:1, cpu:2[^\n]*not used",
      said("p(1, {balance = {1}})", { "--devices", "cpu:0,cpu:1,cpu:2" }))
  end)

  it("is not reported where no device was named", function()
    assert.equal("", (said "p(2, {balance = {1, 1}}) p(2, {balance = {2}, devices = {'cpu'}})"))
  end)
end)

describe("a pipeline whose devices will mostly wait", function()
  it("says so once, with what helps", function()
    local text = said "for i = 1, 2 do p(16, {balance = ones(16)}) end"
    assert.equal(1, lines(text))
    assert.matches("94 %%", text)
    assert.matches("chunks = 64 would leave about 19 %%", text)
  end)

  it("names the schedule where that is the reason", function()
    local text = said "p(8, {balance = ones(8), chunks = 64, schedule = 'naive'})"
    assert.matches("another schedule", text)
  end)

  it("says nothing where the devices work enough", function()
    assert.equal("", (said [[
      p(8, {balance = ones(8), chunks = 8})
      p(4, {balance = ones(4)})
      p(1, {balance = {1}})]]))
  end)

  it("says so for a large schedule too", function()
    local text = said [[
      local made = { name = "1f1b", devices = 1000, stages = 1000, chunks = 100, batch = 0 }
      require "gpipe.pipeline.advice".idle_devices(made)]]
    assert.matches("91 %%", text)
  end)
end)

describe("the memory of CPUs", function()
  -- The address sanitizer reserves address space without limit.
  local with_limit = (os.getenv "GPIPE_SANITIZE" or "") == "" and it or pending

  local script
  setup(function()
    script = child.file [[
      local gp = require "gpipe"
      local layers = {}
      for i = 1, 8 do layers[i] = gp.nn.Sequential {gp.nn.Linear(256, 256), gp.nn.Tanh()} end
      local pipe = gp.pipeline(gp.nn.Sequential(layers), {balance = {4, 4}, loss = gp.nn.MSELoss(),
        checkpoint = "never", chunks = tonumber(arg[1])})
      local x = gp.zeros {1 << 18, 256}
      print(pipe:step(x, x))]]
  end)
  teardown(function() os.remove(script) end)

  -- Runs the script within so many bytes of address space.
  local function limited(bytes, chunks)
    return child.shell(("ulimit -v %d; exec %s %s %d"):format(bytes // 1024, child.program, script,
      chunks))
  end

  local UNITS = { bytes = 1, KiB = 2^10, MiB = 2^20, GiB = 2^30, TiB = 2^40 }

  with_limit("bounds what is said to fit, and what is said to fit does", function()
    local limit = 2200 * 2^20 // 1
    local _, err, code = limited(limit, 1)
    assert.equal(1, code)
    local chunks, size, unit = err:match "would fit: chunks = (%d+) %(([%d.]+) (%a+)%)"
    assert.is_truthy(chunks, err)
    assert.is_true(tonumber(size) * UNITS[unit] < limit)
    local out, message, good = limited(limit, tonumber(chunks))
    assert.equal(0, good, message)
    assert.matches("^%d", out)
  end)

  it("is reported by core.machine", function()
    local machine = require "gpipe.core".machine()
    assert.is_true(machine.available > 0)
    assert.is_true(machine.available <= machine.memory)
  end)
end)

describe("batch norm with several micro-batches", function()
  local function norms(options)
    return said(([[
      for i = 1, 2 do
        local m = nn.Sequential {nn.Linear(2, 2), nn.Sequential {nn.BatchNorm1d(2)}}
        local pipe <close> = gp.pipeline(m, {loss = nn.MSELoss(), %s})
      end]]):format(options))
  end

  it("is reported once, with the layer and what helps", function()
    local text = norms "chunks = 4"
    assert.matches("layer 2%.1[^\n]*4 times[^\n]*deferred_batch_norm = true", text)
    assert.equal(1, lines(text))
  end)

  it("is not reported for one micro-batch, or where it is deferred", function()
    assert.equal("", norms "chunks = 1")
    assert.equal("", norms "chunks = 4, deferred_batch_norm = true")
  end)
end)
