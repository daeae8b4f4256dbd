-- gpipe/optim/adagrad.lua - Adagrad: steps divided by the root of the sum of squared gradients.
-- Source: Duchi, Hazan and Singer 2011; formulas as in PyTorch.

local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local adagrad = {}

---@class gpipe.AdagradOptions
---@field lr? number 0.01
---@field lr_decay? number 0
---@field weight_decay? number 0
---@field initial_accumulator_value? number 0
---@field eps? number 1e-10

local kind = {
  who = "optim.Adagrad",
  kind = "adagrad",
  spec = {
    lr = rules.amount(0.01),
    lr_decay = rules.amount(0),
    weight_decay = rules.amount(0),
    initial_accumulator_value = rules.amount(0),
    eps = rules.amount(1e-10),
  },
  moments = function() return 1 end,
  first = function(group) return group.initial_accumulator_value end,
}

--- Adagrad: with d = gradient + weight_decay * value, it keeps the sum of all d^2, which begins at
--- initial_accumulator_value, and a step is the rate times d / (sqrt(sum) + eps). The rate of step
--- t is lr / (1 + lr_decay * (t - 1)).
--- Errors: a negative or NaN setting, a parameter in two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.Adagrad(model:parameters(), {lr = 0.05})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? gpipe.AdagradOptions
---@return gpipe.Optimizer
function adagrad.Adagrad(params, opts) return new(kind, params, opts) end

return adagrad
