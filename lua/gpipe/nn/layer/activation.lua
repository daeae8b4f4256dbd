-- lua/gpipe/nn/layer/activation.lua - the layers that apply one function to every element.
--
-- They hold nothing, so one table makes them all; GELU, which has two forms, stands below.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"

local activation = {}

-- A class whose forward is a tensor's method.
local function elementwise(name, method)
  local made = class.new(name, Module, true)
  function made:forward(x)
    local tensor = input.tensor(self, x)
    return tensor[method](tensor)
  end
  return made
end

--- max(x, 0).
--- ```lua
--- assert(nn.ReLU()(gp.tensor {-1, 2}):sum():item() == 2)
--- ```
---@class nn.ReLU: nn.Module
activation.ReLU = elementwise("ReLU", "relu")

--- x * sigmoid(x). Source: Elfwing et al. 2018; Ramachandran et al. 2017 (swish).
--- ```lua
--- local y = nn.SiLU()(gp.tensor {-1, 2})
--- ```
---@class nn.SiLU: nn.Module
activation.SiLU = elementwise("SiLU", "silu")

--- Hyperbolic tangent.
--- ```lua
--- local y = nn.Tanh()(gp.tensor {-1, 2})
--- ```
---@class nn.Tanh: nn.Module
activation.Tanh = elementwise("Tanh", "tanh")

--- 1 / (1 + exp(-x)).
--- ```lua
--- local y = nn.Sigmoid()(gp.tensor {-1, 2})
--- ```
---@class nn.Sigmoid: nn.Module
activation.Sigmoid = elementwise("Sigmoid", "sigmoid")

---@class nn.GELU: nn.Module
---@field mode "erf"|"tanh"
local GELU = class.new("GELU", Module, true)
activation.GELU = GELU

--- x times the normal distribution function of x, exactly or by the tanh approximation.
--- Source: Hendrycks & Gimpel 2016.
--- Errors: another mode.
--- ```lua
--- local y = nn.GELU("tanh")(gp.tensor {-1, 2})
--- ```
---@param mode? "erf"|"tanh" "erf"
function GELU:init(mode)
  self.mode = check.choice("nn.GELU", "mode", mode == nil and "erf" or mode, { "erf", "tanh" })
end

function GELU:forward(x) return core.gelu(input.tensor(self, x), self.mode) end

function GELU:describe() return self.mode end

return activation
