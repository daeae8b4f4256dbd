-- gpipe/optim/lazy.lua - the object behind an optimizer, made when it is first needed.
--
-- The object draws the parameters and allocates the moments. A dry run plans models that are larger
-- than the machine, and its script still makes an optimizer: there the object stands aside until a
-- method needs it, as a script that trains without a pipeline does.

local dry_mode = require "gpipe.dry_mode"

local lazy = {}

local Lazy = { __name = "gpipe.LazyOptimizer" }

local made = setmetatable({}, { __mode = "k" }) -- [handle] = the object, once it is there
local makers = setmetatable({}, { __mode = "k" }) -- [handle] = function() -> the object

local function object_of(handle)
  made[handle] = made[handle] or makers[handle]()
  return made[handle]
end

local methods = {}

-- Nothing has been updated before the object is there.
function methods.steps(handle)
  return made[handle] and made[handle]:steps() or 0
end

function Lazy.__index(_, name)
  return methods[name] or function(handle, ...)
    local object = object_of(handle)
    return object[name](object, ...)
  end
end

--- What `make` returns for these arguments: now, or in a dry run at the first method that needs it.
---@param make fun(...): userdata|table
---@return userdata|table handle
function lazy.make(make, ...)
  if not dry_mode.is_on() then return make(...) end
  local handle, args = setmetatable({}, Lazy), table.pack(...)
  makers[handle] = function() return make(table.unpack(args, 1, args.n)) end
  return handle
end

--- Has the object been made?
function lazy.is_there(handle)
  return makers[handle] == nil or made[handle] ~= nil
end

return lazy
