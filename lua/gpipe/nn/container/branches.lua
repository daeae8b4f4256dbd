-- lua/gpipe/nn/container/branches.lua - the base of modules with several parts side by side: their
-- list, under the names "1", "2", ...

local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local scope = require "gpipe.nn.scope"

---@class nn.Branches: nn.Module
local Branches = class.new("Branches", Module, true)

--- Take a list of modules. Errors: something that is not a list, an empty list, an entry that is
--- not a module.
---@param who string
---@param list nn.Module[]
function Branches:take(who, list)
  if type(list) ~= "table" or class.of(list) or class.info(list) then
    check.fail(who, "the list of modules", list, "a list such as {a, b}")
  end
  if #list == 0 then errors.raise("%s: the list is empty, expected at least one module", who) end
  for key in pairs(list) do
    if math.type(key) ~= "integer" or key < 1 or key > #list then
      errors.raise("%s: there is a key %s, expected a list such as {a, b}", who, errors.show(key))
    end
  end
  for i, module in ipairs(list) do self[i] = check.module(who, "module " .. i, module) end
end

--- The output of part i on these inputs. Errors: it returned no tensor, or several.
---@return gpipe.Tensor
function Branches:single(i, ...)
  local outputs = table.pack(self[i](...))
  if outputs.n ~= 1 or not is_tensor(outputs[1]) then
    local shown = outputs.n == 1 and errors.show(outputs[1]) or outputs.n .. " values"
    errors.raise("%s: module %d (%s) returned %s, expected one tensor", scope.label(self), i,
      scope.describe(self[i]), shown)
  end
  return outputs[1]
end

return Branches
