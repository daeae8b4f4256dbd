-- lua/gpipe/tensor/stubs.lua - writes the annotations of those methods that are ops, from their
-- rows in ops.def.
--
-- meta.lua documents the methods with special forms. The rows of ops.def say everything about the
-- others, so that editors, readers and the test of examples know a new op without another edit.
-- scripts/reference.lua writes the text to a file.

local core = require "gpipe.core"

-- The type of an attribute in LuaCATS.
local TYPES = {
  int = "integer", maybe = "integer", flag = "boolean", real = "number", dtype = "gpipe.dtype",
  dim = "integer", dims = "integer|integer[]", shape = "integer[]", list = "integer[]",
}

local function type_of(attribute)
  if attribute.kind ~= "choice" then return TYPES[attribute.kind] end
  return '"' .. attribute.names:gsub(" ", '"|"') .. '"'
end

local function default_of(attribute)
  if attribute.kind == "choice" then
    return (' "%s" unless said'):format(attribute.names:match "^%S+")
  end
  if attribute.kind == "real" or attribute.kind == "int" then
    return (" %g unless said"):format(attribute.default)
  end
  return ""
end

-- The parameters of a method; the first operand is the tensor itself.
local function parameters(row)
  local lines, names = {}, {}
  local function add(name, rest)
    names[#names + 1] = name
    lines[#lines + 1] = ("---@param %s%s"):format(name, rest)
  end
  for i = 2, #row.operands do
    local name = i == 2 and "other" or row.operands[i].role:gsub("%W", "_")
    local optional = row.operands[i].presence == "optional" and "?" or ""
    add(name, optional .. " gpipe.Tensor" .. (row.numbers and "|number" or ""))
  end
  for _, attribute in ipairs(row.attributes) do
    add(attribute.name, "? " .. type_of(attribute) .. default_of(attribute))
  end
  return lines, table.concat(names, ", ")
end

local function stub(row)
  local lines, names = parameters(row)
  table.insert(lines, 1, "--- " .. row.text)
  for _, output in ipairs(row.outputs) do
    if not output.kept then
      lines[#lines + 1] = "---@return gpipe.Tensor" .. (output.kind == "bool" and " bool" or "")
    end
  end
  lines[#lines + 1] = ("function Tensor:%s(%s) end\n"):format(row.name, names)
  return table.concat(lines, "\n")
end

-- The stub of t:add_(o), which is t:copy_(t:add(o)). While a layer is traced, only Buffers can be
-- written.
local function stub_in_place(row)
  local lines, names = parameters(row)
  local example = row.text:match("`[^`]*`"):gsub(":" .. row.name .. "%(", ":" .. row.name .. "_(")
  table.insert(lines, 1, ("--- %s in place; the shape stays. %s"):format(row.name, example))
  lines[#lines + 1] = "---@return gpipe.Tensor self"
  lines[#lines + 1] = ("function Tensor:%s_(%s) end\n"):format(row.name, names)
  return table.concat(lines, "\n")
end

--- The text of a LuaCATS file with every method that is an op.
---@return string
return function()
  local parts = {
    "---@meta gpipe.Tensor.ops\n",
    "-- Made from the rows of runtime/ops/ops.def by scripts/reference.lua.\n",
    "---@class gpipe.Tensor\nlocal Tensor = {}\n",
  }
  for _, row in ipairs(core.contracts()) do
    if row.method then parts[#parts + 1] = stub(row) end
    if row.in_place then parts[#parts + 1] = stub_in_place(row) end
  end
  return table.concat(parts, "\n") .. "\nreturn Tensor\n"
end
