-- lua/gpipe/optim/settings.lua - the part of an optimizer's state that is not moments: the number
-- of steps, and the settings that may change while training. Checkpoints keep it.

local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local grouping = require "gpipe.optim.group"

local settings = {}

local fields = grouping.fields

--- Return the settings as a plain table.
---@param opt gpipe.Optimizer
---@return table
function settings.get(opt)
  local f = fields[opt]
  local saved = { kind = f.who, steps = f.handle:steps(), defaults = {}, groups = {} }
  for key in pairs(grouping.MUTABLE) do saved.defaults[key] = f.defaults[key] end
  for i, group in ipairs(f.groups) do
    saved.groups[i] = { since = fields[group].since }
    for key in pairs(grouping.MUTABLE) do saved.groups[i][key] = fields[group].own[key] end
  end
  return saved
end

--- Raise if the settings are those of another optimizer.
---@param who string
---@param opt gpipe.Optimizer
---@param saved table of settings.get()
function settings.check(who, opt, saved)
  local f = fields[opt]
  if saved.kind ~= f.who or #saved.groups ~= #f.groups then
    errors.raise("%s: the optimizer that was saved is %s with %s, expected %s with %d",
      who, saved.kind, counted(#saved.groups, "group"), f.who, #f.groups)
  end
end

--- Restore such settings.
---@param opt gpipe.Optimizer
---@param saved table
function settings.restore(opt, saved)
  local f = fields[opt]
  f.handle:set_steps(saved.steps)
  for key, value in pairs(saved.defaults) do opt[key] = value end
  for i, own in ipairs(saved.groups) do
    for key, value in pairs(own) do
      if key ~= "since" then f.groups[i][key] = value end
    end
    fields[f.groups[i]].since = own.since or 0
  end
end

return settings
