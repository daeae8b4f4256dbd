-- lua/gpipe/pipeline/plan/named_balance.lua - `balance = "parameters"` and the other words: the
-- layers of each stage, by what is to be even.
--
-- The names are DeepSpeed's partition methods, and two for what is measured and planned. The
-- schedule says how many stages there are.
-- Source: deepspeed/runtime/pipe/module.py, _partition_layers.

local balance = require "gpipe.pipeline.plan.balance"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local even = require "gpipe.pipeline.plan.partition.even"

local named = {}

local WHO = "gp.pipeline"
local TYPE = "^type:(.+)$"
local NAMES = { "memory", "parameters", "time", "type:PATTERN", "uniform" }
local WANTED = 'a list of layers per stage, such as {2, 1} (without it stages get parameters '
  .. 'evenly), or "parameters", "uniform", "type:PATTERN", "time" or "memory"'

--- Say what is wrong with the option; nil if nothing is.
---@param v any
---@return string?
function named.check(v)
  if type(v) == "table" then return nil end
  if type(v) ~= "string" then return WANTED end
  if v:find(TYPE) then return nil end
  for _, name in ipairs(NAMES) do
    if v == name then return nil end
  end
  local near = errors.suggest(v, NAMES)
  return WANTED .. (near and (" (did you mean '%s'?)"):format(near) or "")
end

-- ---- even numbers -------------------------------------------------------------------------------

-- As many layers for each stage; the first ones have one more if that does not come out even.
local function uniform(model, stages)
  local list = {}
  for s = 1, stages do list[s] = #model // stages + (s <= #model % stages and 1 or 0) end
  return list
end

-- A pattern in small letters, except for the classes such as %S, which mean something else small.
local function lower(pattern)
  return (pattern:gsub("(%%?)(.)", function(percent, c)
    return percent == "%" and "%" .. c or c:lower()
  end))
end

-- Whether the name of a layer's class has one of the alternatives, in large or small letters.
local function matches(layer, alternatives)
  local name = class.of(layer).name:lower()
  for _, pattern in ipairs(alternatives) do
    local good, found = pcall(string.find, name, pattern)
    if not good then
      errors.raise("%s: balance names the pattern '%s': %s, expected a Lua pattern", WHO,
        errors.name(pattern), found)
    end
    if found then return true end
  end
  return false
end

local function class_names(model)
  local names, seen = {}, {}
  for i = 1, #model do
    local name = class.of(model[i]).name
    if not seen[name] then seen[name], names[#names + 1] = true, name end
  end
  return names
end

-- As many layers of some classes for each stage.
local function by_type(model, stages, pattern)
  local alternatives, costs, any = {}, {}, false
  for word in pattern:gmatch "[^|]+" do alternatives[#alternatives + 1] = lower(word) end
  for i = 1, #model do
    costs[i] = matches(model[i], alternatives) and 1 or 0
    any = any or costs[i] == 1
  end
  if not any then
    errors.raise("%s: balance = 'type:%s' matches no layer, expected a pattern for the name of a "
      .. "class (the layers are %s)", WHO, errors.name(pattern),
      errors.list(class_names(model), 20))
  end
  return (even.cut(WHO, costs, stages))
end

-- ---- what is measured and planned ---------------------------------------------------------------

---@class gpipe.BalanceFacts
---@field sample any {x, y}
---@field loss any
---@field chunks integer
---@field checkpoint string
---@field precision string
---@field device any the first stage's, {name, threads =}; false: none may be opened

-- The share of micro-batches that recompute.
local function recomputed(facts)
  if facts.checkpoint == "always" then return 1 end
  return facts.checkpoint == "except_last" and (facts.chunks - 1) / facts.chunks or 0
end

local function request_of(model, facts, word)
  if not facts.sample then
    errors.raise('%s: balance = "%s" needs option \'sample\', expected {x, y}: a batch to %s', WHO,
      word, word == "time" and "measure with" or "plan for")
  end
  return require("gpipe.profile.request").of(WHO, model, facts.sample,
    { chunks = facts.chunks, loss = facts.loss, precision = facts.precision })
end

local SECONDS = 0.3 -- to measure for

local function by_time(model, stages, facts)
  if facts.device == false then
    errors.raise('%s: balance = "time" is measured on a device, and a dry run opens none: expected '
      .. "the list that gp.balance_by_time returns", WHO)
  end
  local made = require("gpipe.profile").agree(request_of(model, facts, "time"),
    { device = facts.device, timeout = SECONDS })
  local costs = require("gpipe.balance").time_costs(made.layers, recomputed(facts))
  return (even.cut(WHO, costs, stages))
end

local PARAM_SCALE = 2 -- values and gradients; the optimizer is not known yet

local function by_memory(model, stages, facts)
  local rows = require("gpipe.profile").sizes(request_of(model, facts, "memory"),
    facts.device or "cpu:0")
  local costs = require("gpipe.balance").size_costs(rows, PARAM_SCALE)
  return (even.cut(WHO, costs, stages))
end

--- The layers of each stage, by a word of option `balance`; by parameters where there is none.
---@param word string?
---@param model nn.Sequential
---@param stages integer
---@param facts gpipe.BalanceFacts
---@return integer[]
function named.list(word, model, stages, facts)
  if word == nil or word == "parameters" then
    return balance.cut(balance.weights(model), stages)
  end
  if word == "uniform" then return uniform(model, stages) end
  if word == "time" then return by_time(model, stages, facts) end
  if word == "memory" then return by_memory(model, stages, facts) end
  return by_type(model, stages, word:match(TYPE))
end

return named
