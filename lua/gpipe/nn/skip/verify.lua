-- lua/gpipe/nn/skip/verify.lua - checks that every skip of a model begins and ends exactly once.
--
-- All violations are reported at once, for modules at any depth. Layers run in order, so a pop
-- needs a stash in an earlier layer or in its own. Mistakes in the order inside a layer show only
-- when it runs.

local errors = require "gpipe.errors"
local attributes = require "gpipe.nn.attributes"
local declare = require "gpipe.nn.skip.declare"
local scope = require "gpipe.nn.scope"

local verify = {}

---@class nn.SkipEnd
---@field layer integer position in the model
---@field shown string "3.body.1 (Pop x)"
---@field name string
---@field module nn.Module

-- All ends of one role in the order of the layers.
local function ends_of(model, role)
  local list = {}
  local function add(layer, path, module)
    local skips = declare.of(module)
    for _, name in ipairs(skips and skips[role] or {}) do
      list[#list + 1] = {
        layer = layer, name = name, module = module,
        shown = ("%s (%s)"):format(path, scope.describe(module)),
      }
    end
  end
  for i = 1, #model do
    local name = model:attribute_name(i)
    add(i, name, model[i])
    attributes.walk(model[i], function(name_of, value, kind)
      if kind == "module" then add(i, name .. "." .. name_of(), value) end
    end)
  end
  return list
end

local SHARED = {}

-- Index the ends by namespace and name; duplicates are faults.
local function index(list, word, faults)
  local found = {}
  for _, each in ipairs(list) do
    local space = declare.space_of(each.module, each.name) or SHARED
    found[space] = found[space] or {}
    local first = found[space][each.name]
    if first then
      faults[#faults + 1] = ("%s: '%s' is %s already by %s (isolate one of them in a namespace)")
        :format(each.shown, each.name, word, first.shown)
    else
      found[space][each.name] = each
    end
  end
  return found
end

local function partner(found, each)
  local space = declare.space_of(each.module, each.name) or SHARED
  return found[space] and found[space][each.name]
end

-- A hint if the other end exists in another namespace.
local function elsewhere(list, each)
  for _, other in ipairs(list) do
    if other.name == each.name then
      return (" (%s has it in another namespace)"):format(other.shown)
    end
  end
  return ""
end

local function pop_fault(each, stashes, stashed)
  local from = partner(stashed, each)
  if not from then
    return ("%s: '%s' is popped, but no layer stashes it%s"):format(each.shown, each.name,
      elsewhere(stashes, each))
  end
  if from.module == each.module then
    return ("%s: '%s' is both stashed and popped by it"):format(each.shown, each.name)
  end
  if from.layer > each.layer then
    return ("%s: '%s' is popped before %s stashes it"):format(each.shown, each.name, from.shown)
  end
end

--- Raise all violations of a model's stashes and pops in one message.
---@param who string
---@param model nn.Sequential
function verify.model(who, model)
  local faults = {}
  local stashes, pops = ends_of(model, "stash"), ends_of(model, "pop")
  local stashed, popped = index(stashes, "stashed", faults), index(pops, "popped", faults)
  for _, each in ipairs(pops) do faults[#faults + 1] = pop_fault(each, stashes, stashed) end
  for _, each in ipairs(stashes) do
    if not partner(popped, each) then
      faults[#faults + 1] = ("%s: '%s' is stashed, but no layer pops it%s"):format(each.shown,
        each.name, elsewhere(pops, each))
    end
  end
  if #faults == 0 then return end
  errors.raise("%s: stashes and pops do not match (%d %s)\n  %s", who, #faults,
    #faults == 1 and "fault" or "faults", table.concat(faults, "\n  "))
end

return verify
