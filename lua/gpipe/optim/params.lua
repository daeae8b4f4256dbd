-- gpipe/optim/params.lua - reads the parameters that an optimizer is given: one list, or groups.
--
-- The result is groups of entries {name, param}, without frozen parameters and without duplicates.
-- Names are the keys of the state. If a name occurs again ("weight" of two layers whose parameters
-- were listed one by one), it becomes "weight#2".

local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"

local params = {}

-- ---- one entry -------------------------------------------------------------------------------

-- The declared parameter in an entry of model:parameters() or pipe:parameters().
local function param_of(entry)
  if type(entry) ~= "table" then return nil end
  if is_tensor(entry.param) then return entry.param end
  local value = entry.value
  return is_tensor(value) and value:is_parameter() and value or nil
end

--- The declared parameter and the name of one entry; raises if it is not an entry.
---@param who string
---@param where string "params" or "group 2"
---@param i integer
---@param entry any
---@return gpipe.Tensor param
---@return string name
function params.check_entry(who, where, i, entry)
  local param = param_of(entry)
  if not param then
    errors.raise("%s: element %d of %s is %s, expected an entry of pipe:parameters()", who, i,
      where,
      errors.show(entry))
  end
  return param, entry.name or ("parameter %d"):format(i)
end

local function check_list(who, where, list)
  if type(list) ~= "table" or type(list.parameters) == "function" then
    errors.raise("%s: %s is %s, expected a list such as pipe:parameters()", who, where,
      errors.show(list))
  end
  return list
end

-- ---- groups ----------------------------------------------------------------------------------

-- Check that each parameter and each name occurs once; return the name to use.
local function check_unique(who, seen, group, param, name)
  local before, given, times = seen[param], name, 1
  if before == group then
    errors.raise("%s: parameter '%s' is twice in group %d", who, name, group)
  elseif before then
    errors.raise("%s: parameter '%s' is in two groups, %d and %d", who, name, before, group)
  end
  while seen[name] do
    times = times + 1
    name = ("%s#%d"):format(given, times)
  end
  seen[param], seen[name] = group, group
  return name
end

-- Read a list. Frozen parameters count for the check of duplicates, but are not kept.
local function read_list(who, where, list, group, seen)
  local kept = {}
  for i, entry in ipairs(check_list(who, where, list)) do
    local param, name = params.check_entry(who, where, i, entry)
    name = check_unique(who, seen, group, param, name)
    if not param:is_frozen() then kept[#kept + 1] = { name = name, param = param } end
  end
  return kept
end

local function read_groups(who, given, spec)
  local groups, seen = {}, {}
  for g, group in ipairs(given) do
    local where = ("group %d"):format(g)
    local own = options.check(("%s: %s"):format(who, where), group, spec)
    groups[g] = { entries = read_list(who, where, own.params, g, seen), own = own }
    own.params = nil
  end
  return groups
end

--- Read the first argument of an optimizer.
--- Errors: something that is not an entry; a parameter given twice; nothing to train.
---@param who string
---@param given table a list of entries, or of groups {params = list, option = value, ...}
---@param spec table<string, gpipe.OptionRule> of a group
---@return {entries: {name: string, param: gpipe.Tensor}[], own: table}[]
function params.read(who, given, spec)
  check_list(who, "params", given)
  local first = given[1]
  local grouped = type(first) == "table" and getmetatable(first) == nil and first.params ~= nil
  local groups = grouped and read_groups(who, given, spec)
    or { { entries = read_list(who, "params", given, 1, {}), own = {} } }
  local count = 0
  for _, group in ipairs(groups) do count = count + #group.entries end
  if count == 0 then
    errors.raise("%s: there is nothing to train: %s", who,
      first == nil and "the list of parameters is empty" or "all parameters are frozen or left out")
  end
  return groups
end

--- Read one more group, for an optimizer that already has groups.
--- Errors: those of read; a parameter that one of the groups has.
---@param who string
---@param groups table[] with `params`, lists of {name, param}
---@param given table {params = list, option = value, ...}
---@param spec table<string, gpipe.OptionRule> of a group
---@return {entries: {name: string, param: gpipe.Tensor}[], own: table}
function params.read_more(who, groups, given, spec)
  local seen, number = {}, #groups + 1
  for g, group in ipairs(groups) do
    for _, entry in ipairs(group.params) do seen[entry.param], seen[entry.name] = g, g end
  end
  local where = ("group %d"):format(number)
  local own = options.check(("%s: %s"):format(who, where), given, spec)
  local entries = read_list(who, where, own.params, number, seen)
  own.params = nil
  if #entries == 0 then
    errors.raise("%s: %s: there is nothing to train: the list is empty, or all are frozen", who,
      where)
  end
  return { entries = entries, own = own }
end

return params
