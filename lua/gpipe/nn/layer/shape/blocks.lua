-- lua/gpipe/nn/layer/shape/blocks.lua - `nn.Unflatten`, and the layers that move channels:
-- `nn.PixelShuffle`, `nn.PixelUnshuffle`, `nn.ChannelShuffle`.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

local blocks = {}

---@class nn.Unflatten: nn.Module
local Unflatten = class.new("Unflatten", Module, true)
blocks.Unflatten = Unflatten

--- Split a dimension into several; one size may be -1.
---
--- Shapes: [B, a b] -> [B, a, b] for dim 2.
--- Errors: dim 0 or 1 (the rows); sizes that are not integers; when called, sizes that do not fit.
--- ```lua
--- assert(nn.Unflatten(2, {2, 3})(gp.ones {4, 6}).shape[3] == 3)
--- ```
---@param dim integer from 2, negative from the end
---@param sizes integer[]
function Unflatten:init(dim, sizes)
  self.over = check.integer("nn.Unflatten", "dim", dim)
  if self.over == 0 or self.over == 1 then
    check.fail("nn.Unflatten", "dim", self.over, "2 or more, or negative: dimension 1 has the rows")
  end
  if type(sizes) ~= "table" or #sizes == 0 then
    check.fail("nn.Unflatten", "sizes", sizes, "a list such as {2, 3}")
  end
  self.sizes = {}
  for i, size in ipairs(sizes) do
    self.sizes[i] = size == -1 and -1 or check.size("nn.Unflatten", ("sizes[%d]"):format(i), size)
  end
end

function Unflatten:forward(x) return input.tensor(self, x):unflatten(self.over, self.sizes) end

function Unflatten:describe()
  return ("%d, %s"):format(self.over, table.concat(self.sizes, "x"))
end

-- ---- channels --------------------------------------------------------------------------------

-- Check that dimension `d` of an image is a multiple of n, and return the image's sizes.
local function sizes(self, x, n, dims)
  local shape = input.tensor(self, x).shape
  local fits = #shape == 4
  for _, d in ipairs(dims) do fits = fits and shape[d] % n == 0 end
  if not fits then
    errors.raise("%s: input is %s, expected ?x?x?x? with dimension %s a multiple of %d",
      scope.label(self), check.shape_text(shape), table.concat(dims, " and "), n)
  end
  return table.unpack(shape)
end

local function describe(self) return tostring(self.factor) end

---@class nn.PixelShuffle: nn.Module
---@field factor integer
local PixelShuffle = class.new("PixelShuffle", Module, true)
blocks.PixelShuffle, PixelShuffle.describe = PixelShuffle, describe

--- Make larger images from several channels: [N, C f^2, H, W] -> [N, C, H f, W f].
--- Errors: a factor that is not a positive integer; when called, channels that are not a multiple
--- of f^2.
--- Source: Shi et al. 2016; PyTorch nn.PixelShuffle.
--- ```lua
--- assert(nn.PixelShuffle(2)(gp.ones {1, 8, 3, 3}).shape[3] == 6)
--- ```
---@param factor integer
function PixelShuffle:init(factor) self.factor = check.size("nn.PixelShuffle", "factor", factor) end

function PixelShuffle:forward(x)
  local f = self.factor
  local n, c, h, w = sizes(self, x, f * f, { 2 })
  return x:reshape { n, c // (f * f), f, f, h, w }:permute { 1, 2, 5, 3, 6, 4 }
    :reshape { n, c // (f * f), h * f, w * f }
end

---@class nn.PixelUnshuffle: nn.Module
---@field factor integer
local PixelUnshuffle = class.new("PixelUnshuffle", Module, true)
blocks.PixelUnshuffle, PixelUnshuffle.describe = PixelUnshuffle, describe

--- The inverse of nn.PixelShuffle: [N, C, H f, W f] -> [N, C f^2, H, W].
--- Errors: a factor that is not a positive integer; when called, sides that are not multiples of
--- it.
--- Source: PyTorch nn.PixelUnshuffle.
--- ```lua
--- assert(nn.PixelUnshuffle(2)(gp.ones {1, 2, 6, 6}).shape[2] == 8)
--- ```
---@param factor integer
function PixelUnshuffle:init(factor)
  self.factor = check.size("nn.PixelUnshuffle", "factor", factor)
end

function PixelUnshuffle:forward(x)
  local f = self.factor
  local n, c, h, w = sizes(self, x, f, { 3, 4 })
  return x:reshape { n, c, h // f, f, w // f, f }:permute { 1, 2, 4, 6, 3, 5 }
    :reshape { n, c * f * f, h // f, w // f }
end

---@class nn.ChannelShuffle: nn.Module
---@field factor integer the groups
local ChannelShuffle = class.new("ChannelShuffle", Module, true)
blocks.ChannelShuffle, ChannelShuffle.describe = ChannelShuffle, describe

--- Reorder the channels: the first of each group, then the second of each, and so on.
--- Errors: groups that are not a positive integer; when called, channels that are not a multiple of
--- it.
--- Source: Zhang et al. 2018; PyTorch nn.ChannelShuffle.
--- ```lua
--- assert(nn.ChannelShuffle(2)(gp.ones {1, 4, 3, 3}).shape[2] == 4)
--- ```
---@param groups integer
function ChannelShuffle:init(groups)
  self.factor = check.size("nn.ChannelShuffle", "groups", groups)
end

function ChannelShuffle:forward(x)
  local n, c, h, w = sizes(self, x, self.factor, { 2 })
  return x:reshape { n, self.factor, c // self.factor, h, w }:transpose(2, 3):reshape { n, c, h, w }
end

return blocks
