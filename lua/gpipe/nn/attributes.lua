-- lua/gpipe/nn/attributes.lua - what a module holds: parameters, buffers and sub-modules by name.
--
-- Everything that needs names (parameters, state dictionaries, freezing, printing, labels of
-- errors) walks over the lists of this file. Plain tables are searched too, so a list of blocks
-- assigned to `self.blocks` gives `blocks.1`, `blocks.2`; without that they would silently stay
-- untrained.

local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local parameter = require "gpipe.nn.parameter"

local attributes = {}

--- How many levels modules may be nested. Lua's stack has a million slots, and the frames of one
--- level's `forward` take about a hundred at most.
attributes.LEVELS = 10000

---@alias nn.Kind "module"|"parameter"|"buffer"

---@param value any
---@return nn.Kind?
local function kind_of(value)
  return class.of(value) and "module" or parameter.kind(value)
end

-- The keys of a table: positions first, in order, then the other names in alphabetical order.
local function table_keys(list)
  local keys = {}
  for key in pairs(list) do
    if type(key) == "string" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  for i = #list, 1, -1 do table.insert(keys, 1, i) end
  return keys
end

local function add(found, name, value, seen)
  local kind = kind_of(value)
  if kind then
    found[#found + 1] = { name = name, value = value, kind = kind }
  elseif type(value) == "table" and getmetatable(value) == nil and not seen[value] then
    seen[value] = true -- a user's table may contain itself
    for _, key in ipairs(table_keys(value)) do
      add(found, name .. "." .. key, value[key], seen)
    end
  end
end

--- List what a module itself holds, in order of declaration.
---@param module nn.Module
---@return {name: string, value: any, kind: nn.Kind}[]
function attributes.list(module)
  class.refuse("nn.Module", "the module of a method", module)
  local found, seen = {}, {}
  for _, key in ipairs(module[class.ORDER]) do
    add(found, module:attribute_name(key), rawget(module, key), seen)
  end
  return found
end

--- Errors: the module at this depth is nested too deeply (Lua would say "stack overflow").
---@param depth integer
function attributes.check_depth(depth)
  if depth <= attributes.LEVELS then return end
  errors.raise("nn.Module: modules are nested %d deep, expected at most %d (does a module hold or "
    .. "call itself?)", depth, attributes.LEVELS)
end

-- A module or parameter that occurs twice is visited at its first name only.
local function walk(module, path, depth, visit)
  attributes.check_depth(depth)
  for _, entry in ipairs(attributes.list(module)) do
    local value = entry.value
    if not path.seen[value] then
      path.seen[value] = true
      path[depth], path.depth = entry.name, depth
      visit(path.name, value, entry.kind)
      if entry.kind == "module" then walk(value, path, depth + 1, visit) end
    end
  end
end

--- Visit everything below a module, in order of declaration; a module comes before its contents. A
--- name is built only when the visitor asks for it, so a walk costs as much as there are entries,
--- however deeply the model is nested.
---@param module nn.Module
---@param visit fun(name_of: (fun(): string), value: any, kind: nn.Kind) name_of: during the visit
function attributes.walk(module, visit)
  local path = { seen = { [module] = true } }
  function path.name() return table.concat(path, ".", 1, path.depth) end
  walk(module, path, 1, visit)
end

-- ---- replaced values -------------------------------------------------------------------------

-- Record the place of a value, and the places of the values in a plain table; inside: the place of
-- the module.
local function note(slots, inside, holder, key, name, seen)
  local value = rawget(holder, key)
  local kind = kind_of(value)
  if kind then
    slots[#slots + 1] = {
      holder = holder, key = key, value = value, name = name, kind = kind, inside = inside,
    }
  elseif type(value) == "table" and getmetatable(value) == nil and not seen[value] then
    seen[value] = true
    for _, inner in ipairs(table_keys(value)) do
      note(slots, inside, value, inner, name .. "." .. inner, seen)
    end
  end
end

local function note_module(slots, module, inside, seen)
  local first = #slots + 1
  for _, key in ipairs(module[class.ORDER]) do
    note(slots, inside, module, key, module:attribute_name(key), seen)
  end
  for i = first, #slots do
    local slot = slots[i]
    if slot.kind == "module" and not seen[slot.value] then
      seen[slot.value] = true
      note_module(slots, slot.value, slot, seen)
    end
  end
end

--- The places where everything below a module is stored, for attributes.replaced. Names are built
--- only when they are asked for, so places cost as much as there are entries, however deeply the
--- model is nested.
---@param module nn.Module
---@return table[]
function attributes.places(module)
  local slots = {}
  note_module(slots, module, nil, { [module] = true })
  return slots
end

local function path_of(slot)
  local names = {}
  while slot do
    table.insert(names, 1, slot.name)
    slot = slot.inside
  end
  return table.concat(names, ".")
end

--- The first place whose value was replaced. The check costs one table access for each place.
---@param slots table[]
---@return string? name
---@return nn.Kind? kind
function attributes.replaced(slots)
  for _, slot in ipairs(slots) do
    if rawget(slot.holder, slot.key) ~= slot.value then return path_of(slot), slot.kind end
  end
end

return attributes
