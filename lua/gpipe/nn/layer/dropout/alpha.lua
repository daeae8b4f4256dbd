-- lua/gpipe/nn/layer/dropout/alpha.lua - `nn.AlphaDropout`, `nn.FeatureAlphaDropout`: forget so
-- that mean and variance stay.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local ones = require "gpipe.nn.layer.dropout.ones"

---@class nn.AlphaDropout: nn.Module
---@field p number
local AlphaDropout = class.new("AlphaDropout", Module, true)

local LOWEST = -1.7580993408473766 -- the limit of nn.SELU for x far below 0

--- In training mode, set each element to the lower limit of nn.SELU with probability p, then scale
--- and shift all elements, so that mean 0 and variance 1 stay; in evaluation mode the input passes
--- unchanged. Source: Klambauer et al. 2017.
---
--- Shapes: any. Errors: p outside 0 .. 1.
--- ```lua
--- local y = nn.AlphaDropout(0.2)(gp.randn {4, 4})
--- ```
---@param p? number 0.5
function AlphaDropout:init(p)
  self.p = check.fraction("nn.AlphaDropout", "p", p == nil and 0.5 or p)
end

function AlphaDropout:describe() return ("%g"):format(self.p) end

-- Drop the elements of x whose one in `kept` is dropped; in evaluation mode none.
local function drop(self, x, kept)
  if self.p == 0 or not self:is_training() then return x end
  if self.p == 1 then return x * 0 end
  local keep = core.dropout(kept, self.p) * (1 - self.p)
  local scale = ((1 - self.p) * (1 + self.p * LOWEST ^ 2)) ^ -0.5
  return (x * keep + (1 - keep) * LOWEST) * scale - scale * LOWEST * self.p
end

function AlphaDropout:forward(x)
  return drop(self, x, ones.of_elements(self, x))
end

---@class nn.FeatureAlphaDropout: nn.AlphaDropout
local FeatureAlphaDropout = class.new("FeatureAlphaDropout", AlphaDropout, true)

--- nn.AlphaDropout of whole channels, as nn.Dropout2d forgets them.
---
--- Shapes: [N, C, ..], the same. Errors: p outside 0 .. 1; fewer than two dimensions.
--- ```lua
--- local y = nn.FeatureAlphaDropout(0.5)(gp.ones {2, 8, 3})
--- assert(y[1][1][1] == y[1][1][3])
--- ```
---@param p? number 0.5
function FeatureAlphaDropout:init(p)
  self.p = check.fraction("nn.FeatureAlphaDropout", "p", p == nil and 0.5 or p)
end

function FeatureAlphaDropout:forward(x)
  return drop(self, x, ones.of_channels(self, x))
end

return { AlphaDropout = AlphaDropout, FeatureAlphaDropout = FeatureAlphaDropout }
