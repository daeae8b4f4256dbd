-- lua/gpipe/nn/layer/dropout2d.lua - `nn.Dropout2d`: forget whole channels while training.
--
-- Neighbouring pixels say much the same, so that dropping single ones would drop little. Source:
-- Tompson et al. 2015.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

---@class nn.Dropout2d: nn.Module
---@field p number
local Dropout2d = class.new("Dropout2d", Module, true)

--- Set each channel of each row to 0 with probability p and divide the others by 1 - p, in training
--- mode; in evaluation mode the input passes unchanged.
---
--- Shapes: [N, C, ..], the same.
--- Errors: p outside 0 .. 1; fewer than two dimensions.
--- ```lua
--- local y = nn.Dropout2d(0.5)(gp.ones {2, 8, 3, 3})
--- assert(y[1][1][1][1] == y[1][1][3][3])
--- ```
---@param p? number 0.5
function Dropout2d:init(p)
  self.p = check.fraction("nn.Dropout2d", "p", p == nil and 0.5 or p)
end

function Dropout2d:forward(x)
  input.tensor(self, x)
  if x:dim() < 2 then
    errors.raise("%s: the input is %s, expected rows and channels", scope.label(self),
      check.shape_text(x.shape))
  end
  if self.p == 0 or not self:is_training() then return x end
  -- A one for each channel, made of the input, so that it has the rows of a micro-batch.
  local first = x
  for d = 3, x:dim() do first = first:narrow(d, 1, 1) end
  local ones = first:isnan():to(x.dtype) * 0 + 1
  return x * core.dropout(ones, self.p)
end

function Dropout2d:describe() return ("%g"):format(self.p) end

return Dropout2d
