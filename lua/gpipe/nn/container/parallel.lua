-- lua/gpipe/nn/container/parallel.lua - `nn.Parallel`: the i-th module gets the i-th input.

local errors = require "gpipe.errors"
local Branches = require "gpipe.nn.container.branches"
local class = require "gpipe.nn.class"
local scope = require "gpipe.nn.scope"

---@class nn.Parallel: nn.Branches
local Parallel = class.new("Parallel", Branches, true)

--- Give each module the input at its position, and return as many outputs.
---
--- Layers pass several tensors to the next layer, also from stage to stage.
--- Errors: something that is not a list of modules; not as many inputs as modules.
--- ```lua
--- local layer = nn.Parallel {nn.Linear(4, 3), nn.ReLU()}
--- local a, b = layer(gp.ones {2, 4}, gp.ones {2, 5})
--- assert(a.shape[2] == 3 and b.shape[2] == 5)
--- ```
---@param modules nn.Module[]
function Parallel:init(modules) self:take("nn.Parallel", modules) end

function Parallel:forward(...)
  local count = select("#", ...)
  if count ~= #self then
    errors.raise("%s: there are %d inputs, expected %d, one for each module", scope.label(self),
      count, #self)
  end
  local outputs = {}
  for i = 1, count do outputs[i] = self:single(i, (select(i, ...))) end
  return table.unpack(outputs)
end

return Parallel
