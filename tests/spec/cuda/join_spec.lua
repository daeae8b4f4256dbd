-- tests/spec/cuda/join_spec.lua - where stages join their gradients, devices wait for each other by
-- events (runtime/engine/update/join.c), and an error on one device still keeps all devices from
-- updating.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local nn, optim = gp.nn, gp.optim

local on_gpu = gpu.spec(it)

-- ---- bits --------------------------------------------------------------------------------------

-- Prints the losses of stages that share a weight, and of two copies of them.
local SCRIPT = [[
  local gp = require "gpipe"
  local models = require "tests.support.models"
  local x, y = models.ids(8, 6), models.ids(8, 6)
  local CASES = {
    { { 3, 4 }, "gpipe", { clip_norm = 0.5 } }, { { 3, 4 }, "1f1b" }, { { 3, 4 }, "chimera", {} },
    { { 7 }, "gpipe", {} },
  }
  for _, case in ipairs(CASES) do
    local model = models.gpt()()
    model[7].weight = model[1].weight
    local pipe <close> = gp.pipeline(model, { balance = case[1], schedule = case[2], chunks = 4,
      devices = case[1][2] and { "cuda:0", "cuda:1" } or { "cuda:0" },
      loss = gp.nn.CrossEntropyLoss() })
    local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
    if case[3] then pipe:use(opt, case[3]) end
    local text = {}
    for i = 1, 4 do
      text[i] = ("%a"):format(pipe:step(x, y))
      if not case[3] then opt:step() end
    end
    print(table.concat(text, " "))
  end
]]

local function losses(environment)
  local out, err, code = child.run({ "-" }, { input = SCRIPT, environment = environment })
  assert.are.equal(0, code, out .. err)
  return out
end

on_gpu("waits by events give the bits of waiting hosts, on late streams too", function()
  local want = losses { GPIPE_JOIN_EVENTS = "0" }
  assert.are.equal(want, losses {})
  assert.are.equal(want, losses { GPIPE_TEST_LAZY = "1" })
end, 2)

-- ---- faults ------------------------------------------------------------------------------------

on_gpu("an id out of range on one device keeps all of them from updating", function()
  local x, y = models.ids(8, 6), models.ids(8, 6)
  local function pipeline()
    local model = models.gpt()()
    model[7].weight = model[1].weight
    local pipe = gp.pipeline(model, { balance = { 3, 4 }, chunks = 4,
      devices = { "cuda:0", "cuda:1" }, loss = nn.CrossEntropyLoss() })
    return pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
  end
  local pipe <close> = pipeline()
  local other <close> = pipeline()
  local wrong = x:clone()
  wrong[3][2] = 99
  for _ = 1, 3 do
    assert.are.equal(other:step(x, y), pipe:step(x, y))
    local before = pipe:state_dict()
    local ok, problem = pcall(pipe.step, pipe, wrong, y)
    assert(not ok and tostring(problem):find("99", 1, true), "the id is not named")
    for name, value in pairs(pipe:state_dict()) do assert(gp.equal(value, before[name]), name) end
  end
end, 2)
