-- lua/gpipe/nn/layer/dropout/channels.lua - `nn.Dropout1d`, `nn.Dropout2d`, `nn.Dropout3d`: forget whole
-- channels while training; `nn.AlphaDropout`, `nn.FeatureAlphaDropout`: forget so that mean and
-- variance stay.
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

local function check_channels(self, x)
  if x:dim() >= 2 then return end
  errors.raise("%s: the input is %s, expected rows and channels", scope.label(self),
    check.shape_text(x.shape))
end

-- A one for each channel, made of the input, so that it has the rows of a micro-batch.
local function ones_of_channels(x)
  local first = x
  for d = 3, x:dim() do first = first:narrow(d, 1, 1) end
  return first:isnan():to(x.dtype) * 0 + 1
end

function Dropout2d:forward(x)
  check_channels(self, input.tensor(self, x))
  if self.p == 0 or not self:is_training() then return x end
  return x * core.dropout(ones_of_channels(x), self.p)
end

function Dropout2d:describe() return ("%g"):format(self.p) end

-- ---- Dropout1d, AlphaDropout -----------------------------------------------------------------

---@class nn.Dropout1d: nn.Dropout2d
local Dropout1d = class.new("Dropout1d", Dropout2d, true)

--- nn.Dropout2d of sequences: whole channels are forgotten.
---
--- Shapes: [N, C, L], the same. Errors: p outside 0 .. 1; fewer than two dimensions.
--- ```lua
--- local y = nn.Dropout1d(0.5)(gp.ones {2, 8, 3})
--- assert(y[1][1][1] == y[1][1][3])
--- ```
---@param p? number 0.5
function Dropout1d:init(p)
  self.p = check.fraction("nn.Dropout1d", "p", p == nil and 0.5 or p)
end

---@class nn.AlphaDropout: nn.Module
---@field p number
local AlphaDropout = class.new("AlphaDropout", Module, true)
AlphaDropout.describe = Dropout2d.describe

local LOWEST = -1.7580993408473766 -- what nn.SELU comes to for x far below 0

--- Set each element to what nn.SELU is at least with probability p, then scale and shift all, so
--- that mean 0 and variance 1 stay, in training mode; in evaluation mode the input passes
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

-- x where a one of `ones` is kept, in training.
local function drop(self, x, ones)
  if self.p == 0 or not self:is_training() then return x end
  if self.p == 1 then return x * 0 end
  local keep = core.dropout(ones, self.p) * (1 - self.p)
  local scale = ((1 - self.p) * (1 + self.p * LOWEST ^ 2)) ^ -0.5
  return (x * keep + (1 - keep) * LOWEST) * scale - scale * LOWEST * self.p
end

function AlphaDropout:forward(x)
  return drop(self, x, input.tensor(self, x):isnan():to(x.dtype) * 0 + 1)
end

-- ---- Dropout3d, FeatureAlphaDropout ----------------------------------------------------------

---@class nn.Dropout3d: nn.Dropout2d
local Dropout3d = class.new("Dropout3d", Dropout2d, true)

--- nn.Dropout2d of volumes: whole channels are forgotten.
---
--- Shapes: [N, C, D, H, W], the same. Errors: p outside 0 .. 1; fewer than two dimensions.
--- ```lua
--- local y = nn.Dropout3d(0.5)(gp.ones {2, 8, 3, 3, 3})
--- assert(y[1][1][1][1][1] == y[1][1][3][3][3])
--- ```
---@param p? number 0.5
function Dropout3d:init(p)
  self.p = check.fraction("nn.Dropout3d", "p", p == nil and 0.5 or p)
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
  check_channels(self, input.tensor(self, x))
  return drop(self, x, ones_of_channels(x))
end

return {
  Dropout1d = Dropout1d, Dropout2d = Dropout2d, Dropout3d = Dropout3d,
  AlphaDropout = AlphaDropout, FeatureAlphaDropout = FeatureAlphaDropout,
}
