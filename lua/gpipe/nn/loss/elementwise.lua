-- lua/gpipe/nn/loss/elementwise.lua - the base of losses that compare element by element.
--
-- Such a loss defines `each`: a function of output and target that returns one number for each
-- element. Halves are computed in f32, because a sum of many needs more digits than they have.

local errors = require "gpipe.errors"
local Loss = require "gpipe.nn.loss.loss"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

---@class nn.ElementwiseLoss: nn.Loss
---@field reduction "mean"|"sum"|"none"|"batchmean"
local ElementwiseLoss = class.new("ElementwiseLoss", Loss, true)

local HALF = { bf16 = true, f16 = true }

local function widened(t) return HALF[t.dtype] and t:to("f32") or t end

-- spec: options beside reduction; choices: values of reduction that only this loss has.
function ElementwiseLoss:init(opts, spec, choices)
  local all = { "mean", "sum", "none", table.unpack(choices or {}) }
  spec = spec or {}
  spec.reduction = { choices = all, default = "mean" }
  for name, value in pairs(options.check(class.of(self).shown, opts, spec)) do
    self[name] = value
  end
end

-- The loss of each element; a subclass defines it.
function ElementwiseLoss.each() error "a loss defines each" end

-- The divisor of the mean.
function ElementwiseLoss:count(output)
  if self.reduction == "sum" then return nil end
  return output:numel()
end

-- Check that both are tensors of one shape.
function ElementwiseLoss:check(output, target)
  input.tensor(self, output, "output")
  local wanted = check.shape_text(output.shape)
  local have = check.shape_text(input.tensor(self, target, "target").shape)
  if have ~= wanted then
    errors.raise_as("shape", "%s: output is %s and target is %s, expected equal shapes",
      scope.label(self), wanted, have)
  end
end

function ElementwiseLoss:elements(output, target)
  self:check(output, target)
  return self:each(widened(output), widened(target))
end

function ElementwiseLoss:terms(output, target)
  if self.reduction == "none" then
    errors.raise('%s: reduction is "none", expected "mean" or "sum" where a loss is one number',
      scope.label(self))
  end
  return self:elements(output, target):sum(), self:count(output)
end

function ElementwiseLoss:forward(output, target)
  if self.reduction == "none" then return self:elements(output, target) end
  return Loss.forward(self, output, target)
end

function ElementwiseLoss:describe() return self.reduction == "mean" and "" or self.reduction end

return ElementwiseLoss
