-- lua/gpipe/nn/print.lua - `tostring(model)`: a model as a text that looks like its declaration.
--
-- The form is Torch7's, which Lua users know:
--   nn.Sequential {
--     [input -> (1) -> (2) -> output]
--     (1): nn.Linear(784 -> 256)
--     (2): nn.ReLU
--   }

local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"

local print = {}

local CHAIN = 8 -- layers that the chain of a Sequential shows before it is shortened

-- "[input -> (1) -> (2) -> output]"
local function chain(parts)
  local shown = { "input" }
  for i, part in ipairs(parts) do
    if #parts <= CHAIN or i < CHAIN - 1 or i == #parts then
      shown[#shown + 1] = "(" .. part.name .. ")"
    elseif i == CHAIN - 1 then
      shown[#shown + 1] = "..."
    end
  end
  shown[#shown + 1] = "output"
  return "[" .. table.concat(shown, " -> ") .. "]"
end

local function modules_of(module)
  local parts = {}
  for _, entry in ipairs(attributes.list(module)) do
    if entry.kind == "module" then parts[#parts + 1] = entry end
  end
  return parts
end

local lines_of

-- The lines of a part, the first one after its name, the others indented below it.
local function add_part(lines, part, seen)
  local text = lines_of(part.value, seen)
  lines[#lines + 1] = ("  (%s): %s"):format(part.name, text[1])
  for i = 2, #text do lines[#lines + 1] = "  " .. text[i] end
end

function lines_of(module, seen)
  local info, extra = class.of(module), module:describe()
  local head = extra == "" and info.shown or ("%s(%s)"):format(info.shown, extra)
  local parts = modules_of(module)
  if #parts == 0 or seen[module] then return { head } end
  seen[module] = true -- a module that holds itself is printed once
  local lines = { head .. " {" }
  if module.run_layers then lines[2] = "  " .. chain(parts) end
  for _, part in ipairs(parts) do add_part(lines, part, seen) end
  lines[#lines + 1] = "}"
  seen[module] = nil
  return lines
end

--- The text of a module and all below it.
---@param module nn.Module
---@return string
function print.text(module) return table.concat(lines_of(module, {}), "\n") end

return print
