-- lua/gpipe/nn/loss/mse.lua - `nn.MSELoss`: squared differences.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local Loss = require "gpipe.nn.loss.loss"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

---@class nn.MSELoss: nn.Loss
local MSELoss = class.new("MSELoss", Loss, true)

--- The mean (or sum) over all elements of (output - target)^2.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Errors: shapes that differ (nothing is broadcast: [32] against [32, 1] is nearly always a
--- mistake).
--- ```lua
--- local loss = nn.MSELoss {reduction = "sum"}
--- assert(loss(gp.ones {2, 3}, gp.zeros {2, 3}):item() == 6)
--- ```
---@param opts? {reduction?: "mean"|"sum"}
function MSELoss:init(opts)
  opts = options.check("nn.MSELoss", opts, {
    reduction = { choices = { "mean", "sum" }, default = "mean" },
  })
  self.reduction = opts.reduction
end

function MSELoss:terms(output, target)
  input.tensor(self, output, "output")
  local wanted = check.shape_text(output.shape)
  local have = check.shape_text(input.tensor(self, target, "target").shape)
  if have ~= wanted then
    errors.raise_as("shape", "%s: output is %s and target is %s, expected equal shapes",
      scope.label(self), wanted, have)
  end
  local sum = core.mse(output, target)
  if self.reduction == "sum" then return sum, nil end
  return sum, output:numel()
end

function MSELoss:describe() return self.reduction == "mean" and "" or self.reduction end

return MSELoss
