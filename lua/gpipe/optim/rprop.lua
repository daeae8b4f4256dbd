-- gpipe/optim/rprop.lua - Rprop: steps by the signs of gradients, for training on all data at once.
-- Source: Riedmiller and Braun 1993; formulas as in PyTorch.

local errors = require "gpipe.errors"
local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local rprop = {}

-- Make a check for two numbers, the first below the second, that `fits` accepts.
local function pair(wanted, fits)
  return function(value)
    for key in pairs(value) do
      if key ~= 1 and key ~= 2 then return wanted end
    end
    local a, b = value[1], value[2]
    if type(a) ~= "number" or type(b) ~= "number" or not fits(a, b) then
      return ("%s, not %s and %s"):format(wanted, errors.show(a), errors.show(b))
    end
  end
end

local etas = pair("two numbers such as {0.5, 1.2}, the first in (0, 1), the second above 1",
  function(a, b) return a > 0 and a < 1 and b > 1 and b < math.huge end)
local sizes = pair("two numbers such as {1e-6, 50}, the first above 0 and not above the second",
  function(a, b) return a > 0 and a <= b and b < math.huge end)

local kind = {
  who = "optim.Rprop",
  kind = "rprop",
  spec = {
    lr = rules.amount(1e-2),
    etas = { type = "table", check = etas, default = { 0.5, 1.2 } },
    step_sizes = { type = "table", check = sizes, default = { 1e-6, 50 } },
  },
  moments = function() return 2 end,
}

--- Rprop: each element has its own step size, and steps against the sign of its gradient. The size
--- starts at lr. It grows by etas[2] while the sign stays; when the sign turns, it shrinks by
--- etas[1], and the element does not move in that step. Use it with gradients of all data: the
--- signs of mini-batch gradients turn by chance.
--- Errors: a negative or NaN setting, a parameter in two groups.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.Rprop(model:parameters(), {lr = 0.01})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? {lr?: number, etas?: number[], step_sizes?: number[]} 0.01, {0.5, 1.2}, {1e-6, 50}
---@return gpipe.Optimizer
function rprop.Rprop(params, opts) return new(kind, params, opts) end

return rprop
