-- tests/spec/replicas/buckets_spec.lua - gradients in buckets, some of which are sent while the last
-- backward pass of their stage still runs: the same bits, and the same ends of a step that fails.

local child = dofile "tests/child.lua"
local gp = require "gpipe"

local nn = gp.nn

local SMALL = { GPIPE_BUCKET_BYTES = "64" } -- a bucket for each parameter, nearly

-- ---- what the plan says --------------------------------------------------------------------------

-- What task `name` of the first replica does in the plan of two.
local function task(name)
  local path = child.file [[
local gp = require "gpipe"
local nn = gp.nn
local layers = {}
for i = 1, 6 do layers[i] = nn.Linear(8, 8) end
local pipe <close> = gp.pipeline(nn.Sequential(layers), { balance = {3, 3}, replicas = 2, chunks = 2,
  loss = nn.MSELoss(), checkpoint = "never" })
pipe:step(gp.ones {8, 8}, gp.ones {8, 8})
pipe:lowered {tasks = true}]]
  local out = child.run({ path }, { environment = SMALL })
  os.remove(path)
  return out:match("tasks of device 0.-\n  " .. name .. ": ([^\n]*)")
end

local function sent_by(name)
  return select(2, task(name):gsub("the gradients of another copy of stage 0", ""))
end

describe("buckets of gradients", function()
  it("are published by the last backward pass of a stage, and SEND publishes what ends with it", function()
    assert.equal(0, sent_by "0B0")
    assert.equal(3, sent_by "0B1") -- the weight of the first layer, or its bias, comes last
    assert.matches("0SEND: writes the gradients of another copy of stage 0\n",
      "0SEND: " .. task "0B1.-0SEND" .. "\n")
  end)

  it("are one for small stages", function()
    local layers = {}
    for i = 1, 4 do layers[i] = nn.Linear(8, 8) end
    local dry = gp.dry_run(nn.Sequential(layers), { balance = { 2, 2 }, replicas = 2, chunks = 2,
      devices = { { rank = 0 }, { rank = 0 }, { rank = 1 }, { rank = 1 } }, loss = nn.MSELoss(),
      sample = { gp.ones { 8, 8 }, gp.ones { 8, 8 } } })
    local count = select(2, dry:transfers()[1]:gsub("the gradients of another copy", ""))
    assert.equal(1, count)
  end)

  -- ---- bits --------------------------------------------------------------------------------------

  local TRAIN = "tests/support/replicas_train.lua"

  local function output(ranks, words, more)
    local all = ranks > 1 and { "--ranks", tostring(ranks) } or {}
    all[#all + 1] = TRAIN
    for _, word in ipairs(words) do all[#all + 1] = word end
    local environment = { GPIPE_BUCKET_BYTES = SMALL.GPIPE_BUCKET_BYTES }
    for name, value in pairs(more or {}) do environment[name] = value end
    local out, err, code = child.run(all, { environment = environment })
    assert.equal(0, code, err)
    return out
  end

  local function lines_of(text)
    local lines = {}
    for line in text:gmatch "[^\n]+" do
      if not line:match "^gradient of" then lines[#lines + 1] = line end
    end
    return lines
  end

  it("leave the bits as they are, in one process and over ranks, by memory and by messages", function()
    local one = lines_of(output(1, { "1", "8", "2", "1f1b", "zb_h1" }))
    assert.truthy(#one > 100)
    for _, way in ipairs { { 1, "2", "4" }, { 1, "4", "2" }, { 2, "2", "4" },
      { 2, "2", "4", { GPIPE_RANKS_SHARED = "0" } }, { 2, "2", "4", { GPIPE_TRANSPORT = "tcp" } } } do
      assert.same(one, lines_of(output(way[1], { way[2], way[3], "2", "1f1b", "zb_h1" }, way[4])))
    end
  end)

  -- ---- steps that fail ---------------------------------------------------------------------------

  local SCRIPT = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(3)
local layers = {}
for i = 1, 6 do layers[i] = nn.Linear(8, 8) end
local pipe <close> = gp.pipeline(nn.Sequential(layers), {
  balance = {3, 3}, replicas = 2, chunks = 2, loss = nn.MSELoss(), watchdog = 20,
})
pipe:use(gp.optim.Adam(pipe:parameters(), {lr = 0.1}))
local x, y = gp.randn({8, 8}, {seed = 1}), gp.randn({8, 8}, {seed = 2})
local function bytes()
  local list = {}
  for name, value in pairs(pipe:state_dict()) do list[#list + 1] = name .. value:bytes() end
  table.sort(list)
  return table.concat(list)
end
local before = bytes()
local good, message = pcall(pipe.step, pipe, x, y)
print(good, good and pipe.stats.skipped or message:match "[^\n]*$")
print("unchanged", before == bytes())]]

  local function fault(text, ranks)
    local path = child.file(SCRIPT)
    local words = ranks > 1 and { "--ranks", tostring(ranks), path } or { path }
    local out, err, code = child.run(words,
      { environment = { GPIPE_FAULT = text, GPIPE_BUCKET_BYTES = "64" } })
    os.remove(path)
    assert.equal(0, code, err)
    return out
  end

  for _, ranks in ipairs { 1, 2 } do
    it(("are sent by a pass that fails, so that no replica hangs (%d ranks)"):format(ranks), function()
      local out = fault("device=2,step=0,op=B,micro=3,action=fail", ranks)
      assert.matches("false\t.*GPIPE_FAULT asked for this failure", out)
      assert.matches("unchanged\ttrue", out)
    end)

    it(("with NaN leave the parameters as they are (%d ranks)"):format(ranks), function()
      local out = fault("device=2,step=0,op=B,micro=3,action=nan", ranks)
      assert.matches("true\t1\nunchanged\ttrue", out)
    end)
  end
end)
