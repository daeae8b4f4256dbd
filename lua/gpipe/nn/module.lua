-- lua/gpipe/nn/module.lua - `nn.Module`, the base class of every layer and model.
--
-- A module holds parameters, buffers and modules under names and computes with them in `forward`. A
-- call runs `forward` inside a scope that lets every failure below name its layer. The longer
-- methods (names, state, printing, summary) are in their own files.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local class = require "gpipe.nn.class"
local declare = require "gpipe.nn.skip.declare"
local mode = require "gpipe.nn.mode"
local names = require "gpipe.nn.names"
local print = require "gpipe.nn.print"
local scope = require "gpipe.nn.scope"
local state = require "gpipe.nn.state"
local summary = require "gpipe.nn.summary"
local values = require "gpipe.nn.skip.values"

--- The base of all layers and models: parameters, buffers and modules under names, and `forward`.
--- nn.class makes subclasses.
--- ```lua
--- local Scale = nn.class("Scale")
--- function Scale:init() self.factor = nn.Parameter({1}, 1) end
--- function Scale:forward(x) return x * self.factor end
--- assert(Scale()(gp.ones {2}).shape[1] == 2)
--- ```
---@class nn.Module
---@field training boolean whether dropout and similar layers are active; follows train() and eval()
local Module = class.new("Module", nil, true)

-- ---- running ---------------------------------------------------------------------------------

--- Compute the outputs. Classes define it; `module(...)` is the way to call it.
--- ```lua
--- local Double = nn.class("Double")
--- function Double:forward(x) return x * 2 end
--- assert(Double()(gp.tensor {3}):item() == 6)
--- ```
---@param ... gpipe.Tensor
---@return gpipe.Tensor ...
function Module:forward(...) -- luacheck: ignore 212
  local shown = class.of(self).shown
  errors.raise("%s: there is no forward, expected `function %s:forward(x)`", shown, shown)
end

function Module.__call(self, ...)
  local frame <close> = scope.enter(self)
  if frame and frame.depth == 1 then return core.whole(values.forward, self, ...) end
  return values.forward(self, ...)
end

Module.__tostring = print.text

--- The text behind the class name in printouts and messages, e.g. "256 -> 10"; "" by default.
--- ```lua
--- local Scale = nn.class("Scale")
--- function Scale:describe() return "by 2" end
--- assert(tostring(Scale()) == "Scale(by 2)")
--- ```
---@return string
function Module:describe() return "" end -- luacheck: ignore 212

-- The name of the attribute `key` in paths. Sequential overrides it.
function Module:attribute_name(key) return tostring(key) end -- luacheck: ignore 212

--- Whether the module is an instance of a class or of one that inherits from it.
--- ```lua
--- assert(nn.ReLU():is(nn.Module))
--- ```
---@param wanted table a class
---@return boolean
function Module:is(wanted) return class.is(self, wanted) end

-- ---- training and evaluation -----------------------------------------------------------------

--- Switch the module and all modules below it to training mode, in which dropout drops. New modules
--- are in this mode. Pipelines choose the mode of their own runs themselves; see eval().
--- ```lua
--- local model = nn.Sequential {nn.Dropout(0.5)}:train()
--- ```
---@return nn.Module self
function Module:train() return mode.set(self, "train") end

--- Switch the module and all modules below it to evaluation mode. A part of a model that is
--- switched separately (`model[2]:eval()`: a frozen batch norm) stays in this mode in the steps of
--- a pipeline too; the pipeline itself chooses the mode of the whole model.
--- ```lua
--- local model = nn.Sequential {nn.Dropout(0.5)}:eval()
--- assert(gp.equal(model(gp.ones{3}), gp.ones{3}))
--- ```
---@return nn.Module self
function Module:eval() return mode.set(self, "eval") end

--- Return whether the module runs in training mode. That is its own mode, or, while a pipeline's
--- pass is recorded, the mode of the pass, unless the module was switched to evaluation separately.
--- ```lua
--- assert(nn.Dropout(0.5):is_training())
--- ```
---@return boolean
function Module:is_training() return mode.is_training(self) end

-- ---- skip connections ------------------------------------------------------------------------

Module.stash = values.stash
Module.pop = values.pop
Module.isolate = declare.isolate

-- ---- names, state, views ---------------------------------------------------------------------

Module.parameters = names.parameters
Module.buffers = names.buffers
Module.modules = names.modules
Module.children = names.children
Module.apply = names.apply
Module.get = names.get
Module.freeze = names.freeze
Module.unfreeze = names.unfreeze
Module.state_dict = state.get
Module.load_state_dict = state.set
Module.summary = summary.print

return Module
