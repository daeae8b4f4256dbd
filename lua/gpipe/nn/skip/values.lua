-- lua/gpipe/nn/skip/values.lua - the values of skips, from stash to pop.
--
-- The values belong to one run of the model: a call by the script of its outermost module, or a
-- pass of a pipeline's trace, whose layers are called one by one. In a trace they are symbolic like
-- all others, so the graph has an edge from the layer that stashed to the one that popped, and a
-- pipeline sends the value directly from stage to stage.

local arity = require "gpipe.nn.arity"
local errors = require "gpipe.errors"
local class = require "gpipe.nn.class"
local declare = require "gpipe.nn.skip.declare"
local scope = require "gpipe.nn.scope"

local values = {}

local NONE = {}   -- stands for nil: a skip that this run does not take
local SHARED = {} -- the key of names without a namespace

local active -- the values of a run over several calls (values.within)

local function current(module)
  if active then return active end
  local frame = scope.outermost()
  if not frame then
    errors.raise("%s: stash and pop work inside of forward, expected a module to be running",
      scope.describe(module))
  end
  frame.skips = frame.skips or {}
  return frame.skips
end

-- The names of one namespace.
local function names_of(module, name)
  local spaces = current(module)
  local key = declare.space_of(module, name) or SHARED
  spaces[key] = spaces[key] or {}
  return spaces[key]
end

-- Record that the running module used a skip that it declares.
local function note_use(module, role, name)
  local frame = scope.innermost()
  if not frame or frame.module ~= module then return end
  frame.used = frame.used or {}
  frame.used[role .. name] = true
end

local function check_declared(module, role, name)
  declare.check_name(role, "the name", name)
  if declare.has(module, role, name) then return end
  local info = class.of(module)
  errors.raise('%s: \'%s\' is not declared, expected nn.class("%s", nil, {%s = {"%s"}})',
    scope.label(module), name, info.builtin and "Name" or info.name, role, name)
end

--- Keep a value for the layer that pops this name.
---
--- Errors: a name that the class does not declare; a name that is already stashed; a value that is
--- not a tensor.
--- ```lua
--- local Keep = nn.class("Keep", nil, {stash = {"x"}})
--- function Keep:forward(x) self:stash("x", x) return x end
--- local model = nn.Sequential {Keep(), nn.ReLU(), nn.Pop("x", "add")}
--- assert(model(gp.ones {1}):item() == 2)
--- ```
---@param name string
---@param value? gpipe.Tensor nil: this run does not take the skip, pop returns nil
function values.stash(module, name, value)
  check_declared(module, "stash", name)
  if value ~= nil and getmetatable(value) ~= "gpipe.Tensor" then
    errors.raise("%s: the value of '%s' is %s, expected a tensor or nil", scope.label(module), name,
      errors.show(value))
  end
  local names = names_of(module, name)
  if names[name] then
    errors.raise("%s: '%s' is stashed already and was not popped", scope.label(module), name)
  end
  names[name] = value == nil and NONE or value
  note_use(module, "stash", name)
end

--- Take the value that an earlier layer stashed under this name; this is possible once.
---
--- Errors: a name that the class does not declare; a name that was not stashed in this run.
--- ```lua
--- local Add = nn.class("Add", nil, {pop = {"x"}})
--- function Add:forward(y) return y + self:pop("x") end
--- local model = nn.Sequential {nn.Stash("x"), nn.ReLU(), Add()}
--- assert(model(gp.ones {1}):item() == 2)
--- ```
---@param name string
---@return gpipe.Tensor? value nil if nil was stashed
function values.pop(module, name)
  check_declared(module, "pop", name)
  local names = names_of(module, name)
  local value = names[name]
  if value == nil then
    errors.raise("%s: '%s' has not been stashed in this run of the model", scope.label(module),
      name)
  end
  names[name] = nil
  note_use(module, "pop", name)
  if value ~= NONE then return value end
end

-- ---- runs ------------------------------------------------------------------------------------

local WORDS = { { "stash", "stashed" }, { "pop", "popped" } }

-- Check that all declared skips were used: a skip that was left out would leave its other end
-- without a value.
local function check_used(module, ...)
  local frame, skips = scope.innermost(), declare.of(module)
  local used = frame and frame.module == module and frame.used or {}
  for _, word in ipairs(WORDS) do
    local left = {}
    for _, name in ipairs(skips[word[1]]) do
      if not used[word[1] .. name] then left[#left + 1] = "'" .. name .. "'" end
    end
    if #left > 0 then
      errors.raise("%s: %s must be %s in forward but %s not (a run without it stashes nil)",
        scope.label(module), table.concat(left, ", "), word[2], #left == 1 and "was" or "were")
    end
  end
  if frame and frame.module == module then frame.used = nil end
  return ...
end

--- Run a module's forward, and check that it used all skips that it declares.
--- Errors: more values than the forward takes.
---@param module nn.Module the module that was entered
function values.forward(module, ...)
  arity.check_call(module, ...)
  if not declare.of(module) then return module:forward(...) end
  return check_used(module, module:forward(...))
end

--- Run f; its calls of layers count as one run of a model, with skip values of its own.
---@param f function
---@param kept? nn.SkipValue[] values that an earlier part of the same run stashed
---@return any ... what f returns
function values.within(f, kept)
  local outer = active
  local _restore <close> = setmetatable({}, { __close = function() active = outer end })
  active = {}
  for _, each in ipairs(kept or {}) do
    active[each.space] = active[each.space] or {}
    active[each.space][each.name] = each.value
  end
  return f()
end

---@class nn.SkipValue
---@field space any
---@field name string
---@field value any a tensor, or NONE, which stands for nil

--- The values that are stashed and not yet popped in this run.
---@return nn.SkipValue[]
function values.kept()
  local list = {}
  for space, names in pairs(active) do
    for name, value in pairs(names) do
      list[#list + 1] = { space = space, name = name, value = value }
    end
  end
  return list
end

return values
