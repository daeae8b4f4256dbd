-- gpipe/optim/radam.lua - RAdam: Adam that divides by the root of squares only as far as it is
-- known.
-- Source: Liu et al. 2020, "On the variance of the adaptive learning rate", algorithm 2; formulas
-- as in PyTorch.

local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local radam = {}

---@class gpipe.RAdamOptions
---@field lr? number 0.001
---@field betas? number[] {0.9, 0.999}
---@field eps? number 1e-8
---@field weight_decay? number 0
---@field decoupled_weight_decay? boolean shrink values, as AdamW does

local kind = {
  who = "optim.RAdam",
  kind = "radam",
  spec = {
    lr = rules.amount(1e-3),
    betas = rules.betas(0.9, 0.999),
    eps = rules.amount(1e-8),
    weight_decay = rules.amount(0),
    decoupled_weight_decay = { type = "boolean", default = false },
  },
  moments = function() return 2 end,
}

--- RAdam: in its first steps it follows only the mean of gradients, because the mean of squares
--- rests on too few of them. Then it divides as Adam does, at first by less. No warm-up is needed.
--- Errors: a negative or NaN setting, a beta outside [0, 1), a parameter in two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.RAdam(model:parameters(), {lr = 1e-3})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? gpipe.RAdamOptions
---@return gpipe.Optimizer
function radam.RAdam(params, opts) return new(kind, params, opts) end

return radam
