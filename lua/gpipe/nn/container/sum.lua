-- lua/gpipe/nn/container/sum.lua - `nn.Sum`: every module gets the input, and the outputs are
-- added.

local Branches = require "gpipe.nn.container.branches"
local class = require "gpipe.nn.class"

---@class nn.Sum: nn.Branches
local Sum = class.new("Sum", Branches, true)

--- Give the input to every module and add what they return, in the order of the list.
---
--- Shapes: outputs of one shape, or of shapes that broadcast.
--- Errors: something that is not a list of modules; outputs that do not fit.
--- ```lua
--- local layer = nn.Sum {nn.Linear(4, 3), nn.Linear(4, 3)}
--- assert(layer(gp.ones {2, 4}).shape[2] == 3)
--- ```
---@param modules nn.Module[]
function Sum:init(modules) self:take("nn.Sum", modules) end

function Sum:forward(...)
  local sum = self:single(1, ...)
  for i = 2, #self do sum = sum + self:single(i, ...) end
  return sum
end

return Sum
