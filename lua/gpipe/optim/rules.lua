-- gpipe/optim/rules.lua - the option rules that optimizers share.

local errors = require "gpipe.errors"

local rules = {}

-- Refuse infinity, which is no learning rate; NaN fails the lower bound already.
local function finite(value)
  if value == math.huge then return "a finite number >= 0" end
end

-- Check two numbers in [0, 1): at 1 a mean would never move, and its correction would divide by 0.
local function betas(value)
  for key in pairs(value) do
    if key ~= 1 and key ~= 2 then return "two numbers such as {0.9, 0.999}" end
  end
  for i = 1, 2 do
    local beta = value[i]
    if type(beta) ~= "number" or not (beta >= 0 and beta < 1) then
      return ("two numbers in [0, 1) such as {0.9, 0.999}; number %d is %s"):format(i,
        errors.show(beta))
    end
  end
end

--- A number that is finite and not negative.
---@param default? number
---@return gpipe.OptionRule
function rules.amount(default)
  return { type = "number", min = 0, check = finite, default = default }
end

---@param first number
---@param second number
---@return gpipe.OptionRule
function rules.betas(first, second)
  return { type = "table", check = betas, default = { first, second } }
end

--- The weight of the past in a mean: in [0, 1).
---@param default number
---@return gpipe.OptionRule
function rules.weight(default)
  return { type = "number", min = 0, below = 1, default = default }
end

--- The same rules without their defaults: a group takes missing settings from the optimizer.
---@param spec table<string, gpipe.OptionRule>
---@return table<string, gpipe.OptionRule>
function rules.of_group(spec)
  local group = { params = { type = "table", required = true } }
  for name, rule in pairs(spec) do
    local copy = {}
    for key, value in pairs(rule) do copy[key] = value end
    copy.default, copy.required = nil, nil
    group[name] = copy
  end
  return group
end

return rules
