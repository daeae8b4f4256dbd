-- gpipe/optim/adam.lua - Adam, Adamax, and AdamW with decoupled weight decay.
-- Source: Kingma and Ba 2015 (Adam; Adamax: section 7.1); Loshchilov and Hutter 2019 (AdamW);
-- formulas as in PyTorch.

local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local adam = {}

local function kind_of(name, weight_decay, lr, amsgrad)
  return {
    who = "optim." .. name,
    kind = name:lower(),
    spec = {
      lr = rules.amount(lr or 1e-3),
      betas = rules.betas(0.9, 0.999),
      eps = rules.amount(1e-8),
      weight_decay = rules.amount(weight_decay),
      amsgrad = amsgrad and { type = "boolean", default = false },
    },
    moments = function(group) return amsgrad and group.amsgrad and 3 or 2 end,
  }
end

local plain, decoupled = kind_of("Adam", 0, nil, true), kind_of("AdamW", 0.01, nil, true)
local greatest = kind_of("Adamax", 0, 2e-3)

---@class gpipe.AdamOptions
---@field lr? number 0.001
---@field betas? number[] {0.9, 0.999}
---@field eps? number 1e-8
---@field weight_decay? number Adam: 0, AdamW: 0.01
---@field amsgrad? boolean divide by the largest mean of squares so far (Reddi et al. 2018)

--- Adam: means of the gradient and of its square, corrected for their start at zero. The weight
--- decay is added to the gradient.
--- Errors: a negative or NaN setting, a beta outside [0, 1), a parameter in two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.Adam(model:parameters(), {lr = 1e-3})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? gpipe.AdamOptions
---@return gpipe.Optimizer
function adam.Adam(params, opts) return new(plain, params, opts) end

--- AdamW: Adam with a weight decay (0.01 by default) that shrinks the values directly.
--- Errors: as Adam.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.AdamW({
---   {params = model:parameters("weight$"), weight_decay = 0.1},
---   {params = model:parameters("bias$"), weight_decay = 0},
--- }, {lr = 3e-4, betas = {0.9, 0.95}})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? gpipe.AdamOptions
---@return gpipe.Optimizer
function adam.AdamW(params, opts) return new(decoupled, params, opts) end

--- Adamax: Adam that divides by the largest absolute value of a gradient, which shrinks by the
--- second beta from step to step: u = max(b2 * u, |gradient| + eps).
--- Errors: as Adam.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.Adamax(model:parameters(), {lr = 1e-3})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? {lr?: number, betas?: number[], eps?: number, weight_decay?: number} lr: 0.002
---@return gpipe.Optimizer
function adam.Adamax(params, opts) return new(greatest, params, opts) end

return adam
