-- gpipe/optim/group.lua - groups of parameters that share settings, and the checks of settings.
--
-- A setting is looked up in the group, then in the optimizer. Settings are checked when they are
-- set, so that a step cannot fail for them.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local groups = {}

-- Settings that may change while training; the others determine the shape of the state.
groups.MUTABLE = { lr = true, weight_decay = true }

-- The object's own fields, kept apart from what users index.
local fields = setmetatable({}, { __mode = "k" }) ---@type table<table, table>
groups.fields = fields

-- ---- settings --------------------------------------------------------------------------------

function groups.set(who, settings, spec, key, value)
  if not spec[key] then
    local names = {}
    for name in pairs(spec) do names[#names + 1] = name end
    table.sort(names)
    errors.raise("%s: there is no setting '%s'%s", who, tostring(key),
      errors.hint(key, names, "settings"))
  end
  if not groups.MUTABLE[key] then
    errors.raise("%s: %s cannot change after the optimizer was made", who, key)
  end
  local rule = { required = true }
  for name, part in pairs(spec[key]) do rule[name] = part end
  rule.default = nil
  settings[key] = options.argument(who, key, value, rule)
end

-- Read a name that is neither a setting nor a method: nil, unless it looks like a misspelt one.
function groups.missing(f, key, more)
  local names = table.move(more, 1, #more, 1, {})
  for name in pairs(f.spec) do names[#names + 1] = name end
  table.sort(names)
  errors.refuse_near(f.who, key, names)
end

local Group = { __name = "gpipe.OptimizerGroup" }

function Group.__index(group, key)
  local f = fields[group]
  if key == "params" then return f.entries end
  local own = f.own[key]
  if own ~= nil then return own end
  if f.defaults[key] ~= nil or f.spec[key] then return f.defaults[key] end
  return groups.missing(f, key, { "params" })
end

-- The names that completion offers.
function Group.fields(group)
  local f = fields[group]
  local found = { params = f.entries }
  for name in pairs(f.spec) do found[name] = group[name] end
  return found
end

function Group.__newindex(group, key, value)
  local f = fields[group]
  groups.set(f.who, f.own, f.spec, key, value)
end

-- The settings of one group for the C side: those that the rule has.
function groups.hyper(group)
  local f, found = fields[group], {}
  for name in pairs(f.spec) do found[name] = group[name] end
  local weight = found.alpha or found.rho
  local betas = found.betas or { weight, weight }
  found.beta1, found.beta2 = betas[1], betas[2]
  found.decoupled, found.since = found.decoupled_weight_decay, f.since
  if found.etas then
    found.shrink, found.grow = found.etas[1], found.etas[2]
    found.least, found.most = found.step_sizes[1], found.step_sizes[2]
  end
  return found
end

-- Make the object of a group, which the optimizer and the user share. since: steps made before the
-- group was added.
function groups.make(who, number, given, defaults, spec, since)
  local object = setmetatable({}, Group)
  fields[object] = {
    who = ("%s: group %d"):format(who, number), entries = given.entries, own = given.own,
    defaults = defaults, spec = spec, since = since,
  }
  return object
end

--- The number of steps before each group was added, as a list; nil if all groups were there from
--- the start.
---@param list table[]
---@return integer[]?
function groups.since(list)
  local since, any = {}, false
  for i, group in ipairs(list) do
    since[i] = fields[group].since
    any = any or since[i] > 0
  end
  return any and since or nil
end

--- Restore these numbers; a group without one was there from the start.
---@param list table[]
---@param since integer[]
function groups.set_since(list, since)
  for i, group in ipairs(list) do fields[group].since = since[i] or 0 end
end

return groups
