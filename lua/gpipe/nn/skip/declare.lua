-- lua/gpipe/nn/skip/declare.lua - declares which skip connections a module begins and ends.
--
-- A skip has a name and is declared, so that a model can be checked before anything runs: a class
-- declares it by `nn.class("Block", nil, {stash = {"x"}, pop = {"y"}})`; nn.Stash and nn.Pop
-- declare it for one instance. Namespaces distinguish two skips with the same name.

local errors = require "gpipe.errors"
local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"
local namespace = require "gpipe.nn.skip.namespace"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

local declare = {}

---@class nn.Skips
---@field stash string[]
---@field pop string[]

-- Check the names; a string is a single name.
local function check_names(who, what, value)
  local list = type(value) == "string" and { value } or value
  if type(list) ~= "table" then
    errors.raise('%s: %s is %s, expected a list of names such as {"identity"}', who, what,
      errors.show(value))
  end
  local seen = {}
  for i, name in ipairs(list) do
    declare.check_name(who, ("%s[%d]"):format(what, i), name)
    if seen[name] then errors.raise("%s: %s has '%s' twice", who, what, name) end
    seen[name] = true
  end
  return table.move(list, 1, #list, 1, {})
end

--- The name of a skip: a word. Errors: anything else.
---@return string
function declare.check_name(who, what, name)
  if type(name) ~= "string" or name == "" then
    errors.raise('%s: %s is %s, expected a name such as "identity"', who, what, errors.show(name))
  end
  return name
end

local function joined(base, own)
  local list = table.move(base or {}, 1, #(base or {}), 1, {})
  return table.move(own, 1, #own, #list + 1, list)
end

--- Declare these skips, and those of the base, for every instance of a class.
---@param info nn.ClassInfo
---@param opts {stash?: string[], pop?: string[]}
function declare.class(info, opts)
  local checked = options.check("nn.class", opts, {
    stash = { type = { "table", "string" }, default = {} },
    pop = { type = { "table", "string" }, default = {} },
  })
  local base = info.skips or {}
  info.skips = {
    stash = check_names("nn.class", "stash", joined(base.stash,
      check_names("nn.class", "stash", checked.stash))),
    pop = check_names("nn.class", "pop", joined(base.pop,
      check_names("nn.class", "pop", checked.pop))),
  }
end

--- The skips that a module itself declares; nil for most modules.
---@param module nn.Module
---@return nn.Skips?
function declare.of(module) return module[class.SKIPS] or nil end

--- The namespace of one of the module's names; nil for the namespace that all models share.
---@param module nn.Module
---@param name string
---@return nn.Namespace?
function declare.space_of(module, name) return module[class.SPACES][name] end

--- Whether a module declares this name as `role`.
---@param role "stash"|"pop"
function declare.has(module, role, name)
  local skips = declare.of(module)
  for _, declared in ipairs(skips and skips[role] or {}) do
    if declared == name then return true end
  end
  return false
end

-- ---- isolating -------------------------------------------------------------------------------

-- The module and all below that declare skips.
local function declaring(module)
  local found = { declare.of(module) and module or nil }
  attributes.walk(module, function(_, value, kind)
    if kind == "module" and declare.of(value) then found[#found + 1] = value end
  end)
  return found
end

local function all_names(modules)
  local list, seen = {}, {}
  for _, module in ipairs(modules) do
    local skips = declare.of(module)
    for _, name in ipairs(joined(skips.stash, skips.pop)) do
      if not seen[name] then list[#list + 1], seen[name] = name, true end
    end
  end
  return list, seen
end

-- Choose the names to put into the namespace: all of the module's names, or the given ones.
local function chosen(module, only, names, known)
  if only == nil then return known end
  local wanted = {}
  for _, name in ipairs(check_names("isolate", "option 'only'", only)) do
    if not known[name] then
      errors.raise("isolate: %s declares no skip '%s'%s", scope.describe(module), name,
        errors.hint(name, names, "names"))
    end
    wanted[name] = true
  end
  return wanted
end

--- Put the skips of a module and of all modules below it into a namespace, so that they are
--- distinct from others with the same names. A name that already has a namespace keeps it.
--- Errors: something that is not a namespace; a module without skips; a name that the module does
--- not declare.
--- ```lua
--- local function block()
---   return nn.Sequential {nn.Stash("x"), nn.Linear(4, 4), nn.Pop("x", "add")}
--- end
--- local model = nn.Sequential {block():isolate(nn.namespace()), block():isolate(nn.namespace())}
--- assert(model:flatten()(gp.ones {2, 4}).shape[2] == 4)
--- ```
---@param space nn.Namespace of nn.namespace()
---@param opts? {only?: string[]} these names; all when left out
---@return nn.Module self
function declare.isolate(module, space, opts)
  if not namespace.is(space) then
    errors.raise("isolate: the namespace is %s, expected one of nn.namespace()",
      errors.show(space))
  end
  local checked = options.check("isolate", opts, { only = { type = { "table", "string" } } })
  local modules = declaring(module)
  local names, known = all_names(modules)
  if #names == 0 then
    errors.raise("isolate: %s has no skips (nn.Stash, nn.Pop, or a class that declares them)",
      scope.describe(module))
  end
  local wanted = chosen(module, checked.only, names, known)
  for _, inner in ipairs(modules) do
    local spaces, skips = inner[class.SPACES], declare.of(inner)
    for _, name in ipairs(joined(skips.stash, skips.pop)) do
      if wanted[name] then spaces[name] = spaces[name] or space end
    end
  end
  return module
end

return declare
