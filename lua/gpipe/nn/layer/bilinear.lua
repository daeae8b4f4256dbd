-- lua/gpipe/nn/layer/bilinear.lua - `nn.Bilinear`: outputs that are linear in each of two inputs.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"

---@class nn.Bilinear: nn.Module
---@field weight gpipe.Tensor [out, first, second]
---@field bias? gpipe.Tensor [out]
local Bilinear = class.new("Bilinear", Module, true)

--- a' W[k] b + bias[k] for every output k. Shapes: [.., first] and [.., second] -> [.., out].
--- Errors: sizes that are not positive integers.
--- Source: PyTorch nn.Bilinear, and its first values.
--- ```lua
--- assert(nn.Bilinear(3, 4, 5)(gp.ones {2, 3}, gp.ones {2, 4}).shape[2] == 5)
--- ```
---@param first integer
---@param second integer
---@param out integer
---@param opts? {bias?: boolean, dtype?: "f32"|"f64"}
function Bilinear:init(first, second, out, opts)
  opts = options.check("nn.Bilinear", opts, {
    bias = { type = "boolean", default = true }, dtype = { choices = { "f32", "f64" } },
  })
  self.first = check.size("nn.Bilinear", "first", first)
  self.second = check.size("nn.Bilinear", "second", second)
  self.out = check.size("nn.Bilinear", "out", out)
  local init = initial.uniform(-1 / math.sqrt(first), 1 / math.sqrt(first))
  local of = { dtype = opts.dtype }
  self.weight = parameter.Parameter({ self.out, self.first, self.second }, init, of)
  if opts.bias then self.bias = parameter.Parameter({ self.out }, init, of) end
end

function Bilinear:forward(a, b)
  local shape = input.tensor(self, a).shape
  input.tensor(self, b, "the second input")
  if shape[#shape] ~= self.first or b.shape[#b.shape] ~= self.second then
    errors.raise("%s: inputs are %s and %s, expected ..x%d and ..x%d", scope.label(self),
      check.shape_text(shape), check.shape_text(b.shape), self.first, self.second)
  end
  local flat = self.weight:permute { 2, 1, 3 }:reshape { self.first, self.out * self.second }
  shape[#shape], shape[#shape + 1] = self.out, self.second
  local y = (a:matmul(flat):reshape(shape) * b:unsqueeze(-2)):sum(-1)
  return self.bias and y + self.bias or y
end

function Bilinear:describe()
  return ("%d, %d -> %d"):format(self.first, self.second, self.out)
end

return Bilinear
