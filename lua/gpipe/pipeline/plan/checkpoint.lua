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

--- What was expected of a layer's mode; nil if it is one.
---@param value any
---@return string?
function checkpoint.mode_fault(value)
  if is_one_of(value, LAYER_MODES) then return nil end
  return "one of " .. quoted(LAYER_MODES) .. hint(value, LAYER_MODES)
end

--- The modes of layers, for messages.
function checkpoint.mode_names() return quoted(LAYER_MODES) end

-- What was expected of {stage = {...}}.
local function check_stages(value)
  for key in pairs(value) do
    if key ~= "stage" then return ("no %s beside 'stage'"):format(errors.show(key)) end
  end
  if type(value.stage) ~= "table" then return "{stage = {...}} with a mode for each stage" end
  for s, mode in ipairs(value.stage) do
    if not is_one_of(mode, LAYER_MODES) then
      return ("%s for each stage, not %s for stage %d%s"):format(quoted(LAYER_MODES),
        errors.show(mode), s - 1, hint(mode, LAYER_MODES))
    end
  end
end

-- What was expected, if the value is wrong.
local function check(value)
  if type(value) == "function" then return nil end
  if type(value) == "table" and value.stage ~= nil then return check_stages(value) end
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
checkpoint.rule = {
  type = { "string", "table", "function" }, default = "except_last", check = check,
}

--- Check that a list has an element for each layer.
---@param who string
---@param given string|string[]
---@param layers integer
function checkpoint.check_count(who, given, layers)
  if type(given) ~= "table" or given.stage or #given == layers then return end
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
