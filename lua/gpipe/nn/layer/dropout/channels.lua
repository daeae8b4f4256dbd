-- lua/gpipe/nn/layer/dropout/channels.lua - `nn.Dropout1d`, `nn.Dropout2d`, `nn.Dropout3d`: forget
-- whole channels while training.
--
-- Neighbouring pixels are so alike that dropping single ones would lose little information.
-- Source: Tompson et al. 2015.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local ones = require "gpipe.nn.layer.dropout.ones"

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
  local channels = ones.of_channels(self, x)
  if self.p == 0 or not self:is_training() then return x end
  return x * core.dropout(channels, self.p)
end

function Dropout2d:describe() return ("%g"):format(self.p) end

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

return { Dropout1d = Dropout1d, Dropout2d = Dropout2d, Dropout3d = Dropout3d }
