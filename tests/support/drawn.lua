-- tests/support/drawn.lua - models that draw random numbers in every way, on any device.

local gp = require "gpipe"
local training = require "tests.support.training"

local nn = gp.nn

local drawn = {}

-- ---- attention --------------------------------------------------------------------------------

local T = 8

-- Attention with dropout in windows: a row of the batch has `windows` of them, or (0) all rows have
-- three. Scores are equal and the values are the identity, so the output shows what is kept. Each
-- row returns what all its windows keep.
local Windows = nn.class "Windows"
function Windows:init(windows) self.windows, self.identity = windows, gp.zeros { T, T } end
function Windows:forward(x)
  local rows = x.shape[1]
  local heads = self.windows > 0 and rows * self.windows or 3
  local q = gp.zeros { heads, 2, T, T } + x:sum() * 0
  local v = gp.where(gp.arange(1, T):reshape({ T, 1 }):eq(gp.arange(1, T)), 1.0, 0.0) + q
  local y = gp.attention(q, q, v, { dropout = 0.5 })
  if self.windows > 0 then return y:reshape { rows, -1 } end
  return gp.zeros { rows, 1 } + y:reshape { 1, -1 }
end

-- Returns what every head keeps in three micro-batches of two rows, as text.
local function kept_heads(windows, device)
  local options = { chunks = 3, devices = { device }, seed = 4 }
  local pipe <close> = gp.pipeline(nn.Sequential { Windows(windows) }, options)
  local out, list = pipe:forward(gp.ones { 6, 1 }):to("cpu"), {}
  for row = 1, 6, windows > 0 and 1 or 2 do
    local heads = out[row]:reshape { -1, T * T }
    for i = 1, heads.shape[1] do
      local bits = {}
      for j, value in ipairs(heads[i]:totable()) do bits[j] = value == 0 and "." or "x" end
      list[#list + 1] = table.concat(bits)
    end
  end
  return list
end

--- Check that no two heads of any micro-batch drop the same elements.
function drawn.check_apart(device)
  for windows = 0, 3 do
    local seen, heads = {}, kept_heads(windows, device)
    for i, bits in ipairs(heads) do
      assert(not seen[bits], ("%d windows a row: heads %d and %s of %d drop the same"):format(
        windows, i, seen[bits], #heads))
      seen[bits] = i
    end
  end
end

-- Attention within windows, and across the batch.
local Folded = nn.class "Folded"
function Folded:init(across)
  self.across, self.project = across, nn.Linear(T, T)
end
function Folded:forward(x)
  local n, rows = self.project(x), x.shape[1]
  local q = n:reshape(self.across and { 1, 1, rows, T } or { rows * 2, 1, 2, T // 4 })
  return x + gp.attention(q, q, q, { dropout = 0.4 }):reshape { rows, T }
end

--- Return a training whose attention has dropout within rows and across them.
function drawn.folded()
  return {
    model = function()
      gp.seed(3)
      return nn.Sequential { nn.Linear(5, T), Folded(), Folded(true), nn.Linear(T, 3) }
    end,
    x = gp.randn({ 11, 5 }, { seed = 1 }), y = gp.zeros({ 11 }, { dtype = "i64" }),
    loss = nn.CrossEntropyLoss(),
  }
end

--- Return pipelines of every kind for models of `layers` layers, all stages on one device.
function drawn.pipelines(layers, device)
  local cuts = { { layers }, { 2, layers - 2 }, { 1, 1, layers - 2 } }
  local list = training.combinations { balance = cuts, chunks = 4 }
  for _, options in ipairs(list) do
    for s in ipairs(options.devices) do options.devices[s] = device end
  end
  return list
end

-- ---- rand and randn ---------------------------------------------------------------------------

-- Adds and multiplies by random numbers; the gradient reads the factors again.
local Noisy = nn.class "Noisy"
function Noisy:init(n) self.w = nn.Parameter({ n }, nn.init.ones()) end
function Noisy:forward(x)
  local shape = x.shape
  return x * self.w * gp.rand(shape) + gp.randn(shape) * 0.1 + gp.randn(shape[2])
end

--- Return a training whose forward draws, in every layer but the last.
function drawn.noisy()
  return {
    model = function()
      gp.seed(3)
      return nn.Sequential { nn.Linear(5, 7), Noisy(7), nn.Tanh(), Noisy(7), nn.Linear(7, 3) }
    end,
    x = gp.randn({ 11, 5 }, { seed = 1 }), y = gp.zeros({ 11 }, { dtype = "i64" }),
    loss = nn.CrossEntropyLoss(),
    steps = 3,
  }
end

-- Returns what forward draws instead of its input: rows [n, columns].
local Draw = nn.class "Draw"
function Draw:init(draw) self.draw = draw end
function Draw:forward(x) return x * 0 + self.draw(x.shape) end

--- Return what draw(shape) gives for a batch of `rows` rows in each of `steps` training passes.
---@param draw fun(shape: integer[]): gpipe.Tensor
---@param o {rows: integer, columns: integer, steps?: integer, dtype?: string}
---@param options table of gp.pipeline
---@return gpipe.Tensor[]
function drawn.values(draw, o, options)
  options.seed = options.seed or 6
  local pipe <close> = gp.pipeline(nn.Sequential { Draw(draw) }, options)
  local list = {}
  for step = 1, o.steps or 1 do
    local x = gp.zeros({ o.rows, o.columns }, { dtype = o.dtype or "f32" })
    list[step] = pipe:forward(x):to("cpu"):clone()
    pipe:backward(x)
  end
  return list
end

return drawn
