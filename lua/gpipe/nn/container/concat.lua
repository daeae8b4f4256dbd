-- lua/gpipe/nn/container/concat.lua - `nn.Concat`: every module gets the input, and the outputs are
-- joined along a dimension.

local core = require "gpipe.core"
local Branches = require "gpipe.nn.container.branches"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"

---@class nn.Concat: nn.Branches
---@field dim integer
local Concat = class.new("Concat", Branches, true)

--- Give the input to every module and concatenate what they return.
---
--- Shapes: outputs that differ in dimension `dim` at most -> their sizes added there.
--- Errors: dimension 0; something that is not a list of modules; outputs that do not fit.
--- ```lua
--- local layer = nn.Concat(2, {nn.Linear(4, 3), nn.Linear(4, 5)})
--- assert(layer(gp.ones {2, 4}).shape[2] == 8)
--- ```
---@param dim integer from 1; negative from the end
---@param modules nn.Module[]
function Concat:init(dim, modules)
  self.dim = check.integer("nn.Concat", "dim", dim)
  if self.dim == 0 then check.fail("nn.Concat", "dim", dim, "1 or more, or negative") end
  self:take("nn.Concat", modules)
end

function Concat:forward(...)
  local outputs = {}
  for i = 1, #self do outputs[i] = self:single(i, ...) end
  return core.concat(outputs, self.dim)
end

function Concat:describe() return ("dimension %d"):format(self.dim) end

return Concat
