-- scripts/bench/model.lua - the byte GPT that benchmarks train: that of the peers, or of the
-- quickstart.

local gp = require "gpipe"
local nn = gp.nn

local model = {}

local Embed = nn.class("Embed") -- which byte, and where it stands

function Embed:init(context, width)
  self.byte = nn.Embedding(256, width)
  self.place = nn.Embedding(context, width)
  self.ids = gp.arange(0, context - 1, 1, { dtype = "i64" })
end

function Embed:forward(ids) return self.byte(ids) + self.place(self.ids) end

local function block(width, heads)
  return nn.Sequential {
    nn.Residual(nn.Sequential { nn.LayerNorm(width), nn.CausalSelfAttention(width, heads) }),
    nn.Residual(nn.Sequential {
      nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU("tanh"),
      nn.Linear(4 * width, width),
    }),
  }
end

--- Sizes of examples/quickstart.lua.
model.quickstart = { layers = 4, width = 128, heads = 4, context = 128, batch = 32 }

---@param size {layers: integer, width: integer, heads: integer, context: integer}
---@return nn.Sequential
function model.gpt(size)
  local layers = { Embed(size.context, size.width) }
  for _ = 1, size.layers do layers[#layers + 1] = block(size.width, size.heads) end
  layers[#layers + 1] = nn.LayerNorm(size.width)
  layers[#layers + 1] = nn.Linear(size.width, 256, { bias = false })
  return nn.Sequential(layers)
end

--- A batch of bytes drawn at random, for inputs and targets.
---@param size {batch: integer, context: integer}
---@return gpipe.Tensor
function model.bytes(size) return (gp.rand({ size.batch, size.context }) * 256):to("i64") end

--- CPU devices of so many threads each.
---@param count integer
---@param threads integer
---@return table[]
function model.devices(count, threads)
  local list = {}
  for i = 1, count do list[i] = { "cpu:" .. i - 1, threads = threads } end
  return list
end

return model
