-- lua/gpipe/nn/print.lua - `tostring(model)`: prints a model as a text that looks like its
-- declaration.
--
-- The format is Torch7's, which Lua users know:
--   nn.Sequential {
--     [input -> (1) -> (2) -> output]
--     (1): nn.Linear(784 -> 256)  200,960 parameters
--     (2): nn.ReLU
--   }  200,960 parameters
--
-- Lines are written one after the other. Deeply nested modules are left out, because the indents
-- alone would grow with the square of the depth.

local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"

local print = {}

local DEEPEST = 32 -- levels that are shown
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

-- "1,234,567"
local function grouped(count)
  local text = tostring(count)
  return (text:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

-- "  200,960 parameters"; "" if there are none.
local function counted_text(count)
  if count == 0 then return "" end
  return ("  %s parameter%s"):format(grouped(count), count == 1 and "" or "s")
end

-- Count the elements of the parameters of a module and all below it. Parameters that were counted
-- before are left out, because the model holds shared ones once.
local function count_parameters(module, counted)
  local total = 0
  local function visit(_, value, kind)
    if kind ~= "parameter" or counted[value] then return end
    counted[value] = true
    total = total + value:numel()
  end
  pcall(attributes.walk, module, visit) -- a model that is too deep is printed in part
  return total
end

-- The text for the parameters that a module with parts holds itself; its parts print their own.
local function own_text(module, counted)
  local own = 0
  for _, entry in ipairs(attributes.list(module)) do
    if entry.kind == "parameter" and not counted[entry.value] then
      counted[entry.value], own = true, own + entry.value:numel()
    end
  end
  return own == 0 and "" or counted_text(own) .. " of its own"
end

local add_module

-- The parts of a module, indented, and the line that closes it.
local function add_parts(out, parts, depth, module)
  local indent = ("  "):rep(depth)
  if module.run_layers then out[#out + 1] = ("%s  %s"):format(indent, chain(parts)) end
  for _, part in ipairs(parts) do
    add_module(out, part.value, depth + 1, ("%s  (%s): "):format(indent, part.name))
  end
  out[#out + 1] = ("%s}%s"):format(indent, depth > 0 and own_text(module, out.counted) or "")
end

-- out: the lines so far; open: the modules around the current line; counted: parameters counted so
-- far.
function add_module(out, module, depth, before)
  local info, extra = class.of(module), module:describe()
  local head = before .. (extra == "" and info.shown or ("%s(%s)"):format(info.shown, extra))
  local parts = modules_of(module)
  if #parts == 0 or out.open[module] then
    local own = depth > 0 and counted_text(count_parameters(module, out.counted)) or ""
    out[#out + 1] = head .. own
  elseif depth >= DEEPEST then
    out[#out + 1] = ("%s { ... }%s"):format(head,
      counted_text(count_parameters(module, out.counted)))
  else
    out.open[module] = true -- a module that contains itself is printed once
    out[#out + 1] = head .. " {"
    add_parts(out, parts, depth, module)
    out.open[module] = nil
  end
end

--- The text of a module and all below it, with parameter counts for modules that have parts.
---@param module nn.Module
---@return string
function print.text(module)
  local out = { open = {}, counted = {} }
  add_module(out, module, 0, "")
  if #out > 1 then out[#out] = out[#out] .. counted_text(count_parameters(module, {})) end
  return table.concat(out, "\n")
end

return print
