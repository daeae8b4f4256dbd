-- lua/gpipe/plan/optimizer.lua - how much memory an optimizer keeps beside the parameters.

local errors = require "gpipe.errors"
local optim = require "gpipe.optim"
local moments_of = require("gpipe.optim.optimizer").moments
local parameter = require "gpipe.nn.parameter"
local zeros = require("gpipe.nn.initial").zeros

local optimizer = {}

local function names()
  local list = {}
  for name, value in pairs(optim) do
    if type(value) == "function" and name:find "^%u" then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

-- The constructor of a name, in large or small letters.
local function find(who, name)
  for _, known in ipairs(names()) do
    if type(name) == "string" and known:lower() == name:lower() then return optim[known], known end
  end
  errors.raise("%s: option 'optimizer' is %s, expected a name such as \"AdamW\", {\"SGD\", "
    .. "momentum = 0.9}, or an optimizer%s", who, errors.show(name),
    type(name) == "string" and errors.hint(name, names(), "optimizers") or "")
end

-- Make one for a parameter of a single element, and ask it.
local function ask(who, given)
  local settings = {}
  for key, value in pairs(type(given) == "table" and given or {}) do
    if key ~= 1 then settings[key] = value end
  end
  local make, name = find(who, type(given) == "table" and given[1] or given)
  if name == "LBFGS" then return 2 * (settings.history_size or 100), name end
  settings.lr = settings.lr or 1e-3
  local one = parameter.entry("one", parameter.Parameter({ 1 }, zeros()))
  return moments_of(make({ one }, settings)), name
end

--- How many numbers an optimizer keeps for each element of a parameter, and its name.
--- Errors: an optimizer that there is not, or an option that it does not have.
---@param who string
---@param given string|table a name, {name, option = ...}, or an optimizer
---@return integer moments
---@return string name
function optimizer.moments(who, given)
  local count = moments_of(given)
  if count then return count, tostring(given):match "^[^(]+" end
  return ask(who, given)
end

return optimizer
