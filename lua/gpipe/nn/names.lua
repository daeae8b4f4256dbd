-- lua/gpipe/nn/names.lua - lists the contents of a model by path name, and selects from them by
-- pattern.
--
-- A name is the path from the model, "3.attn.qkv.weight". It does not depend on how the model is
-- cut into stages, so neither do files and optimizer groups. A shared value is listed once, under
-- its first name.

local errors = require "gpipe.errors"
local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"
local parameter = require "gpipe.nn.parameter"

local names = {}

-- Turn a Lua pattern into a test of names; without a pattern all names pass.
local function matcher(who, pattern)
  if pattern == nil then return function() return true end end
  local good = type(pattern) == "string" and pcall(string.find, "", pattern)
  if not good then
    errors.raise("%s: the pattern is %s, expected a Lua pattern such as \"%%.bias$\"", who,
      errors.show(pattern))
  end
  return function(name) return name:find(pattern) ~= nil end
end

local function list(model, kind, fits)
  local found = {}
  attributes.walk(model, function(name_of, value, its_kind)
    if its_kind ~= kind then return end
    local name = name_of()
    if fits(name) then found[#found + 1] = parameter.entry(name, value) end
  end)
  return found
end

--- List the parameters in order of declaration.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- for _, p in ipairs(model:parameters()) do print(p.name, p.value.shape[1]) end
--- ```
---@param pattern? string a Lua pattern that names must contain, e.g. "%.weight$"
---@return nn.ParameterEntry[]
function names.parameters(model, pattern)
  return list(model, "parameter", matcher("parameters", pattern))
end

--- List the buffers in order of declaration.
--- ```lua
--- local Counter = nn.class("Counter")
--- function Counter:init() self.seen = nn.Buffer({1}) end
--- assert(Counter():buffers()[1].name == "seen")
--- ```
---@param pattern? string a Lua pattern
---@return nn.ParameterEntry[]
function names.buffers(model, pattern)
  return list(model, "buffer", matcher("buffers", pattern))
end

--- Iterate over the module itself (its name is "") and all modules below, each before its parts.
--- ```lua
--- local model = nn.Sequential {{"head", nn.Linear(4, 2)}}
--- for name, module in model:modules() do print(name, module) end
--- ```
---@return fun(): string?, nn.Module?
function names.modules(model)
  local found, at = { { "", model } }, 0
  attributes.walk(model, function(name_of, value, kind)
    if kind == "module" then found[#found + 1] = { name_of(), value } end
  end)
  return function()
    at = at + 1
    if found[at] then return found[at][1], found[at][2] end
  end
end

--- Iterate over the modules that a module holds itself, with their names.
--- ```lua
--- local model = nn.Sequential {nn.ReLU(), {"head", nn.Linear(4, 2)}}
--- for name, module in model:children() do print(name, module) end
--- ```
---@return fun(): string?, nn.Module?
function names.children(model)
  local held, at = attributes.list(model), 0
  return function()
    repeat at = at + 1 until not held[at] or held[at].kind == "module"
    if held[at] then return held[at].name, held[at].value end
  end
end

--- Call a function with every module below and then with the module itself; parts come before the
--- module that holds them. Returns the module.
--- Errors: fn is not a function.
--- ```lua
--- nn.Sequential {nn.Linear(4, 2)}:apply(function(m)
---   if m:is(nn.Linear) then m:freeze "bias" end
--- end)
--- ```
---@param fn fun(module: nn.Module, name: string)
---@return nn.Module self
function names.apply(model, fn)
  if type(fn) ~= "function" then
    errors.raise("apply: fn is %s, expected a function of modules", errors.show(fn))
  end
  local function visit(module, path, seen)
    if seen[module] then return end
    seen[module] = true
    for name, part in names.children(module) do
      visit(part, path == "" and name or path .. "." .. name, seen)
    end
    fn(module, path)
  end
  visit(model, "", {})
  return model
end

--- The module, parameter or buffer at a path, named as in parameters() and modules(); nil if there
--- is none. The path "" is the module itself.
--- ```lua
--- local model = nn.Sequential {nn.ReLU(), {"head", nn.Linear(4, 2)}}
--- assert(model:get "head.weight" == model[2].weight)
--- ```
---@param path string
---@return nn.Module|gpipe.Tensor|nil
function names.get(model, path)
  if type(path) ~= "string" then
    errors.raise("get: the path is %s, expected one such as \"3.fc.weight\"", errors.show(path))
  end
  if path == "" then return model end
  for _, entry in ipairs(attributes.list(model)) do
    if entry.name == path then return entry.value end
    if entry.kind == "module" and path:sub(1, #entry.name + 1) == entry.name .. "." then
      return names.get(entry.value, path:sub(#entry.name + 2))
    end
  end
end

local function set_frozen(who, model, pattern, frozen)
  local chosen = list(model, "parameter", matcher(who, pattern))
  if #chosen == 0 then
    local first = names.parameters(model)[1]
    local hint = first and ("names look like '%s'"):format(first.name) or "it has no parameters"
    errors.raise("%s: no parameter of %s matches %s (%s)", who, class.of(model).shown,
      errors.show(pattern), hint)
  end
  for _, entry in ipairs(chosen) do entry.param:set_frozen(frozen) end
  return model
end

--- Freeze the parameters whose names contain a pattern: no gradient, no optimizer state.
--- Errors: nothing matches; the model belongs to a live pipeline.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 8), nn.Linear(8, 2)}:freeze("^1%.")
--- ```
---@param pattern? string a Lua pattern; all when left out
---@return nn.Module self
function names.freeze(model, pattern) return set_frozen("freeze", model, pattern, true) end

--- Undo freeze.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 8)}:freeze():unfreeze("bias$")
--- ```
---@param pattern? string a Lua pattern; all when left out
---@return nn.Module self
function names.unfreeze(model, pattern) return set_frozen("unfreeze", model, pattern, false) end

return names
