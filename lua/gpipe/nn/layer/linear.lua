-- lua/gpipe/nn/layer/linear.lua - `nn.Linear`: y = x W^T + b.
--
-- The weight is [out, in], as in PyTorch, so that its files can be loaded.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"

---@class nn.Linear: nn.Module
---@field weight gpipe.Tensor [out, in]
---@field bias? gpipe.Tensor [out]
local Linear = class.new("Linear", Module, true)

local OPTIONS = {
  bias = { type = "boolean", default = true },
  init = { type = { "table", "number", "tensor" } },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

--- A fully connected layer over the last dimension.
---
--- Shapes: [.., in_features] -> [.., out_features]. Weight (unless `init` says otherwise) and bias
--- start uniform in +-1 / sqrt(in_features).
--- Errors: sizes that are not positive integers.
--- Source: PyTorch nn.Linear (kaiming_uniform with a = sqrt(5) is this range).
--- ```lua
--- local y = nn.Linear(4, 2, {bias = false})(gp.ones {3, 4})
--- assert(y.shape[2] == 2)
--- ```
---@param in_features integer
---@param out_features integer
---@param opts? {bias?: boolean, init?: nn.Initializer, dtype?: "f32"|"f64"}
function Linear:init(in_features, out_features, opts)
  local n_in = check.size("nn.Linear", "in_features", in_features)
  local n_out = check.size("nn.Linear", "out_features", out_features)
  opts = options.check("nn.Linear", opts, OPTIONS)
  local bound = 1 / math.sqrt(n_in)
  local init = initial.uniform(-bound, bound)
  self.in_features, self.out_features = n_in, n_out
  self.weight = parameter.Parameter({ n_out, n_in }, opts.init or init, { dtype = opts.dtype })
  if opts.bias then self.bias = parameter.Parameter({ n_out }, init, { dtype = opts.dtype }) end
end

function Linear:forward(x)
  return core.linear(input.tensor(self, x), self.weight, self.bias)
end

function Linear:describe() return ("%d -> %d"):format(self.in_features, self.out_features) end

return Linear
