-- lua/gpipe/nn/layer/norm/rms_norm.lua - `nn.RMSNorm` over the last dimension.
-- Source: Zhang, Sennrich, "Root mean square layer normalization" (2019).

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"

---@class nn.RMSNorm: nn.Module
---@field weight gpipe.Tensor [dim]
local RMSNorm = class.new("RMSNorm", Module, true)

local OPTIONS = {
  eps = { type = "number", default = 1e-6, above = 0 },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

--- Divide each vector of the last dimension by the root of its mean square, then scale.
---
--- Shapes: [.., dim] -> [.., dim]. The weight starts at 1.
--- Errors: dim that is not a positive integer; eps that is not positive.
--- Source: PyTorch nn.RMSNorm, whose eps is another.
--- ```lua
--- local y = nn.RMSNorm(8)(gp.randn {2, 8})
--- ```
---@param dim integer
---@param opts? {eps?: number, dtype?: "f32"|"f64"} eps is added to the mean square; 1e-6
function RMSNorm:init(dim, opts)
  self.dim = check.size("nn.RMSNorm", "dim", dim)
  opts = options.check("nn.RMSNorm", opts, OPTIONS)
  self.eps = opts.eps
  self.weight = parameter.Parameter({ self.dim }, initial.ones(), { dtype = opts.dtype })
end

function RMSNorm:forward(x)
  return core.rms_norm(input.tensor(self, x), self.weight, self.eps)
end

function RMSNorm:describe() return tostring(self.dim) end

return RMSNorm
