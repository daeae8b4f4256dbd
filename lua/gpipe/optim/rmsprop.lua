-- gpipe/optim/rmsprop.lua - RMSprop: steps divided by the root of the mean of squared gradients.
-- Source: Hinton 2012 (lecture 6e of "Neural networks for machine learning"); Graves 2013, the
-- centered form; formulas as in PyTorch.

local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local rmsprop = {}

---@class gpipe.RMSpropOptions
---@field lr? number 0.01
---@field alpha? number 0.99
---@field eps? number 1e-8
---@field weight_decay? number 0
---@field momentum? number 0
---@field centered? boolean

local kind = {
  who = "optim.RMSprop",
  kind = "rmsprop",
  spec = {
    lr = rules.amount(0.01),
    alpha = rules.weight(0.99),
    eps = rules.amount(1e-8),
    weight_decay = rules.amount(0),
    momentum = rules.amount(0),
    centered = { type = "boolean", default = false },
  },
  moments = function(group)
    return 1 + (group.momentum > 0 and 1 or 0) + (group.centered and 1 or 0)
  end,
}

--- RMSprop: with d = gradient + weight_decay * value and v = alpha * v + (1 - alpha) * d^2, a step
--- is d / (sqrt(v) + eps); with momentum it goes along a velocity. `centered` subtracts the square
--- of the mean gradient from v.
---
--- It keeps one moment for each element, the mean of squares; with momentum also the velocity; if
--- centered also, as the last one, the mean of gradients.
--- Errors: a negative or NaN setting, an alpha outside [0, 1), a parameter in two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.RMSprop(model:parameters(), {lr = 1e-3, momentum = 0.9})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? gpipe.RMSpropOptions
---@return gpipe.Optimizer
function rmsprop.RMSprop(params, opts) return new(kind, params, opts) end

return rmsprop
