-- lua/gpipe/pipeline/plan/checkpoint.lua - option `checkpoint`: what is kept of a forward pass and
-- what is computed again, by the name of a mode or layer by layer.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local checkpoint = {}

local LAYER_MODES = { "keep", "selective", "recompute", "offload" }

local function is_one_of(value, names)
  for _, name in ipairs(names) do
    if name == value then return true end
  end
  return false
end

local function quoted(names)
  local parts = {}
  for i, name in ipairs(names) do parts[i] = ('"%s"'):format(name) end
  return table.concat(parts, ", ")
end

local function hint(value, names)
  local near = type(value) == "string" and errors.suggest(value, names)
  return near and (" (did you mean '%s'?)"):format(near) or ""
end

-- What was expected, if the value is wrong.
local function check(value)
  if type(value) == "string" then
    if is_one_of(value, core.checkpoints) then return nil end
    return ("one of %s, or a list of %s for the layers%s"):format(quoted(core.checkpoints),
      quoted(LAYER_MODES), hint(value, core.checkpoints))
  end
  for i, mode in ipairs(value) do
    if not is_one_of(mode, LAYER_MODES) then
      return ("%s for each layer, not %s for layer %d%s"):format(quoted(LAYER_MODES),
        errors.show(mode), i, hint(mode, LAYER_MODES))
    end
  end
end

--- The rule of the option.
checkpoint.rule = { type = { "string", "table" }, default = "except_last", check = check }

--- Check that a list has an element for each layer.
---@param who string
---@param given string|string[]
---@param layers integer
function checkpoint.check_count(who, given, layers)
  if type(given) == "string" or #given == layers then return end
  errors.raise("%s: option 'checkpoint' says something for %d layers and the model has %d, "
    .. "expected one of %s for each", who, #given, layers, quoted(LAYER_MODES))
end

--- Whether the option itself sends saved values to the host's memory.
---@param given string|string[]
---@return boolean
function checkpoint.offloads(given)
  return given == "offload" or type(given) == "table" and is_one_of("offload", given)
end

--- The option as people read it.
---@param given string|string[]
---@return string
function checkpoint.text(given)
  if type(given) == "string" then return given end
  local count = {}
  for _, mode in ipairs(given) do count[mode] = (count[mode] or 0) + 1 end
  local parts = {}
  for _, mode in ipairs(LAYER_MODES) do
    if count[mode] then parts[#parts + 1] = ("%d %s"):format(count[mode], mode) end
  end
  return "by layer (" .. table.concat(parts, ", ") .. ")"
end

return checkpoint
