-- lua/gpipe/shell/who.lua - `who()` in the interactive mode: lists the user's own globals.

local screen = require "gpipe.screen"
local sizes = require "gpipe.sizes"

local who = {}

local before = {} -- the globals that the session began with

--- Treat the globals that exist now as the program's own.
function who.begin()
  for name in next, _G do before[name] = true end
end

local function is_own(name)
  return type(name) == "string" and not before[name] and not name:find "^_%d*$"
end

-- The kind, shape and bytes of a value; the last two only for tensors.
local function describe(value)
  local meta = debug.getmetatable(value)
  local kind = meta and rawget(meta, "__name")
  if kind ~= "gpipe.Tensor" then return type(kind) == "string" and kind or type(value), "", 0 end
  local shape = table.concat(value.shape, "x")
  return value.dtype .. " tensor", shape == "" and "scalar" or shape, sizes.of(value)
end

--- Print one line for each of the user's own globals: name, kind, shape, bytes.
function who.print()
  local list = {}
  for name in next, _G do
    if is_own(name) then list[#list + 1] = name end
  end
  table.sort(list)
  for _, name in ipairs(list) do
    local kind, shape, bytes = describe(_G[name])
    local line = ("%-12s %-12s %-10s %s"):format(name, kind, shape,
      bytes > 0 and sizes.text(bytes) or "")
    print(screen.fold((line:gsub("%s+$", ""))))
  end
end

return who
