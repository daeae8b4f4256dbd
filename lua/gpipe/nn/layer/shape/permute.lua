-- lua/gpipe/nn/layer/shape/permute.lua - `nn.Permute`: reorders dimensions.

local errors = require "gpipe.errors"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

---@class nn.Permute: nn.Module
---@field order integer[]
local Permute = class.new("Permute", Module, true)

--- Dimension d of the output is dimension order[d] of the input; the batch is dimension 1.
---
--- Shapes: as many dimensions as the order has.
--- Errors: an order that is not a permutation of 1 .. n; when called, another number of dimensions.
--- ```lua
--- local y = nn.Permute({1, 3, 2})(gp.ones {5, 2, 8})
--- assert(y.shape[2] == 8 and y.shape[3] == 2)
--- ```
---@param order integer[]|integer also as arguments
---@param ... integer
function Permute:init(order, ...)
  local list = type(order) == "table" and order or { order, ... }
  local seen = {}
  self.order = {}
  for d = 1, #list do
    local from = check.integer("nn.Permute", ("order[%d]"):format(d), list[d])
    if from < 1 or from > #list or seen[from] then
      errors.raise("nn.Permute: order is {%s}, expected each of 1 .. %d once",
        table.concat(list, ", "), #list)
    end
    seen[from], self.order[d] = true, from
  end
  if #list == 0 then check.fail("nn.Permute", "order", order, "a list such as {1, 3, 2}") end
end

function Permute:forward(x)
  local shape = input.tensor(self, x).shape
  if #shape ~= #self.order then
    errors.raise_as("shape", "%s: input is %s, expected %d dimensions", scope.label(self),
      check.shape_text(shape), #self.order)
  end
  return x:permute(self.order)
end

function Permute:describe() return table.concat(self.order, ", ") end

return Permute
