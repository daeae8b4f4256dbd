-- lua/gpipe/nn/layer/norm/layer_norm.lua - `nn.LayerNorm` over the last dimension.
-- Source: Ba, Kiros, Hinton 2016.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"

---@class nn.LayerNorm: nn.Module
---@field weight gpipe.Tensor [dim]
---@field bias gpipe.Tensor [dim]
local LayerNorm = class.new("LayerNorm", Module, true)

local OPTIONS = {
  eps = { type = "number", default = 1e-5, above = 0 },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

--- Normalise each vector of the last dimension to mean 0 and variance 1, then scale and shift.
---
--- Shapes: [.., dim] -> [.., dim]. The weight starts at 1, the bias at 0.
--- Errors: dim that is not a positive integer; eps that is not positive.
--- ```lua
--- local y = nn.LayerNorm(8, {eps = 1e-6})(gp.randn {2, 8})
--- ```
---@param dim integer
---@param opts? {eps?: number, dtype?: "f32"|"f64"} eps is added to the variance; 1e-5
function LayerNorm:init(dim, opts)
  self.dim = check.size("nn.LayerNorm", "dim", dim)
  opts = options.check("nn.LayerNorm", opts, OPTIONS)
  self.eps = opts.eps
  self.weight = parameter.Parameter({ self.dim }, initial.ones(), { dtype = opts.dtype })
  self.bias = parameter.Parameter({ self.dim }, initial.zeros(), { dtype = opts.dtype })
end

function LayerNorm:forward(x)
  return core.layer_norm(input.tensor(self, x), self.weight, self.bias, self.eps)
end

function LayerNorm:describe() return tostring(self.dim) end

return LayerNorm
