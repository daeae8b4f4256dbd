-- lua/gpipe/nn/loss/gaussian.lua - `nn.GaussianNLLLoss`: targets from normal distributions; the
-- model returns mean and variance.
-- Source: Nix and Weigend 1994; the treatment of variances near 0 is PyTorch's.

local Loss = require "gpipe.nn.loss.loss"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

---@class nn.GaussianNLLLoss: nn.Loss
---@field full boolean
---@field eps number
local GaussianNLLLoss = class.new("GaussianNLLLoss", Loss, true)

--- The mean (or sum) of (log(var) + (x - target)^2 / var) / 2, to which `full` adds log(2 pi) / 2.
--- It is called as PyTorch's: (x, target, var). In a pipeline the model returns two tensors, mean
--- and variance. "none" returns the losses one by one, for eager use.
---
--- Shapes: x and target have one shape; var has the same, or a last dimension of 1, or lacks the
--- last dimension. Variances below eps count as eps; the gradient passes as if they were not
--- bounded.
--- Errors: shapes that do not fit; variances below 0 (eager).
--- ```lua
--- local loss = nn.GaussianNLLLoss()(gp.zeros {2}, gp.ones {2}, gp.ones {2})
--- assert(loss:item() == 0.5)
--- ```
---@param opts? {full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"} false, 1e-6
function GaussianNLLLoss:init(opts)
  local spec = {
    full = { type = "boolean", default = false },
    eps = { type = "number", above = 0, default = 1e-6 },
    reduction = { choices = { "mean", "sum", "none" }, default = "mean" },
  }
  for name, value in pairs(options.check("GaussianNLLLoss", opts, spec)) do self[name] = value end
end

-- The variance, bounded and broadcast to the shape of x.
local function variance_for(self, x, var)
  local shape, given = x.shape, input.tensor(self, var, "the variance").shape
  if #given == #shape - 1 then
    var = var:unsqueeze(-1)
    given = var.shape
  end
  local fits = #given == #shape
  for d = 1, #shape do
    fits = fits and (given[d] == shape[d] or d == #shape and given[d] == 1)
  end
  if not fits then
    errors.raise_as("shape", "%s: the variance is %s, expected %s, or 1 in its last dimension",
      scope.label(self), check.shape_text(given), check.shape_text(shape))
  end
  if not core.tracing() and var:lt(0):any():item() then
    errors.raise("%s: the variance has numbers below 0, expected >= 0", scope.label(self))
  end
  return var + (var:clamp { min = self.eps } - var):detach()
end

function GaussianNLLLoss:each(x, target, var)
  local wanted = check.shape_text(input.tensor(self, x, "the mean").shape)
  local have = check.shape_text(input.tensor(self, target, "target").shape)
  if have ~= wanted then
    errors.raise_as("shape", "%s: output is %s and target is %s, expected equal shapes",
      scope.label(self), wanted, have)
  end
  var = variance_for(self, x, var)
  local losses = (var:log() + (x - target):square() / var) * 0.5
  return self.full and losses + 0.5 * math.log(2 * math.pi) or losses
end

function GaussianNLLLoss:terms(mean, var, target)
  if self.reduction == "none" then
    errors.raise('%s: reduction is "none", expected "mean" or "sum" where a loss is one number',
      scope.label(self))
  end
  local losses = self:each(mean, target, var)
  return losses:sum(), self.reduction == "mean" and losses:numel() or nil
end

function GaussianNLLLoss:forward(x, target, var)
  if self.reduction == "none" then return self:each(x, target, var) end
  return Loss.forward(self, x, var, target)
end

return GaussianNLLLoss
