-- gpipe/optim/adadelta.lua - Adadelta: the size of a step follows from the sizes of earlier steps
-- and gradients.
-- Source: Zeiler 2012, "ADADELTA: an adaptive learning rate method", algorithm 1; formulas as in
-- PyTorch.

local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local adadelta = {}

local kind = {
  who = "optim.Adadelta",
  kind = "adadelta",
  spec = {
    lr = rules.amount(1),
    rho = rules.weight(0.9),
    eps = rules.amount(1e-6),
    weight_decay = rules.amount(0),
  },
  moments = function() return 2 end,
}

--- Adadelta: with d = gradient + weight_decay * value, it keeps means v of d^2 and u of the squared
--- steps (each mean = rho * mean + (1 - rho) * new). A step is lr * sqrt(u + eps) / sqrt(v + eps) *
--- d.
--- Errors: a negative or NaN setting, a rho outside [0, 1), a parameter in two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.Adadelta(model:parameters(), {rho = 0.95})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? {lr?: number, rho?: number, eps?: number, weight_decay?: number} lr: 1, rho: 0.9
---@return gpipe.Optimizer
function adadelta.Adadelta(params, opts) return new(kind, params, opts) end

return adadelta
