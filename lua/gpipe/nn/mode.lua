-- lua/gpipe/nn/mode.lua - training and evaluation: which of the two a module is in.
--
-- Called by the script, a module is in the mode that train() or eval() gave it. A pipeline chooses
-- the mode of its passes; in one that trains, a part that was switched to evaluation by itself
-- (`model[2]:eval()`, a frozen batch norm) stays in evaluation. Where the whole model was switched
-- to evaluation, the pipeline's choice stands: so one may look at a model eagerly between steps.

local core = require "gpipe.core"
local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"
local scope = require "gpipe.nn.scope"

local mode = {}

--- Switch a module and all below.
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

--- Whether a module trains now.
---@param module nn.Module
---@return boolean
function mode.is_training(module)
  local own, traced = module[class.MODE] == "train", core.tracing()
  if not traced then return own end
  if own or traced ~= "train" then return traced == "train" end
  local outermost = scope.outermost()
  return not outermost or outermost.module[class.MODE] ~= "train"
end

--- Which parts of a model stay in evaluation while it trains: what was traced with other ones has
--- to be traced anew. "" for most models.
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
