-- lua/gpipe/nn/layer/activation/prelu.lua - `nn.PReLU`: a leaky ReLU whose slope is learned.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"

---@class nn.PReLU: nn.Module
---@field weight gpipe.Tensor [n]
local PReLU = class.new("PReLU", Module, true)

--- x where it is above 0, else weight * x, with a weight that is learned: one for all elements, or
--- one for each channel (dimension 2). Source: He et al. 2015.
---
--- Shapes: any, with one weight; [N, n, ..] with n.
--- Errors: an n that is no positive integer; when called, other channels.
--- ```lua
--- assert(nn.PReLU()(gp.tensor {-4, 1}):sum():item() == 0)
--- ```
---@param n? integer of weights, 1
---@param value? number their initial value, 0.25
---@param opts? {dtype?: "f32"|"f64"}
function PReLU:init(n, value, opts)
  n = check.size("nn.PReLU", "n", n == nil and 1 or n)
  value = check.number("nn.PReLU", "value", value == nil and 0.25 or value)
  local o = options.check("nn.PReLU", opts, { dtype = { choices = { "f32", "f64" } } })
  self.weight = parameter.Parameter({ n }, initial.constant(value), { dtype = o.dtype })
end

function PReLU:forward(x)
  local shape, n = input.tensor(self, x).shape, self.weight.shape[1]
  local weight = self.weight
  if n > 1 and shape[2] ~= n then
    errors.raise("%s: input is %s, expected ?x%d.. channels", scope.label(self),
      check.shape_text(shape), n)
  end
  if n > 1 then
    local line = {}
    for d = 2, #shape do line[d - 1] = d == 2 and n or 1 end
    weight = weight:reshape(line)
  end
  return core.where(x:gt(0), x, weight * x)
end

function PReLU:describe() return tostring(self.weight.shape[1]) end

return PReLU
