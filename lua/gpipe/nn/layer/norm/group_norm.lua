-- lua/gpipe/nn/layer/norm/group_norm.lua - `nn.GroupNorm`: normalises channels in groups, sample by
-- sample.
-- Source: Wu, He, "Group normalization" (2018).

local Module = require "gpipe.nn.module"
local channels = require "gpipe.nn.layer.norm.channels"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local options = require "gpipe.options"

---@class nn.GroupNorm: nn.Module
---@field weight? gpipe.Tensor [n]
---@field bias? gpipe.Tensor [n]
local GroupNorm = class.new("GroupNorm", Module, true)

local OPTIONS = {
  eps = { type = "number", default = 1e-5, above = 0 },
  affine = { type = "boolean", default = true },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

--- Normalise the channels of each group of each sample together, then scale and shift each channel.
---
--- Shapes: [N, n], [N, n, L], [N, n, H, W] or [N, n, D, H, W], the same out.
--- Errors: sizes that are not positive integers, channels that the groups do not divide; when
--- called, another number of channels.
--- Source: PyTorch nn.GroupNorm.
--- ```lua
--- local y = nn.GroupNorm(2, 6)(gp.randn {2, 6, 4, 4})
--- ```
---@param groups integer
---@param n integer channels
---@param opts? {eps?: number, affine?: boolean, dtype?: "f32"|"f64"} 1e-5, true
function GroupNorm:init(groups, n, opts)
  self.groups, self.channels = check.size("nn.GroupNorm", "groups", groups),
    check.size("nn.GroupNorm", "n", n)
  if self.channels % self.groups ~= 0 then
    check.fail("nn.GroupNorm", "n", n, ("a multiple of the %d groups"):format(self.groups))
  end
  opts = options.check("nn.GroupNorm", opts, OPTIONS)
  self.eps = opts.eps
  channels.declare(self, opts)
end

function GroupNorm:forward(x)
  local image = channels.image(self, x, 2, 5)
  local mean, variance = channels.stats(image, true, self.groups)
  return channels.normalise(self, x, image, mean, variance)
end

function GroupNorm:describe() return ("%d in %d groups"):format(self.channels, self.groups) end

return GroupNorm
