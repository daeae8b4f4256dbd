-- lua/gpipe/nn/layer/shape/reshape.lua - `nn.Reshape`: gives the elements of each row another
-- shape.

local errors = require "gpipe.errors"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"
local lists = require "gpipe.tensor.methods.check"
local scope = require "gpipe.nn.scope"

---@class nn.Reshape: nn.Module
---@field to integer[] sizes behind the batch
local Reshape = class.new("Reshape", Module, true)

-- {3, -1} or 3, -1 -> a list of positive sizes with at most one -1.
local function check_sizes(first, ...)
  local list = type(first) == "table" and first or { first, ... }
  lists.no_names("nn.Reshape: shape", list)
  local sizes, open = {}, 0
  for i = 1, #list do
    local size = check.integer("nn.Reshape", ("shape[%d]"):format(i), list[i])
    if size ~= -1 and size < 1 then
      check.fail("nn.Reshape", ("shape[%d]"):format(i), size, "a positive integer, or -1 once")
    end
    open, sizes[i] = open + (size == -1 and 1 or 0), size
  end
  if open > 1 then errors.raise("nn.Reshape: shape has -1 %d times, expected it once", open) end
  return sizes
end

--- Give the elements of each row another shape; the first dimension, the batch, stays. One size may
--- be -1: it is computed from the others.
---
--- Shapes: [B, ..] -> [B, shape..].
--- Errors: sizes that are not positive integers; when called, a scalar, or a shape with another
--- number of elements.
--- ```lua
--- local y = nn.Reshape({2, -1})(gp.ones {5, 8})
--- assert(y.shape[2] == 2 and y.shape[3] == 4)
--- ```
---@param shape integer[]|integer also as arguments
---@param ... integer
function Reshape:init(shape, ...)
  if type(shape) ~= "table" and not math.type(shape) then
    check.fail("nn.Reshape", "shape", shape, "a list of sizes such as {3, -1}")
  end
  self.to = check_sizes(shape, ...)
end

function Reshape:forward(x)
  local shape = input.tensor(self, x).shape
  if #shape == 0 then
    errors.raise("%s: input is a scalar, expected a batch in its first dimension",
      scope.label(self))
  end
  return x:reshape(table.move(self.to, 1, #self.to, 2, { shape[1] }))
end

function Reshape:describe() return table.concat(self.to, ", ") end

return Reshape
