-- lua/gpipe/nn/layer/image/lp_pool.lua - `nn.LPPool1d`, `nn.LPPool2d`: the p-norm of each window.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local image = require "gpipe.nn.layer.image"
local pooling = require "gpipe.nn.layer.image.pooling"
local options = require "gpipe.options"

local OPTIONS = {
  stride = { type = { "number", "table" } }, ceil_mode = { type = "boolean", default = false },
}

---@class nn.LPPoolOptions
---@field stride? integer|integer[] the kernel
---@field ceil_mode? boolean false

local function set_up(self, who, p, kernel, opts)
  opts = options.check(who, opts, OPTIONS)
  self.p = check.number(who, "p", p)
  if self.p <= 0 then check.fail(who, "p", p, "a number above 0") end
  pooling.init_average(self, who, kernel, { stride = opts.stride, ceil_mode = opts.ceil_mode })
  self.taps = 1
  for _, size in ipairs(self.kernel) do self.taps = self.taps * size end
end

-- The average times how many there are, as PyTorch has it, so that rounding is its own.
local function forward(self, x)
  local mean = image.apply(self, core.resample2d, x ^ self.p, self.attributes)
  return (mean:sign() * mean:abs():relu() * self.taps) ^ (1 / self.p)
end

local function describe(self) return ("%g, %s"):format(self.p, pooling.describe(self)) end

---@class nn.LPPool2d: nn.Module
---@field p number
local LPPool2d = class.new("LPPool2d", Module, true)
LPPool2d.axes, LPPool2d.forward, LPPool2d.describe = 2, forward, describe

--- (sum of x^p)^(1/p) of each window of an image; p = 1 is the sum, a large p nearly the maximum.
---
--- Shapes: [N, C, H, W] -> [N, C, OH, OW] as of nn.AvgPool2d.
--- Errors: a p that is not above 0; those of nn.AvgPool2d.
--- Source: PyTorch nn.LPPool2d.
--- ```lua
--- assert(nn.LPPool2d(2, 2)(gp.ones {1, 1, 2, 2}):item() == 2)
--- ```
---@param p number
---@param kernel integer|integer[]
---@param opts? nn.LPPoolOptions
function LPPool2d:init(p, kernel, opts) set_up(self, "nn.LPPool2d", p, kernel, opts) end

---@class nn.LPPool1d: nn.Module
---@field p number
local LPPool1d = class.new("LPPool1d", Module, true)
LPPool1d.axes, LPPool1d.forward, LPPool1d.describe = 1, forward, describe

--- nn.LPPool2d of sequences, [N, C, L]. Source: PyTorch nn.LPPool1d.
--- ```lua
--- assert(nn.LPPool1d(1, 2)(gp.ones {1, 1, 4}).shape[3] == 2)
--- ```
---@param p number
---@param kernel integer
---@param opts? nn.LPPoolOptions
function LPPool1d:init(p, kernel, opts) set_up(self, "nn.LPPool1d", p, kernel, opts) end

return { LPPool1d = LPPool1d, LPPool2d = LPPool2d }
