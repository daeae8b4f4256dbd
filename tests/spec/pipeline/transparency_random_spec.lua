-- tests/spec/pipeline/transparency_random_spec.lua - random models in random pipelines give the
-- bits of one stage.
--
-- They cover combinations that no other spec names: layers that mix rows, permute dimensions,
-- change dtypes, share weights, write buffers and read values of earlier layers, in any order. A
-- failure names its seed: run it again with GPIPE_FUZZ=seed, or GPIPE_FUZZ=first-last for many.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local training = require "tests.support.training"
local nn, schedule = gp.nn, gp.schedule

local W = 6 -- width of every layer

-- A generator of the spec's own, because tests must not depend on Lua's.
local state
local function draw(below)
  state = (state * 1103515245 + 12345) % (1 << 31)
  return (state >> 8) % below + 1
end
local function choice(list) return list[draw(#list)] end

-- ---- layers ------------------------------------------------------------------------------------

local function layer(forward, init)
  local class = nn.class("Random")
  class.forward, class.init = forward, init
  return class
end

local Gate = layer(function(self, x) return x * (x * self.w):sigmoid() + self.w:exp() * 0.1 end,
  function(self) self.w = nn.Parameter({ W }, nn.init.normal(0, 0.5)) end)
local Mean = layer(function(self, x)
  if self:is_training() then self.mean:copy_(self.mean * 0.9 + x:mean(1) * 0.1) end
  return x - self.mean
end, function(self) self.mean = nn.Buffer({ W }) end)
local Shared = layer(function(self, x) return x:matmul(self.w) * 0.5 end,
  function(self, w) self.w = w end)
local Pop = layer(function(self, x) return x + self.from.kept * x:sigmoid() end,
  function(self, from) self.from = from end)

local simple = {
  function() return nn.Tanh() end, function() return nn.ReLU() end,
  function() return nn.GELU(choice { "erf",
    "tanh" }) end,
  function() return nn.SiLU() end, function() return nn.Sigmoid() end,
  function() return nn.Softmax(-1) end,
  function() return nn.Dropout(0.3) end, function() return nn.LayerNorm(W) end,
  function() return nn.Linear(W, W) end,
  function() return nn.Linear(W, W, { bias = false }) end, function() return Gate() end,
  function() return Mean() end,
  layer(function(_, x) return x:reshape { -1, 2, 3 }:transpose(2, 3):reshape { -1, W } end),
  layer(function(_, x) return gp.concat({ x:narrow(2, 3, 4), x:narrow(2, 1, 2) }, 2) end),
  layer(function(_, x) return x - x:mean(2, true) end),
  layer(function(_, x) return gp.where(x:gt(0), x, x * 0.1) end),
  layer(function(_, x) return x:to("f64"):tanh():to("f32") end),
  layer(function(_, x) return x * x:max(2, true) end),
  layer(function(_, x) return x + x:argmax(2):to("f32"):reshape { -1, 1 } * 0.01 end),
  layer(function(_, x) return x:transpose(1, 2) * 2 end), -- a later layer must transpose back
  layer(function(_, x) return x end),
}
local TURN = 20 -- the index of the transposing layer above

local function make_layers(count, shared)
  local layers, stash = {}, nil
  for i = 1, count do
    local kind = draw(#simple + 3)
    if kind == TURN then
      local turn, back = simple[TURN](), layer(function(_, x) return x:transpose(1, 2) end)()
      layers[#layers + 1] = turn
      layers[#layers + 1] = back
    elseif kind <= #simple then
      layers[#layers + 1] = simple[kind]()
    elseif kind == #simple + 1 then
      layers[#layers + 1] = Shared(shared)
    elseif kind == #simple + 2 or not stash then
      stash = layer(function(self, x)
        self.kept = x
        return x
      end)()
      layers[#layers + 1] = stash
    else
      layers[#layers + 1] = Pop(stash)
    end
    if draw(6) == 1 and i < count then
      layers[#layers + 1] = nn.Residual(nn.Sequential { simple[draw(TURN - 1)](), nn.Linear(W, W) })
    end
  end
  return layers
end

local function make_model(seed)
  state = seed
  gp.seed(seed)
  local shared = nn.Parameter({ W, W }, nn.init.normal(0, 0.5))
  local layers = make_layers(3 + draw(8), shared)
  table.insert(layers, choice { 1, #layers + 1 }, nn.Linear(W, W))
  local model = nn.Sequential(layers)
  local names = model:parameters()
  if draw(4) == 1 then model:freeze("^" .. choice(names).name:match "^%d+" .. "%.") end
  return model
end

-- ---- pipelines ---------------------------------------------------------------------------------

-- Backward passes run last first, with I and W separate.
schedule.define("random_apart", function(p, m)
  local rows, placement = {}, {}
  for r = 0, p - 1 do
    local row = {}
    for i = 0, m - 1 do row[#row + 1] = { op = "F", stage = r, micro = i } end
    for i = m - 1, 0, -1 do
      row[#row + 1] = { op = "I", stage = r, micro = i }
      row[#row + 1] = { op = "W", stage = r, micro = i }
    end
    rows[r + 1], placement[r] = row, r
  end
  return { rows = rows, placement = placement }
end)

local function cut(layers)
  local balance, left = {}, layers
  while left > 0 and #balance < 5 do
    balance[#balance + 1] = draw(left)
    left = left - balance[#balance]
  end
  balance[#balance] = balance[#balance] + left
  return balance
end

local function random_options(layers, chunks)
  local balance = cut(layers)
  return {
    balance = balance, chunks = chunks, devices = training.devices(#balance, draw(3)),
    schedule = choice { "naive", "gpipe", "1f1b", { "1f1b", warmup = 2 }, "random_apart" },
    checkpoint = choice { "always", "except_last", "never" }, finite = draw(4) == 1,
  }
end

local function check(seed)
  local probe = make_model(seed)
  local trainable = false
  for _, p in ipairs(probe:parameters()) do trainable = trainable or not p.param:is_frozen() end
  local rows, chunks = draw(9), draw(5)
  local setup = {
    model = function() return make_model(seed) end, frozen = not trainable, steps = 2,
    loss = nn.MSELoss(),
    x = gp.randn({ rows, W }, { seed = seed }), y = gp.randn({ rows, W }, { seed = seed + 1 }),
  }
  local list = { { balance = { #probe }, chunks = chunks, schedule = "naive",
    checkpoint = "never" } }
  state = seed + 77
  for i = 2, 4 do list[i] = random_options(#probe, chunks) end
  local good, message = pcall(training.check_same, setup, list)
  if not good then error(("seed %d: %s"):format(seed, message), 0) end
end

describe("random models in random pipelines", function()
  it("give the bits of one stage", function()
    local first, last = (os.getenv "GPIPE_FUZZ" or "1-60"):match "^(%d+)%-?(%d*)$"
    for seed = tonumber(first), tonumber(last) or tonumber(first) do check(seed) end
  end)
end)
