-- lua/gpipe/options.lua - the one checker of option tables.
--
-- A misspelt option must never be ignored: ten hours of training with `momentun = 0.9` are worse
-- than an error. Every public function that takes options describes them in a spec and passes them
-- through `check`, so the defaults are next to the names.

local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local options = {}

-- ---- types -----------------------------------------------------------------------------------

-- Each test returns the value to keep, or nil if the value is not of the type.
local types = {
  any = function(v) return v end,
  number = function(v) return type(v) == "number" and v or nil end,
  -- A size that comes from a division arrives as 5.0; it is accepted as an integer.
  integer = function(v) return type(v) == "number" and math.tointeger(v) or nil end,
  string = function(v) return type(v) == "string" and v or nil end,
  table = function(v) return type(v) == "table" and v or nil end,
  callable = function(v)
    local meta = type(v) == "table" and getmetatable(v)
    if type(v) == "function" or (type(meta) == "table" and meta.__call) then return v end
  end,
  tensor = function(v) return is_tensor(v) and v or nil end,
}
types["function"] = function(v) return type(v) == "function" and v or nil end

local wanted = {
  any = "a value", number = "a number", integer = "an integer", string = "a string",
  table = "a table", callable = "a function", ["function"] = "a function", tensor = "a tensor",
  boolean = "true or false",
}

local function of_type(rule, value)
  local kinds = type(rule.type) == "table" and rule.type or { rule.type or "any" }
  for _, kind in ipairs(kinds) do
    if kind == "boolean" then -- separate, because here false is a value
      if type(value) == "boolean" then return true, value end
    else
      local kept = types[kind](value)
      if kept ~= nil then return true, kept end
    end
  end
  return false
end

-- "an integer >= 1 and <= 8", "one of \"always\", \"never\"".
local function describe(rule)
  if rule.called then return rule.called end
  if rule.choices then
    local quoted = {}
    for i, choice in ipairs(rule.choices) do quoted[i] = ('"%s"'):format(choice) end
    return "one of " .. table.concat(quoted, ", ")
  end
  local kinds = type(rule.type) == "table" and rule.type or { rule.type or "any" }
  local names = {}
  for i, kind in ipairs(kinds) do names[i] = wanted[kind] end
  local bounds = {}
  for _, b in ipairs { { "min", ">=" }, { "above", ">" }, { "max", "<=" }, { "below", "<" } } do
    if rule[b[1]] then bounds[#bounds + 1] = b[2] .. " " .. rule[b[1]] end
  end
  local text = table.concat(names, " or ")
  return #bounds > 0 and text .. " " .. table.concat(bounds, " and ") or text
end

local function in_range(rule, v)
  if type(v) ~= "number" then return true end
  return (rule.min == nil or v >= rule.min) and (rule.max == nil or v <= rule.max)
    and (rule.above == nil or v > rule.above) and (rule.below == nil or v < rule.below)
end

local function is_choice(choices, value)
  for _, choice in ipairs(choices) do
    if choice == value then return true end
  end
  return false
end

-- ---- the check -------------------------------------------------------------------------------

-- The names of a spec in alphabetical order.
local function names_of(spec)
  local names = {}
  for name in pairs(spec) do
    if type(name) == "string" and name ~= "..." then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local function check_value(who, key, value, rule)
  local where = type(key) == "string" and ("option '%s'"):format(key) or ("element %s"):format(key)
  local good, kept = of_type(rule, value)
  if not good or not in_range(rule, kept) then
    errors.raise("%s: %s is %s, expected %s", who, where, errors.show(value), describe(rule))
  end
  if rule.choices and not is_choice(rule.choices, kept) then
    local near = type(kept) == "string" and errors.suggest(kept, rule.choices)
    local hint = near and (" (did you mean '%s'?)"):format(near) or ""
    errors.raise("%s: %s is %s, expected %s%s", who, where, errors.show(value), describe(rule),
      hint)
  end
  local fault = rule.check and rule.check(kept)
  if fault then
    errors.raise("%s: %s is %s, expected %s", who, where, errors.show(value), fault)
  end
  return kept
end

-- What is wrong with a key that no rule is for: most often a model or a pipeline stands where the
-- options are expected.
local function refuse(who, opts, key, spec)
  local names = names_of(spec)
  local shown = errors.show(opts)
  if shown ~= "a table" then
    errors.raise("%s: the options are %s, expected a table (options are %s)", who, shown,
      table.concat(names, ", "))
  end
  shown = type(key) == "string" and errors.name(key) or errors.show(key)
  errors.raise("%s: unknown option '%s'%s", who, shown, errors.hint(key, names, "options"))
end

---@class gpipe.OptionRule
---@field type? string|string[] any number integer string boolean table function callable tensor
---@field default? any the value if the option is left out (not checked, not copied)
---@field called? string what is expected, in place of the words for the type
---@field required? boolean
---@field choices? any[] the only values allowed
---@field min? number smallest value
---@field max? number largest value
---@field above? number the value must be greater
---@field below? number the value must be less (NaN fails every bound)
---@field check? fun(value: any): string? returns what was expected if the value is wrong

--- Check an option table against a spec and return a fresh table with the defaults filled in. The
--- rule `["..."]` is for the elements 1, 2, ...; a rule with an integer key is for that element.
--- Errors: unknown key (with a suggestion), wrong type, out of range, missing: at the user's line.
---
--- Example: `local o = options.check("nn.Dropout", opts, {inplace = {type = "boolean"}})`
---@param who string the public function, as the user writes it
---@param opts table? nil counts as {}
---@param spec table<string|integer, gpipe.OptionRule>
---@return table
function options.check(who, opts, spec)
  if opts ~= nil and type(opts) ~= "table" then
    errors.raise("%s: the options are %s, expected a table", who, errors.show(opts))
  end
  local checked = {}
  for key, value in pairs(opts or checked) do
    local rule = spec[key] or (math.type(key) == "integer" and spec["..."])
    if not rule or key == "..." then refuse(who, opts, key, spec) end
    checked[key] = check_value(who, key, value, rule)
  end
  for key, rule in pairs(spec) do
    if checked[key] == nil and key ~= "..." then
      if rule.required then errors.raise("%s: missing option '%s'", who, key) end
      checked[key] = rule.default
    end
  end
  return checked
end

--- Check one positional argument, with the same messages.
---
--- Example: `dim = options.argument("nn.Linear", "in_features", dim, {type = "integer", min = 1})`
---@param who string
---@param name string the parameter
---@param value any
---@param rule gpipe.OptionRule
---@return any
function options.argument(who, name, value, rule)
  if value == nil then
    if rule.required then
      errors.raise("%s: %s is missing, expected %s", who, name, describe(rule))
    end
    return rule.default
  end
  local good, kept = of_type(rule, value)
  good = good and in_range(rule, kept) and (not rule.choices or is_choice(rule.choices, kept))
  local fault = good and rule.check and rule.check(kept)
  if not good or fault then
    errors.raise("%s: %s is %s, expected %s", who, name, errors.show(value),
      fault or describe(rule))
  end
  return kept
end

return options
