-- gpipe/optim/lion.lua - Lion: every element steps by the same size, along the sign of a mean.
-- Source: Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2.

local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local lion = {}

local kind = {
  who = "optim.Lion",
  kind = "lion",
  spec = {
    lr = rules.amount(1e-4),
    betas = rules.betas(0.9, 0.99),
    weight_decay = rules.amount(0),
  },
  moments = function() return 1 end,
}

--- Lion: value = (1 - lr * weight_decay) * value - lr * sign(b1 * m + (1 - b1) * gradient), then m
--- = b2 * m + (1 - b2) * gradient. It keeps one moment; Adam keeps two. Its rates are three to ten
--- times smaller than Adam's, and its weight decay is larger by the same factor.
--- Errors: a negative or NaN setting, a beta outside [0, 1), a parameter in two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.Lion(model:parameters(), {lr = 3e-5, weight_decay = 0.1})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? {lr?: number, betas?: number[], weight_decay?: number}
---@return gpipe.Optimizer
function lion.Lion(params, opts) return new(kind, params, opts) end

return lion
