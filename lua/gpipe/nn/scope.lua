-- lua/gpipe/nn/scope.lua - which module is running: what errors and traces name.
--
-- A module does not know its own path: it may sit in several models. The caller knows: when a
-- module is called while another one runs, its path is looked up among what that one holds. The
-- runtime is told the same path through core.enter, so that a failing op names the layer it was
-- traced in.

local core = require "gpipe.core"
local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"

local scope = {}

---@class nn.Frame
---@field module nn.Module
---@field path string "3.fc"; "" for the outermost module
---@field inner any the runtime's own scope
---@field depth integer
---@field thread thread the coroutine that runs it
local Frame = {}

local stack, depth = {}, 0 ---@type nn.Frame[], integer

-- Leaving is by depth, and entering drops what coroutines that died inside a module left behind.
function Frame.__close(frame)
  while depth >= frame.depth do
    stack[depth], depth = nil, depth - 1
  end
  local _inner <close> = frame.inner
end

local function paths_of(module)
  local paths = setmetatable({}, { __mode = "k" })
  attributes.walk(module, function(name, value, kind)
    if kind == "module" then paths[value] = name end
  end)
  module[class.PATHS] = paths
  return paths
end

-- The path of a module from the one that calls it; its class where it was never assigned.
local function key_of(parent, module)
  local paths = parent[class.PATHS] or paths_of(parent)
  local key = paths[module] or paths_of(parent)[module]
  return key or class.of(module).name
end

--- Enter a module until the returned value is closed; nil when it is the innermost one already.
---@param module nn.Module
---@return nn.Frame?
function scope.enter(module)
  local parent, thread = stack[depth], coroutine.running()
  while parent and parent.thread ~= thread and coroutine.status(parent.thread) == "dead" do
    stack[depth], depth = nil, depth - 1
    parent = stack[depth]
  end
  if parent and parent.module == module then return nil end
  local key, path = "", ""
  if parent then
    key = key_of(parent.module, module)
    path = parent.path == "" and key or parent.path .. "." .. key
  end
  local inner = core.enter(key, scope.describe(module))
  depth = depth + 1
  local frame = setmetatable({
    module = module, path = path, inner = inner, depth = depth, thread = thread,
  }, Frame)
  stack[depth] = frame
  return frame
end

--- What a module is, in words: "Linear 256 -> 10".
---@param module nn.Module
---@return string
function scope.describe(module)
  class.refuse("nn.describe", "the module", module)
  local name, extra = class.of(module).name, module:describe()
  return extra == "" and name or name .. " " .. extra
end

--- How messages name a module that runs now: "3.fc (Linear 256 -> 10)".
---@param module nn.Module
---@return string
function scope.label(module)
  local frame = stack[depth]
  local text = scope.describe(module)
  if not frame or frame.module ~= module or frame.path == "" then return text end
  return ("%s (%s)"):format(frame.path, text)
end

return scope
