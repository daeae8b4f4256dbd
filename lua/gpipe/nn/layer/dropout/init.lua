-- lua/gpipe/nn/layer/dropout/init.lua - `nn.Dropout`: forget a share of the elements while
-- training.
--
-- The random numbers are a function of (seed, step, op, element) in the runtime, so neither the cut
-- nor the micro-batches change which elements are dropped. Source: Srivastava et al. 2014.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"

---@class nn.Dropout: nn.Module
---@field p number
local Dropout = class.new("Dropout", Module, true)

--- Set each element to 0 with probability p and divide the others by 1 - p, in training mode; in
--- evaluation mode the input passes unchanged.
---
--- Shapes: any.
--- Errors: p outside 0 .. 1.
--- ```lua
--- local layer = nn.Dropout(0.1)
--- local y = layer(gp.ones {4, 4})
--- assert(gp.equal(layer:eval()(gp.ones {2}), gp.ones {2}))
--- ```
---@param p? number 0.5
function Dropout:init(p)
  self.p = check.fraction("nn.Dropout", "p", p == nil and 0.5 or p)
end

function Dropout:forward(x)
  input.tensor(self, x)
  if self.p == 0 or not self:is_training() then return x end
  return core.dropout(x, self.p)
end

function Dropout:describe() return ("%g"):format(self.p) end

return Dropout
