-- tests/spec/nn/norms_golden_spec.lua - norms, and the training of a ResNet block, agree with what
-- PyTorch computed (tests/golden/norms.py).

local gp = require "gpipe"
local golden = require "tests.golden.norms"

local nn = gp.nn

-- Makes the inputs of norms.py, which are functions of the position.
local function wave(shape, seed, scale, shift)
  local n, list = 1, {}
  for _, size in ipairs(shape) do n = n * size end
  for i = 0, n - 1 do
    list[i + 1] = math.sin(i * 12.9898 + seed * 78.233) * (scale or 1) + (shift or 0)
  end
  return gp.tensor(list):reshape(shape)
end

local function near(name, got, want, bound)
  local list = gp.tensor(want)
  local flat = got:reshape(got:numel()):narrow(1, 1, #want)
  local off = ((flat:to "f64" - list:to "f64"):abs() / (list:to "f64":abs() + 1)):max():item()
  assert(off <= bound, ("%s: off by %g, allowed %g"):format(name, off, bound))
end

local CASES = {
  { "BatchNorm1d", function() return nn.BatchNorm1d(5) end, { 7, 5 } },
  { "BatchNorm1d sequence", function() return nn.BatchNorm1d(3, { momentum = 0.3 }) end,
    { 2, 3, 7 } },
  { "BatchNorm2d", function() return nn.BatchNorm2d(3) end, { 2, 3, 4, 5 } },
  { "BatchNorm2d cumulative", function() return nn.BatchNorm2d(3, { momentum = false }) end,
    { 2, 3, 3, 3 } },
  { "BatchNorm2d plain",
    function() return nn.BatchNorm2d(3, { affine = false, track = false }) end, { 2, 3, 3, 3 } },
  { "InstanceNorm2d", function() return nn.InstanceNorm2d(3) end, { 2, 3, 3, 4 } },
  { "InstanceNorm2d tracked",
    function() return nn.InstanceNorm2d(3, { affine = true, track = true }) end, { 2, 3, 3, 3 } },
  { "GroupNorm", function() return nn.GroupNorm(2, 4) end, { 2, 4, 3, 3 } },
  { "GroupNorm rows", function() return nn.GroupNorm(2, 6) end, { 4, 6 } },
  { "RMSNorm", function() return nn.RMSNorm(7) end, { 3, 7 } },
}

-- PyTorch does not count the batches of instance norms, though it has the buffer.
local LEFT = { ["InstanceNorm2d tracked.num_batches_tracked"] = true }

local function check(case, want)
  local name, layer, shape = case[1], case[2](), case[3]
  for k, p in ipairs(layer:parameters()) do
    p.value:copy_(wave(p.value.shape, 6 + k, 0.5, k % 2 == 1 and 1 or 0))
  end
  local x, y
  for step = 1, 2 do
    x = wave(shape, step, 2, 3)
    x.requires_grad = true
    y = layer(x)
  end
  y:backward(wave(shape, 5))
  near(name .. ".y", y, want.y, 1e-5)
  near(name .. ".dx", x.grad, want.dx, 1e-5)
  for _, p in ipairs(layer:parameters()) do
    near(name .. ".d" .. p.name, p.grad, want["d" .. p.name], 1e-5)
  end
  for _, b in ipairs(layer:buffers()) do
    if not LEFT[name .. "." .. b.name] then
      near(name .. "." .. b.name, b.value, want[b.name], 1e-5)
    end
  end
  near(name .. ".evaluated", layer:eval()(wave(shape, 3, 2, 3)), want.evaluated, 1e-5)
end

describe("as in PyTorch", function()
  for number, case in ipairs(CASES) do
    it(case[1], function()
      local want = golden[number]
      assert.are.equal(case[1], want.name)
      check(case, want)
    end)
  end
end)

-- ---- a ResNet block --------------------------------------------------------------------------

local Block = nn.class("Block")

function Block:init(a, b)
  self.conv1 = nn.Conv2d(a, b, 3, { stride = 2, padding = 1, bias = false })
  self.bn1 = nn.BatchNorm2d(b)
  self.conv2 = nn.Conv2d(b, b, 3, { padding = 1, bias = false })
  self.bn2 = nn.BatchNorm2d(b)
  self.down = nn.Sequential { nn.Conv2d(a, b, 1, { stride = 2, bias = false }), nn.BatchNorm2d(b) }
end

function Block:forward(x)
  local y = self.bn2(self.conv2(self.bn1(self.conv1(x)):relu()))
  return (y + self.down(x)):relu()
end

-- PyTorch counts the layers of a Sequential from 0.
local function name_of(theirs)
  local first, rest = theirs:match "^(%d+)%.(.*)$"
  return ("%d.%s"):format(first + 1, (rest:gsub("down%.(%d)",
    function(at) return "down." .. at + 1 end)))
end

-- Gives the parameters, in PyTorch's order, the values of norms.py.
local function fill(model)
  for k, p in ipairs(model:parameters()) do
    local shape, fan = p.value.shape, 4
    if #shape > 1 then fan = p.value:numel() // shape[1] end
    p.value:copy_(wave(shape, 19 + k, 1 / math.sqrt(fan)))
  end
  for _, module in model:modules() do
    if module.running_var then
      module.weight:value():copy_(1)
      module.bias:value():copy_(0)
    end
  end
end

describe("a ResNet block trained for 20 steps of SGD", function()
  it("stays within 1e-4 of PyTorch's", function()
    local model = nn.Sequential { nn.Conv2d(3, 4, 3, { padding = 1 }), Block(4, 6),
      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3) }
    fill(model)
    local pipe <close> = gp.pipeline(model, { balance = { 1, 4 }, loss = nn.CrossEntropyLoss() })
    local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.05, momentum = 0.9 })
    local ids, losses = gp.tensor({ 0, 1, 2, 2, 1, 0 }, { dtype = "i64" }), {}
    for step = 1, 20 do
      losses[step] = pipe:step(wave({ 6, 3, 8, 8 }, 39 + step), ids)
      opt:step()
    end
    near("losses", gp.tensor(losses), golden.resnet.losses, 1e-4)
    local state = model:state_dict()
    for theirs, want in pairs(golden.resnet) do
      if theirs ~= "losses" then
        near(theirs, state[name_of(theirs)], want, 1e-4)
      end
    end
  end)
end)
