-- tests/spec/cuda/checkpoint_spec.lua - checkpoints on GPUs: a run goes on with the same bits, and
-- one kind of device loads what another kind saved.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local nn, optim = gp.nn, gp.optim

local on_gpu = gpu.spec(it)
local x, y = gp.randn({ 16, 6 }, { seed = 1 }), gp.randn({ 16, 3 }, { seed = 2 })

local folder
before_each(function()
  folder = os.tmpname()
  os.remove(folder)
end)
after_each(function() os.execute("rm -rf " .. folder) end)

local function make(devices, balance)
  gp.seed(5)
  local model = nn.Sequential { nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 3) }
  local pipe = gp.pipeline(model, { loss = nn.MSELoss(), balance = balance, devices = devices,
    chunks = 2 })
  return pipe, optim.Adam(pipe:parameters(), { lr = 0.02 })
end

local function train(pipe, opt, steps)
  for _ = 1, steps do
    pipe:step(x, y)
    opt:step()
  end
end

local function bytes_of(pipe, opt)
  local all = {}
  for name, value in pairs(pipe:state_dict()) do all[name] = value:to("cpu"):bytes() end
  for name, value in pairs(opt:state_dict()) do all["opt." .. name] = value:to("cpu"):bytes() end
  return all
end

local GPU = { { "cuda:0" }, { 3 } }

on_gpu("a checkpoint on a GPU goes on with the same bits, also over another cut", function()
  local whole, opt = make(table.unpack(GPU))
  train(whole, opt, 4)
  local wanted = bytes_of(whole, opt)
  whole:close()
  local first, one = make(table.unpack(GPU))
  train(first, one, 2)
  assert(gp.checkpoint.save(folder, { pipe = first, opt = one, background = true }):finish())
  first:close()
  for _, cut in ipairs { GPU, { { "cuda:0", "cuda:0" }, { 1, 2 } } } do
    local pipe, two = make(table.unpack(cut))
    assert(gp.checkpoint.load(folder, { pipe = pipe, opt = two }))
    train(pipe, two, 2)
    assert.same(wanted, bytes_of(pipe, two))
    pipe:close()
  end
end)

on_gpu("one kind of device loads what another kind saved", function()
  for _, kinds in ipairs { { GPU, { { "cpu:0" }, { 3 } } }, { { { "cpu:0" }, { 3 } }, GPU } } do
    local pipe, opt = make(table.unpack(kinds[1]))
    train(pipe, opt, 2)
    local saved = bytes_of(pipe, opt)
    assert(gp.checkpoint.save(folder, { pipe = pipe, opt = opt }))
    pipe:close()
    local other, two = make(table.unpack(kinds[2]))
    assert(gp.checkpoint.load(folder, { pipe = other, opt = two }))
    assert.same(saved, bytes_of(other, two))
    train(other, two, 1)
    other:close()
  end
end)
