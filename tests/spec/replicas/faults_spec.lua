-- tests/spec/replicas/faults_spec.lua - a replica that fails, or makes values that are not finite,
-- leaves all replicas as they were.

local child = dofile "tests/child.lua"

local SCRIPT = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
gp.seed(3)
local model = nn.Sequential {nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 2)}
local pipe <close> = gp.pipeline(model, {
  balance = {2, 2}, replicas = 2, chunks = 2, loss = nn.MSELoss(),
})
local opt = optim.Adam(pipe:parameters(), {lr = 0.1})
pipe:use(opt)
local x, y = gp.randn({8, 4}, {seed = 1}), gp.randn({8, 2}, {seed = 2})
local function bytes()
  local list = {}
  for name, value in pairs(pipe:state_dict()) do list[#list + 1] = name .. value:bytes() end
  table.sort(list)
  return table.concat(list)
end
local before = bytes()
local good, message = pcall(pipe.step, pipe, x, y)
print(good, good and pipe.stats.skipped or message:match "[^\n]*$")
print("unchanged", before == bytes())
-- a step that failed is not counted, so that a fault of step 0 would strike again
if good then print("goes on", pipe:step(x, y) > 0, before ~= bytes()) end
]]

-- What a child with this fault prints, on so many ranks.
local function run(fault, ranks)
  local path = child.file(SCRIPT)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  words[#words + 1] = path
  local out, err, code = child.run(words, { environment = { GPIPE_FAULT = fault } })
  os.remove(path)
  assert.equal(0, code, err)
  return out
end

describe("in a pipeline of two replicas", function()
  for _, ranks in ipairs { 1, 2 } do
    it(("an action that fails on the second one leaves both as they were (%d ranks)"):format(ranks),
      function()
        local out = run("device=2,step=0,op=B,micro=3,action=fail", ranks)
        assert.matches("false\t.*GPIPE_FAULT asked for this failure", out)
        assert.matches("unchanged\ttrue", out)
      end)

    it(("gradients that are not finite on one skip the update of both (%d ranks)"):format(ranks),
      function()
        local out = run("device=3,step=0,op=B,micro=2,action=nan", ranks)
        assert.matches("true\t1\nunchanged\ttrue\ngoes on\ttrue\ttrue", out)
      end)
  end
end)

-- ---- streams -------------------------------------------------------------------------------------

local STREAM = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
gp.seed(3)
local model = nn.Sequential {nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 2)}
local replicas, chunks, finite = tonumber(arg[1]), tonumber(arg[2]), arg[3]
if finite == "true" then finite = true end
local pipe <close> = gp.pipeline(model, {
  balance = {2, 2}, replicas = replicas, chunks = chunks, loss = nn.MSELoss(),
  schedule = "pipedream_2bw", finite = finite, watchdog = 4,
})
local opt = optim.Adam(pipe:parameters(), {lr = 0.1})
pipe:use(opt)
local told = 0
for step = 1, 6 do
  local good, message = pcall(pipe.step, pipe, gp.randn({8, 4}, {seed = step}), gp.ones {8, 2})
  told = told + (good and #message or 0)
  if not good then print("failed", message) break end
end
local good, message = pcall(pipe.flush, pipe)
if not good then print("failed", message) end
print("told", told + (good and #message or 0), "skipped", pipe.stats.skipped)
local list = {}
for name, value in pairs(pipe:state_dict()) do
  list[#list + 1] = name .. value:bytes():gsub(".", function(c) return ("%02x"):format(c:byte()) end)
end
table.sort(list)
print(table.concat(list, "\n"))
]]

local function stream(fault, ranks, replicas, chunks, finite)
  local path = child.file(STREAM)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  for _, word in ipairs { path, tostring(replicas), tostring(chunks), finite } do
    words[#words + 1] = word
  end
  local out, err, code = child.run(words, { environment = { GPIPE_FAULT = fault } })
  os.remove(path)
  assert.equal(0, code, err)
  return out, err
end

describe("in a stream that replicas share", function()
  it("gradients that are not finite skip what one replica skips, on all of them", function()
    -- the last micro-batch of a mini-batch, on the last stage: that of device 1, or 3 of four
    local one = stream("device=1,step=2,op=B,micro=3,action=nan", 1, 1, 4)
    assert.matches("told\t6\tskipped\t1\n", one, 1, true)
    for ranks = 1, 2 do
      assert.equal(one, stream("device=3,step=2,op=B,micro=3,action=nan", ranks, 2, 2))
    end
    local first = stream("device=0,step=2,op=B,micro=0,action=nan", 1, 1, 4)
    assert.truthy(first ~= one) -- the last stage has updated
    assert.equal(first, stream("device=0,step=2,op=B,micro=0,action=nan", 2, 2, 2))
  end)

  it("an action that fails ends it with its error", function()
    for ranks = 1, 2 do
      local out = stream("device=2,step=2,op=B,micro=3,action=fail", ranks, 2, 2)
      assert.matches("failed\t.*GPIPE_FAULT asked for this failure", out)
    end
  end)

  it("a value that is not finite ends it where finite = true names the layer", function()
    local out = stream("device=2,step=2,op=F,micro=3,action=nan", 1, 2, 2, "true")
    assert.matches("failed\t.*2 %(Tanh%)", out)
  end)

  it("a device that hangs is named", function()
    local out = stream("device=1,step=2,op=B,micro=0,action=hang", 1, 2, 2)
    assert.matches("failed\t.*device 1 %(cpu:1%) is in 1B8", out)
  end)

  it("a device whose gradients are not added yet waits for that, and says so", function()
    local _, err = stream("device=1,step=2,op=REDUCE_GRAD,action=hang", 1, 2, 2, "ignore")
    assert.matches("device 3 (cpu:3): waiting for 4", err, 1, true)
    assert.matches("1B14@2 needs others to be through with what it handed out before (the gradients "
      .. "of another copy)", err, 1, true)
  end)
end)
