-- lua/gpipe/scope.lua - `gp.scope`: a function whose tensors are freed when it returns.
--
-- The bindings list the boxes that are made inside the scope, with weak keys, so boxes that were
-- collected earlier need no attention. Memory itself is reference-counted: a view that is returned
-- keeps the memory that it shows.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local WEAK = { __mode = "k" }

-- Put the tensors of a value into a set: the value itself, and those in tables and functions at any
-- depth.
local function add_tensors(value, kept, seen)
  if is_tensor(value) then kept[value] = true return end
  local kind = type(value)
  if kind ~= "table" and kind ~= "function" or seen[value] then return end
  seen[value] = true
  if kind == "table" then
    for key, held in next, value do
      add_tensors(key, kept, seen)
      add_tensors(held, kept, seen)
    end
    return
  end
  for i = 1, math.huge do
    local name, held = debug.getupvalue(value, i)
    if not name then return end
    if name ~= "_ENV" then add_tensors(held, kept, seen) end
  end
end

-- Free the tensors that were made and are not kept; the others belong to the enclosing scope.
-- Parameters belong to their model, and values of a trace to the trace.
local function close(scope)
  core.list_made(scope.outer)
  for tensor in pairs(scope.made) do
    if scope.kept[tensor] then
      if scope.outer then scope.outer[tensor] = true end
    elseif core.is_plain(tensor) then
      tensor:free()
    end
  end
end

local Scope = { __close = close }

local function open()
  local scope = setmetatable({ made = setmetatable({}, WEAK), kept = {} }, Scope)
  scope.outer = core.list_made(scope.made)
  return scope
end

--- Call a function, and free the tensors that it made and does not return, at once and without the
--- collector; after an error free all of them.
---
--- The function may return tensors, and tables and functions that hold tensors, at any depth. A
--- tensor that was stored elsewhere (in a global, in a field of an older object) is freed too, and
--- using it is an error that says so. Parameters of models, and the memory of pipelines and
--- optimizers, are left alone. Make data sets and other objects that shall survive outside the
--- scope. Scopes may be nested.
--- Errors: those of the function; `coroutine.yield` in it.
--- ```lua
--- local norm = gp.scope(function()
---   local x = gp.randn {100, 100}
---   return (x * x):sum():sqrt()
--- end)
--- assert(norm:item() > 0)
--- ```
---@param fn function
---@param ... any its arguments
---@return any ... what it returns
local function scope(fn, ...)
  local meta = type(fn) == "table" and getmetatable(fn)
  if type(fn) ~= "function" and not (type(meta) == "table" and meta.__call) then
    errors.raise("gp.scope: the first argument is %s, expected a function", errors.show(fn))
  end
  local opened <close> = open()
  local results = table.pack(core.whole(fn, ...))
  add_tensors(results, opened.kept, {})
  return table.unpack(results, 1, results.n)
end

return scope
