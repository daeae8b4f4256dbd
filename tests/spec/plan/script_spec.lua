-- tests/spec/plan/script_spec.lua - what `gpipe-lua --dry-run` prints for a script is what the
-- script then takes.

local child = dofile "tests/child.lua"
local sizes = require "gpipe.sizes"

local HEAD = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
local function model()
  return nn.Sequential {
    nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 24), nn.Tanh(),
    nn.Linear(24, 10),
  }
end
local x, y = gp.ones {12, 1, 8, 8}, gp.zeros({12}, {dtype = "i64"})
]]
local TAIL = "\nfor _, d in ipairs(pipe:memory()) do print('takes', d.planned, d.measured) end\n"

local function run(text, ...)
  local path = child.file(HEAD .. text)
  local words = table.pack(...)
  words[#words + 1] = path
  local out, err, code = child.run(words)
  os.remove(path)
  return out, err, code
end

local function all(text, pattern)
  local list = {}
  for found in text:gmatch(pattern) do list[#list + 1] = found end
  return list
end

-- The bytes of each device, as both runs print them.
local function check(text)
  local dry, _, dry_code = run(text, "--dry-run")
  local real, err, code = run(text .. TAIL)
  assert.equal("", (err:gsub("gpipe: [^\n]*\n", "")))
  assert.are.same({ 0, 0 }, { dry_code, code })
  local taken = {}
  for planned, measured in real:gmatch "takes\t(%d+)\t(%d+)" do
    assert.equal(planned, measured)
    taken[#taken + 1] = sizes.text(tonumber(planned))
  end
  assert.truthy(#taken > 0)
  assert.are.same(taken, all(dry, "\n    cpu:%d: ([%d.]+ %a+) of"))
end

describe("gpipe-lua --dry-run", function()
  local function train(options)
    return ([[
      local pipe = gp.pipeline(model(), {chunks = 4, loss = nn.CrossEntropyLoss(), %s})
      pipe:use(optim.AdamW(pipe:parameters(), {lr = 1e-3}))
      pipe:step(x, y)]]):format(options)
  end

  for _, options in ipairs {
    "devices = 2, sum_group = 1", "devices = 2, sum_group = 2, schedule = 'zb_h1'",
    "devices = 2, deferred_batch_norm = true", "devices = 1, finite = true", "devices = 1, fuse = false",
    "devices = 2, replicas = 2, sync_batch_norm = true, checkpoint = 'always'",
    "devices = {{'cpu:0', memory = '160KiB'}}, checkpoint = 'auto', finite = 'ignore'",
  } do
    it("foresees the bytes of a pipeline with " .. options, function() check(train(options)) end)
  end

  it("leaves out devices that have no stage, and says of pictures that there was no step", function()
    local out, err, code = run([[
      local gp = require "gpipe"
      local nn = gp.nn
      local pipe = gp.pipeline(nn.Sequential { nn.Linear(4, 4), nn.Linear(4, 4) }, {
        loss = nn.MSELoss(), devices = 3 })
      print(select(2, pcall(pipe.svg, pipe, "picture.svg", { width = 300 })))
      pipe:step(gp.ones { 8, 4 }, gp.ones { 8, 4 })]], "--dry-run")
    assert.equal(0, code, err)
    assert.matches("svg: this is a dry run, no step was planned yet", out)
    assert.matches("as it is set: 1f1b, 2 stages on 2 devices", out)
    assert.is_nil(out:match "attempt to")
  end)

  it("takes no optimizer where the script has none", function()
    check "local pipe = gp.pipeline(model(), {chunks = 4, loss = nn.CrossEntropyLoss()}) pipe:step(x, y)"
  end)

  it("takes each pipeline's own optimizer", function()
    local out = run([[
      local options = {loss = nn.CrossEntropyLoss(), sample = {x, y}}
      local a, b = gp.pipeline(model(), options), gp.pipeline(model(), options)
      local first = optim.SGD(a:parameters(), {lr = 1, momentum = 0.9})
      local second = optim.Adam(b:parameters(), {lr = 1})
      a:step(x, y)]], "--dry-run")
    assert.are.same({ "SGD", "Adam" }, all(out, "optimizer: (%w+)\n"))
    local bytes = all(out, "\n    cpu:0: [^\n]* optimizer ([%d.]+) KiB")
    assert.near(2 * tonumber(bytes[1]), tonumber(bytes[2]), 0.11)
  end)

  it("plans for the batch of the first step, not for those that are evaluated before it", function()
    local out, err, code = run([[
      local pipe = gp.pipeline(model(), {chunks = 2, loss = nn.CrossEntropyLoss()})
      local opt = optim.SGD(pipe:parameters(), {lr = 1})
      print(pipe:evaluate(gp.ones {400, 1, 8, 8}, gp.zeros({400}, {dtype = "i64"})))
      while pipe:evaluate(x, y) > 1e-3 do pipe:step(x, y) opt:step() end]], "--dry-run")
    assert.are.same({ "", 0 }, { err, code })
    assert.matches("^inf\n.*2 micro%-batches of 6 rows", out)
  end)

  it("does not count moments that lie outside of the pipeline towards its cap", function()
    local text = [[
      local pipe = gp.pipeline(model(), {devices = {{"cpu:0", memory = "120KiB"}}, chunks = 4,
        checkpoint = "always", loss = nn.CrossEntropyLoss()})
      local opt = optim.AdamW(pipe:parameters(), {lr = 1})
      %s
      pipe:step(x, y)]]
    local out = run(text:format "", "--dry-run")
    assert.matches("of 120.0 KiB, a cap that does not count this optimizer", out, 1, true)
    assert.equal(0, select(3, run(text:format "")))
    assert.matches("DOES NOT FIT", (run(text:format "pipe:use(opt)", "--dry-run")))
    assert.equal(1, select(3, run(text:format "pipe:use(opt)")))
  end)

  for name, text in pairs {
    ["a step without a loss"] = "gp.pipeline(model(), {}):step(x, y)",
    ["a stream without pipe:use"] =
      "gp.pipeline(model(), {schedule = 'pipedream', loss = nn.CrossEntropyLoss()}):step(x, y)",
    ["clipping in a stream"] = [[
      local pipe = gp.pipeline(model(), {schedule = 'pipedream', loss = nn.CrossEntropyLoss()})
      pipe:use(optim.SGD(pipe:parameters(), {lr = 1}), {clip_norm = 1})
      pipe:step(x, y)]],
  } do
    it("raises the error of " .. name, function()
      local _, dry, dry_code = run(text, "--dry-run")
      local _, real, code = run(text)
      assert.are.same({ 1, 1 }, { dry_code, code })
      assert.equal(real:match ":%d+: [^\n]*", dry:match ":%d+: [^\n]*")
    end)
  end

  it("shows memory, tasks and costs of a sample before the first step", function()
    local text = [[
      local pipe = gp.pipeline(model(), {devices = 2, chunks = 4, sample = {x, y},
        loss = nn.CrossEntropyLoss()})
      print(pipe:costs({from = "model"}).F[1] > 0, pipe:lowered({tasks = false})[1])]] .. TAIL:gsub(
        "d.measured", "''")
    local dry, real = run(text, "--dry-run"), run(text)
    assert.equal(real, dry:sub(1, #real))
  end)
end)
