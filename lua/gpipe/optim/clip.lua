-- gpipe/optim/clip.lua - clips gradients by their joint norm, or element by element.

local call = require "gpipe.ranks.call"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local params = require "gpipe.optim.params"

local clip = {}

local function boxes_of(who, list)
  if type(list) ~= "table" then
    errors.raise("%s: params is %s, expected a list such as pipe:parameters()", who,
      errors.show(list))
  end
  local boxes = {}
  for i, entry in ipairs(list) do boxes[i] = params.check_entry(who, "params", i, entry) end
  return boxes
end

--- Scale all gradients down so that their joint 2-norm is at most `max`. Call it between
--- `pipe:step` and `opt:step`.
--- Errors: a max that is not above 0.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local pipe <close> = gp.pipeline(model, {loss = nn.MSELoss()})
--- pipe:step(gp.ones{8, 4}, gp.ones{8, 2})
--- local norm = gp.optim.clip_grad_norm(pipe:parameters(), 1.0)
--- ```
---@param list table `pipe:parameters()`
---@param max number math.huge: only measure
---@return number norm before clipping
function clip.clip_grad_norm(list, max)
  local who = "optim.clip_grad_norm"
  max = options.argument(who, "max", max, { type = "number", above = 0, required = true })
  local _ <close> = call.enter "gp.optim.clip_grad_norm"
  return core.clip_grad_norm(boxes_of(who, list), max)
end

--- Clamp every element of the gradients to -max .. max. Call it between `pipe:step` and `opt:step`.
--- Errors: a max that is not above 0.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local pipe <close> = gp.pipeline(model, {loss = nn.MSELoss()})
--- pipe:step(gp.ones{8, 4}, gp.ones{8, 2})
--- gp.optim.clip_grad_value(pipe:parameters(), 0.5)
--- ```
---@param list table `pipe:parameters()`
---@param max number
function clip.clip_grad_value(list, max)
  local who = "optim.clip_grad_value"
  max = options.argument(who, "max", max, { type = "number", above = 0, required = true })
  for _, param in ipairs(boxes_of(who, list)) do
    local grad = param.grad
    if grad then grad:clamp_(-max, max) end
  end
end

return clip
