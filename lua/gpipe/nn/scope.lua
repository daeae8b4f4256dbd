-- lua/gpipe/nn/scope.lua - tracks which module is running, so that errors and traces can name it.
--
-- A module does not know its own path, because it may be part of several models. But when a module
-- is called while another one runs, its path is looked up among the contents of that one. The
-- runtime receives the same path through core.enter, so that a failing op names the layer it was
-- traced in.

local core = require "gpipe.core"
local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"

local scope = {}

---@class nn.Frame
---@field module nn.Module
---@field key string "fc", its name in the module that called it; "" for the outermost module
---@field inner any the runtime's own scope
---@field depth integer
---@field thread thread the coroutine that runs it
---@field used? table<string, boolean> the skips that it stashed or popped so far; nn/skip/values.lua
---@field skips? table the values stashed in this run of the outermost module
local Frame = {}

local stack, depth = {}, 0 ---@type nn.Frame[], integer

-- Leave by depth: coroutines that died inside a module leave frames behind, and entering drops
-- them.
function Frame.__close(frame)
  while depth >= frame.depth do
    stack[depth], depth = nil, depth - 1
  end
  local _inner <close> = frame.inner
end

-- The names of the modules that a module holds itself. It mostly calls no others, so there is no
-- need to list everything below every module of a deeply nested model.
local function own_paths(module)
  local paths = setmetatable({}, { __mode = "k" })
  for _, entry in ipairs(attributes.list(module)) do
    if entry.kind == "module" and not paths[entry.value] then paths[entry.value] = entry.name end
  end
  module[class.PATHS] = paths
  return paths
end

-- The path of a module further below, or its class name if it was never assigned.
local function find_below(parent, module)
  local path = class.of(module).name
  attributes.walk(parent, function(name_of, value)
    if value == module then path = name_of() end
  end)
  return path
end

-- The path of a module from the one that calls it. A cached path is used if there is one; otherwise
-- the path is looked up again, because modules may be assigned at any time.
local function key_of(parent, module)
  local paths = parent[class.PATHS]
  local key = paths and paths[module]
  if key then return key end
  paths = own_paths(parent)
  paths[module] = paths[module] or find_below(parent, module)
  return paths[module]
end

-- "3.fc"; "" if only the outermost module runs.
local function path_of(deepest)
  local keys = {}
  for d = 1, deepest do
    if stack[d].key ~= "" then keys[#keys + 1] = stack[d].key end
  end
  return table.concat(keys, ".")
end

--- Enter a module until the returned value is closed; nil if it is the innermost one already.
---@param module nn.Module
---@return nn.Frame?
function scope.enter(module)
  local parent, thread = stack[depth], coroutine.running()
  while parent and parent.thread ~= thread and coroutine.status(parent.thread) == "dead" do
    stack[depth], depth = nil, depth - 1
    parent = stack[depth]
  end
  if parent and parent.module == module then return nil end
  local key = parent and key_of(parent.module, module) or ""
  attributes.check_depth(depth + 1)
  local inner = core.enter(key, scope.describe(module))
  depth = depth + 1
  local frame = setmetatable({
    module = module, key = key, inner = inner, depth = depth, thread = thread,
  }, Frame)
  stack[depth] = frame
  return frame
end

--- The frame of the module that runs now; nil if none runs.
---@return nn.Frame?
function scope.innermost() return stack[depth] end

--- The frame of the module that the script itself called; nil if none runs.
---@return nn.Frame?
function scope.outermost() return stack[1] end

--- The description of a module: "Linear 256 -> 10".
---@param module nn.Module
---@return string
function scope.describe(module)
  class.refuse("nn.describe", "the module", module)
  if not class.of(module) then
    errors.raise("nn.describe: the module is %s, expected a module", errors.show(module))
  end
  local name, extra = class.of(module).name, module:describe()
  return extra == "" and name or name .. " " .. extra
end

--- The name of a running module in messages: "3.fc (Linear 256 -> 10)".
---@param module nn.Module
---@return string
function scope.label(module)
  local frame = stack[depth]
  local text = scope.describe(module)
  local path = frame and frame.module == module and path_of(depth) or ""
  return path == "" and text or ("%s (%s)"):format(path, text)
end

return scope
