-- lua/gpipe/nn/layer/norm/rms_norm.lua - `nn.RMSNorm` over the last dimensions.
-- Source: Zhang, Sennrich, "Root mean square layer normalization" (2019).

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local last = require "gpipe.nn.layer.norm.last"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"

---@class nn.RMSNorm: nn.Module
---@field weight? gpipe.Tensor [dim]
local RMSNorm = class.new("RMSNorm", Module, true)

local OPTIONS = {
  eps = { type = "number", default = 1e-6, above = 0 },
  affine = { type = "boolean", default = true },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

--- Divide each vector of the last dimension, or of several, by the root of its mean square, then
--- scale it, unless `affine` is false.
---
--- Shapes: [.., dim] -> [.., dim]. The weight starts at 1.
--- Errors: dim that is not a positive integer, or a list of them; eps that is not positive.
--- Source: PyTorch nn.RMSNorm, whose eps is different.
--- ```lua
--- local y = nn.RMSNorm(8)(gp.randn {2, 8})
--- ```
---@param dim integer|integer[]
---@param opts? {eps?: number, affine?: boolean, dtype?: "f32"|"f64"} eps is added to the mean square; 1e-6
function RMSNorm:init(dim, opts)
  self.dims = last.read("nn.RMSNorm", dim)
  opts = options.check("nn.RMSNorm", opts, OPTIONS)
  self.eps = opts.eps
  if not opts.affine then return end
  self.weight = parameter.Parameter(self.dims, initial.ones(), { dtype = opts.dtype })
end

function RMSNorm:forward(x)
  return last.over(self, input.tensor(self, x), self.dims, function(vectors)
    return core.rms_norm(vectors, last.vector(vectors, self.weight, self.dims, 1), self.eps)
  end)
end

function RMSNorm:describe()
  return table.concat(self.dims, "x") .. (self.weight and "" or ", not affine")
end

return RMSNorm
