-- gpipe/optim/sgd.lua - stochastic gradient descent, with momentum and Nesterov's look-ahead.

local errors = require "gpipe.errors"
local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local sgd = {}

local function check(who, group)
  if group.nesterov and group.momentum == 0 then
    errors.raise("%s: nesterov is true and momentum is 0, expected momentum > 0", who)
  elseif group.nesterov and group.dampening ~= 0 then
    errors.raise("%s: nesterov is true and dampening %g, expected 0", who, group.dampening)
  end
end

local kind = {
  who = "optim.SGD",
  kind = "sgd",
  spec = {
    lr = rules.amount(1e-3),
    momentum = rules.amount(0),
    dampening = { type = "number", above = -math.huge, below = math.huge, default = 0 },
    nesterov = { type = "boolean", default = false },
    weight_decay = rules.amount(0),
  },
  check = check,
  moments = function(group) return group.momentum > 0 and 1 or 0 end,
}

---@class gpipe.SGDOptions
---@field lr? number 0.001
---@field momentum? number 0
---@field dampening? number 0
---@field nesterov? boolean
---@field weight_decay? number 0

--- Gradient descent. With d = gradient + weight_decay * value and momentum it keeps m = momentum *
--- m + (1 - dampening) * d, where the first m is d, and steps along m; with Nesterov it steps along
--- d + momentum * m.
--- Errors: a negative or NaN setting, Nesterov without momentum or with dampening, a parameter in
--- two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.SGD(model:parameters(), {lr = 0.1, momentum = 0.9})
--- opt.lr = 0.05
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? gpipe.SGDOptions
---@return gpipe.Optimizer
function sgd.SGD(params, opts) return new(kind, params, opts) end

return sgd
