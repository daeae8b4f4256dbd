-- gpipe/optim/nadam.lua - NAdam: Adam with Nesterov's momentum, which grows from step to step.
-- Source: Dozat 2016, "Incorporating Nesterov momentum into Adam", algorithm 2; formulas as in
-- PyTorch, where the product of the momenta is kept in f32: ours is made in f64.

local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local nadam = {}

---@class gpipe.NAdamOptions
---@field lr? number 0.002
---@field betas? number[] {0.9, 0.999}
---@field eps? number 1e-8
---@field weight_decay? number 0
---@field momentum_decay? number 0.004
---@field decoupled_weight_decay? boolean shrink values, as AdamW does

local kind = {
  who = "optim.NAdam",
  kind = "nadam",
  spec = {
    lr = rules.amount(2e-3),
    betas = rules.betas(0.9, 0.999),
    eps = rules.amount(1e-8),
    weight_decay = rules.amount(0),
    momentum_decay = rules.amount(4e-3),
    decoupled_weight_decay = { type = "boolean", default = false },
  },
  moments = function() return 2 end,
}

--- NAdam: Adam that steps along the mean of gradients predicted for the next step, with momentum b1
--- * (1 - 0.96^(step * momentum_decay) / 2). The weight decay is added to the gradient unless it is
--- decoupled.
--- Errors: a negative or NaN setting, a beta outside [0, 1), a parameter in two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.NAdam(model:parameters(), {lr = 1e-3})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? gpipe.NAdamOptions
---@return gpipe.Optimizer
function nadam.NAdam(params, opts) return new(kind, params, opts) end

return nadam
