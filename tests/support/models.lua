-- tests/support/models.lua - the models that specs train in pipelines, and the batches for them.
-- luacheck: ignore 212/self

local gp = require "gpipe"
local training = require "tests.support.training"
local nn = gp.nn

local models = {}

local Gate = nn.class("Gate")
function Gate:init(n, dtype)
  self.w = nn.Parameter({ n }, nn.init.normal(0, 0.5), { dtype = dtype })
end
function Gate:forward(x) return x * (x * self.w):sigmoid() end

local C, V = 16, 11 -- width, vocabulary
models.C, models.V = C, V

--- Make embedding, a class of the user's, dropout, residuals, attention: seven layers. o.dropout:
--- that of attention.
function models.gpt(dtype, o)
  local d = { dtype = dtype }
  return function()
    gp.seed(7)
    local attention = nn.CausalSelfAttention(C, 2,
      { dropout = o and o.dropout or 0.1, dtype = dtype })
    return nn.Sequential {
      nn.Embedding(V, C, d), Gate(C, dtype), nn.Dropout(0.2),
      nn.Residual(nn.Sequential { nn.LayerNorm(C, d), attention }),
      nn.Residual(nn.Sequential { nn.LayerNorm(C, d), nn.Linear(C, 2 * C, d), nn.GELU("tanh"),
        nn.Linear(2 * C, C,
        d) }),
      nn.LayerNorm(C, d), nn.Linear(C, V, d),
    }
  end
end

--- Make ids from 0 to V - 1.
function models.ids(rows, columns)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    for t = 1, columns do list[i][t] = (i * 5 + t * t) % V end
  end
  return gp.tensor(list, { dtype = "i64" })
end

--- Return a training of gpt on seven rows; fields change it.
function models.setup(fields)
  local made = {
    model = models.gpt(), x = models.ids(7, 6), y = models.ids(7, 6), loss = nn.CrossEntropyLoss(),
  }
  for key, value in pairs(fields or {}) do made[key] = value end
  return made
end

--- Cuts of gpt's seven layers.
models.CUTS = { { 7 }, { 3, 4 }, { 2, 3, 2 }, { 1, 2, 2, 2 } }

--- Draw normal numbers [n, width].
function models.rows_of(n, width, dtype)
  return gp.randn({ n, width }, { seed = n + width, dtype = dtype })
end

--- Make a trunk of small layers with other layers in the middle.
function models.with(...)
  local middle = { ... }
  return function()
    gp.seed(11)
    local layers = { nn.Linear(6, 8), nn.Tanh() }
    for _, make in ipairs(middle) do layers[#layers + 1] = make() end
    layers[#layers + 1] = nn.Linear(8, 3)
    return nn.Sequential(layers)
  end
end

-- Makes a layer without parameters, or with one per channel of two.
local function layer(name, forward, scaled)
  local Layer = nn.class(name)
  if scaled then
    function Layer:init() self.scale = nn.Parameter({ 2 }, nn.init.normal(1, 0.5)) end
  end
  Layer.forward = forward
  return Layer
end

--- Make layers of width 8 that permute dimensions around chains of elementwise ops: within a layer
--- and across layers, with readers that need rows, with values that are broadcast, with dropout.
function models.permuting()
  local Turn = layer("Turn", function(_, x)
    return ((x:transpose(1, 2):relu() * 2):gelu() + 1):transpose(1, 2)
  end)
  local Images = layer("Images", function(self, x)
    local image = x:reshape(x.shape[1], 2, 2, 2):permute(1, 3, 4, 2)
    image = ((image * self.scale):silu() + image:tanh()):neg()
    return image:permute(1, 4, 2, 3):reshape(x.shape[1], 8)
  end, true)
  local There = layer("There", function(_, x) return x:transpose(1, 2):tanh():transpose(1, 2) end)
  local Across = layer("Across", function(_, x) return x:transpose(1, 2) end)
  local Chain = layer("Chain", function(_, x) return (x:gelu() * x:sigmoid() + 0.5):sqrt() end)
  local Rows = layer("Rows", function(_, x)
    local turned = x:transpose(1, 2):relu()
    return turned:transpose(1, 2) * 0.5 + (turned:exp():sum(2, true) * turned):transpose(1, 2)
  end)
  local Drops = layer("Drops", function(self, x)
    return (self.drop(x:transpose(1, 2):relu()) * 3):transpose(1, 2)
  end)
  function Drops:init() self.drop = nn.Dropout(0.3) end
  return models.with(Turn, Images, There, Across, Chain, Across, Rows,
    function() return nn.Linear(8, 8) end, Drops)
end

--- Return a training of such a model, four steps on seven rows.
function models.regression(fields)
  local made = { x = models.rows_of(7, 6), y = models.rows_of(7, 3), loss = nn.MSELoss(),
    steps = 4 }
  for key, value in pairs(fields) do made[key] = value end
  return made
end

-- Returns cuts of n layers into 1 to 4 stages, each at a few places.
local function cuts_of(n)
  local cuts = { { n } }
  for stages = 2, math.min(4, n) do
    for _, first in ipairs { 1, n - stages + 1 } do
      local cut = { first }
      for i = 2, stages - 1 do cut[i] = 1 end
      cut[stages] = n - first - (stages - 2)
      cuts[#cuts + 1] = cut
    end
  end
  return cuts
end

--- Check that all cuts, gpipe and 1f1b, and all checkpoint modes give the same bits. Returns the
--- run of the whole model.
function models.check_everywhere(made, chunks)
  return training.check_same(made, training.combinations {
    balance = cuts_of(#made.model()), schedule = { "gpipe", "1f1b" }, chunks = chunks,
  })
end

--- Return a small classifier with dropout, a batch for it, and a function that makes pipelines of
--- it.
function models.classifier()
  local function model()
    gp.seed(1)
    return nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3),
      { "head", nn.Linear(8, 3) } }
  end
  local function pipe_of(options, of)
    local merged = { balance = { 2, 2 }, chunks = 3, loss = nn.CrossEntropyLoss(), seed = 2 }
    for key, value in pairs(options or {}) do merged[key] = value end
    return gp.pipeline(of or model(), merged)
  end
  local x = gp.randn({ 7, 4 }, { seed = 1 })
  return model, pipe_of, x, gp.tensor({ 0, 1, 2, 0, 1, 2, 2 }, { dtype = "i64" })
end

-- Returns scores, twice as many rows of two halves, and the best class of each row.
local Heads = nn.class("Heads")
function Heads:init() self.score, self.half = nn.Linear(6, 3), nn.Linear(6, 4) end
function Heads:forward(v)
  local scores = self.score(v)
  return scores, self.half(v):reshape { -1, 2 }, scores:argmax(2)
end

--- Return a model of several outputs, rows for it, and a gradient for each output.
function models.heads()
  local function model(dropout)
    gp.seed(3)
    return nn.Sequential { nn.Linear(4, 6), nn.Tanh(), nn.Dropout(dropout or 0.25), Heads() }
  end
  local gradients = { gp.randn({ 7, 3 }, { seed = 7 }), gp.randn({ 14, 2 }, { seed = 8 }),
    gp.zeros({ 7 }, { dtype = "i64" }) }
  return model, gp.randn({ 7, 4 }, { seed = 1 }), gradients
end

return models
