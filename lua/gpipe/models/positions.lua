-- lua/gpipe/models/positions.lua - turns ids into vectors that encode their positions.

local check = require "gpipe.nn.check"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"

-- Source: Vaswani et al. 2017, section 3.5: sines in even columns, cosines in odd ones.
local function waves(context, width)
  local values = {}
  for position = 0, context - 1 do
    for i = 0, width - 1 do
      local angle = position * 10000 ^ (-(i - i % 2) / width)
      values[#values + 1] = i % 2 == 0 and math.sin(angle) or math.cos(angle)
    end
  end
  return require("gpipe.core").tensor(values, "f32"):reshape { context, width }
end

---@class gpipe.models.Positions: nn.Module
local Positions = nn.class("Positions")

--- Ids times sqrt(width), as the paper scales them, plus waves (a buffer) or learned vectors.
---@param o {vocabulary: integer, width: integer, context: integer, dropout: number, learned: boolean}
---@param table_of? gpipe.Tensor a table to share
function Positions:init(o, table_of)
  self.context, self.scale = o.context, math.sqrt(o.width)
  self.embedding = nn.Embedding(o.vocabulary, o.width,
    { init = nn.init.normal(0, 1 / math.sqrt(o.width)) })
  if table_of then self.embedding.weight = table_of end
  if o.learned then
    self.places = nn.Parameter({ o.context, o.width }, nn.init.normal(0, 0.02))
  else
    self.places = nn.Buffer({ o.context, o.width }, waves(o.context, o.width))
  end
  self.dropout = nn.Dropout(o.dropout)
end

-- ids [B, T] -> [B, T, C]
function Positions:forward(ids)
  local shape = ids.shape
  if #shape ~= 2 or shape[2] > self.context then
    errors.raise_as("shape", "the ids are %s, expected ?xT with T from 1 to %d (option 'context')",
      check.shape_text(shape), self.context)
  end
  return self.dropout(self.embedding(ids) * self.scale + self.places:narrow(1, 1, shape[2]))
end

return Positions
