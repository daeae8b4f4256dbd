-- tests/spec/cuda/replica_streams_spec.lua - replicas of an asynchronous schedule on GPUs: in one
-- memory, in several, beside CPU devices, and over processes.

local child = dofile "tests/child.lua"
local gpu = require "tests.support.gpu"
local jobs = dofile "tests/support/jobs.lua"

local on_gpu = gpu.spec(it)

-- Two stages of each replica; prints losses, an evaluation and the sums of the state. With a third
-- word the model has batch norms, which normalise all replicas together ("sync") or each alone
-- ("norms"), or replicas update without a barrier ("free").
local SCRIPT = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(3)
local kind = arg[3] or ""
local function norm() return kind == "" and nn.Tanh() or nn.BatchNorm1d(32) end
local model = nn.Sequential {
  nn.Linear(8, 32), norm(), nn.Dropout(0.2), nn.Linear(32, 32), norm(), nn.Linear(32, 2),
}
local devices = {}
for name in arg[2]:gmatch "[^,]+" do devices[#devices + 1] = name end
local pipe <close> = gp.pipeline(model, {
  devices = devices, balance = {3, 3}, replicas = #devices // 2, chunks = math.tointeger(arg[1]),
  loss = nn.MSELoss(), schedule = kind == "free" and "1f1b" or "pipedream_2bw",
  sync_batch_norm = kind == "sync", barrier = kind ~= "free" and nil, sum_group = 1,
})
pipe:use(gp.optim.Adam(pipe:parameters(), { lr = 0.05 }))
local losses = {}
local function note(list)
  if type(list) == "number" then list = { list } end
  table.move(list, 1, #list, #losses + 1, losses)
end
for step = 1, 5 do
  note(pipe:step(gp.randn({ 16, 8 }, { seed = step }), gp.randn({ 16, 2 }, { seed = 50 + step })))
end
note(pipe:flush())
for _, loss in ipairs(losses) do print(("%.17g"):format(loss)) end
print(("%.17g"):format(pipe:evaluate(gp.ones { 16, 8 }, gp.ones { 16, 2 })))
local names, state = {}, pipe:state_dict()
for name in pairs(state) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do print(name, ("%.17g"):format(state[name]:to "cpu":sum():item())) end
if gp.ranks() == 1 then
  for _, device in ipairs(pipe:memory()) do assert(device.planned == device.measured, device.name) end
end
]]

local path = child.file(SCRIPT)

local function output(ranks, chunks, devices, kind)
  local words = { path, tostring(chunks), devices, kind }
  local out, err, code
  if ranks == 1 then
    out, err, code = child.run(words)
  else
    out, err, code = jobs.run("unix", ranks, words)
  end
  assert.equal(0, code, err)
  assert.truthy(#out > 200)
  return out
end

describe("replicas of a stream", function()
  teardown(function() os.remove(path) end)

  on_gpu("that share a GPU have the bits of one", function()
    assert.equal(output(1, 4, "cuda:0,cuda:0"),
      output(1, 2, "cuda:0,cuda:0/1of4,cuda:0/2of4,cuda:0/3of4"))
  end)

  on_gpu("over processes, each with memory of its own, have the bits of one", function()
    local one = output(1, 4, "cuda:0,cuda:0")
    assert.equal(one, output(2, 2, "0/cuda:0,0/cuda:0/1of4,1/cuda:0,1/cuda:0/1of4"))
    assert.equal(one, output(2, 2, "0/cuda:0,1/cuda:0,1/cuda:0/1of4,0/cuda:0/1of4"))
  end)

  local FAR, NEAR = "0/cuda:0,0/cuda:0/1of4,1/cuda:0,1/cuda:0/1of4",
    "cuda:0,cuda:0/1of4,cuda:0/2of4,cuda:0/3of4"

  for _, kind in ipairs { "norms", "free" } do
    on_gpu("have the bits of one: " .. kind, function()
      local one = output(1, 4, "cuda:0,cuda:0", kind)
      assert.equal(one, output(1, 2, NEAR, kind))
      assert.equal(one, output(2, 2, FAR, kind))
    end)
  end

  on_gpu("that normalise together have one result", function()
    local one = output(1, 2, NEAR, "sync")
    assert.equal(one, output(1, 2, "cuda:0,cuda:0,cuda:0,cuda:0", "sync"))
    assert.equal(one, output(2, 2, FAR, "sync"))
  end)

  on_gpu("on a CPU device and a GPU have the losses of one", function()
    local mixed = output(1, 2, "cuda:0,cuda:0/1of4,cpu:0,cpu:1")
    local one = output(1, 4, "cuda:0,cuda:0")
    local got = {}
    for number in mixed:gmatch "[^\n\t]+\n" do got[#got + 1] = tonumber(number) or 0 end
    local i = 0
    for number in one:gmatch "[^\n\t]+\n" do
      i = i + 1
      assert.near(tonumber(number) or 0, got[i], 1e-3)
    end
  end)
end)
