-- lua/gpipe/nn/mode.lua - the mode of a module: training or evaluation.
--
-- When the script calls a module, it has the mode that train() or eval() gave it. A pipeline
-- chooses the mode of its passes; but if the pipeline trains, a part that was switched to
-- evaluation separately (`model[2]:eval()`, a frozen batch norm) stays in evaluation. If the whole
-- model was switched to evaluation, the pipeline's choice stands, so a script may use the model
-- eagerly between steps.

local core = require "gpipe.core"
local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"
local scope = require "gpipe.nn.scope"

local mode = {}

--- Switch a module and all modules below it.
---@param module nn.Module
---@param value "train"|"eval"
---@return nn.Module module
function mode.set(module, value)
  class.refuse("nn.Module", "the module of a method", module)
  class.set_mode(module, value)
  attributes.walk(module, function(_, below, kind)
    if kind == "module" then class.set_mode(below, value) end
  end)
  return module
end

--- Return whether a module is in training mode now.
---@param module nn.Module
---@return boolean
function mode.is_training(module)
  local own, traced = module[class.MODE] == "train", core.tracing()
  if not traced then return own end
  if own or traced ~= "train" then return traced == "train" end
  local outermost = scope.outermost()
  return not outermost or outermost.module[class.MODE] ~= "train"
end

--- A text that says which parts of a model stay in evaluation while it trains. If the text changes,
--- the model has to be traced again. It is "" for most models.
---@param model nn.Module
---@return string
function mode.key(model)
  if model[class.MODE] ~= "train" then return "" end
  local frozen, number = {}, 0
  attributes.walk(model, function(_, value, kind)
    if kind ~= "module" then return end
    number = number + 1
    if value[class.MODE] ~= "train" then frozen[#frozen + 1] = number end
  end)
  return table.concat(frozen, ",")
end

--- A number that grows with every change of a mode, so that a model is walked only after one.
mode.changes = class.mode_changes

return mode
