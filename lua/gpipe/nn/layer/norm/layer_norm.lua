-- lua/gpipe/nn/layer/norm/layer_norm.lua - `nn.LayerNorm` over the last dimensions.
-- Source: Ba, Kiros, Hinton 2016.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local last = require "gpipe.nn.layer.norm.last"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"

---@class nn.LayerNorm: nn.Module
---@field weight? gpipe.Tensor [dim]
---@field bias? gpipe.Tensor [dim]
local LayerNorm = class.new("LayerNorm", Module, true)

local OPTIONS = {
  eps = { type = "number", default = 1e-5, above = 0 },
  affine = { type = "boolean", default = true }, bias = { type = "boolean", default = true },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

--- Normalise each vector of the last dimension, or of several, to mean 0 and variance 1, then scale
--- and shift. Without `bias` it only scales; with `affine = false` it does neither.
---
--- Shapes: [.., dim] -> [.., dim]. The weight starts at 1, the bias at 0.
--- Errors: dim that is not a positive integer, or a list of them; eps that is not positive.
--- ```lua
--- local y = nn.LayerNorm(8, {eps = 1e-6})(gp.randn {2, 8})
--- ```
---@param dim integer|integer[]
---@param opts? {eps?: number, affine?: boolean, bias?: boolean, dtype?: "f32"|"f64"} eps is added to the variance; 1e-5
function LayerNorm:init(dim, opts)
  self.dims = last.read("nn.LayerNorm", dim)
  opts = options.check("nn.LayerNorm", opts, OPTIONS)
  self.eps = opts.eps
  if not opts.affine then return end
  self.weight = parameter.Parameter(self.dims, initial.ones(), { dtype = opts.dtype })
  if not opts.bias then return end
  self.bias = parameter.Parameter(self.dims, initial.zeros(), { dtype = opts.dtype })
end

function LayerNorm:forward(x)
  return last.over(self, input.tensor(self, x), self.dims, function(vectors)
    return core.layer_norm(vectors, last.vector(vectors, self.weight, self.dims, 1),
      last.vector(vectors, self.bias, self.dims, 0), self.eps)
  end)
end

function LayerNorm:describe()
  local shown = table.concat(self.dims, "x")
  return self.bias and shown or shown .. (self.weight and ", no bias" or ", not affine")
end

return LayerNorm
