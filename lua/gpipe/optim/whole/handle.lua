-- lua/gpipe/optim/whole/handle.lua - the object behind an optimizer whose rule works on whole
-- matrices; it has the interface of core.optimizer_new's objects.
--
-- The rule is written in tensor operations, and runs in the dtype and on the device of each
-- parameter, in opt:step() and never as an action of a schedule. One update is
-- `rule.update(value, gradient, moments, settings, step)`, which returns the new value; it may
-- write the moments in place.

local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local no_grad = require("gpipe.gradient").no_grad
local remark = require "gpipe.ranks.remark"
local shared = require "gpipe.ranks.settings"

---@class gpipe.WholeRule
---@field moments integer how many a parameter may have
---@field shape fun(shape: integer[], k: integer): integer[]? the shape of moment k; nil: there is
--- none
---@field update fun(value, gradient, moments, settings, step): gpipe.Tensor

local Handle = {}
Handle.__index = Handle

local handle = {}

--- Make an object with the methods of core.optimizer_new's: step, steps, set_steps, moment.
---@param who string
---@param rule gpipe.WholeRule
---@param groups table[] with `params`, lists of {name, param}
function handle.new(who, rule, groups)
  return setmetatable({ who = who, rule = rule, groups = groups, count = 0, kept = {} }, Handle)
end

--- Steps so far.
function Handle:steps() return self.count end

--- Set the number of steps.
function Handle:set_steps(n) self.count = n end

--- Moment k of a parameter, on the parameter's device; nil if the rule keeps none, or another rank
--- has it.
function Handle:moment(param, k)
  local shape = self.rule.shape(param.shape, k)
  if not shape or core.param_away(param) then return nil end
  local moments = self.kept[param] or {}
  local moment = moments[k]
    or create.zeros(shape, { dtype = param.dtype, device = param.device })
  if moment.device ~= param.device then moment = moment:to(param.device) end
  self.kept[param], moments[k] = moments, moment
  return moment
end

-- The parameters that have gradients here, with the settings of their groups; and all that have
-- some on any rank.
local function trained(self, hypers)
  local list, params = {}, {}
  for g, group in ipairs(self.groups) do
    for _, entry in ipairs(group.params) do
      local param = entry.param
      if param.grad then list[#list + 1] = { param = param, settings = hypers[g] } end
      if param.grad or core.param_away(param) and not param:is_frozen() then
        params[#params + 1] = param
      end
    end
  end
  if #params == 0 then
    errors.raise("%s: no parameter has a gradient, expected pipe:step() or backward() of a loss "
      .. "before", self.who)
  end
  return list, params
end

local function say_skipped(who)
  remark("the gradients of this step of %s are not finite, so nothing was updated (reported once)",
    who)
end

--- Update all parameters. If gradients are not finite, nothing is updated, which is said once.
---@param hypers table[] settings of each group
---@return boolean false: the caller need not report anything
function Handle:step(hypers)
  local list, params = trained(self, hypers)
  shared.agree("opt:step", params, self.count, hypers)
  -- The norm is finite only if all gradients are.
  local length = core.clip_grad_norm(params, math.huge)
  if length - length ~= 0 then
    if not self.said then say_skipped(self.who) end
    self.said = true
    return false
  end
  no_grad(function()
    for _, entry in ipairs(list) do
      local param, moments = entry.param, {}
      for k = 1, self.rule.moments do moments[k] = self:moment(param, k) end
      param:copy_(self.rule.update(param:value(), param.grad, moments, entry.settings,
        self.count + 1 - (entry.settings.since or 0)))
    end
  end)
  self.count = self.count + 1
  return false
end

return handle
