-- lua/gpipe/nn/layer/activation/elementwise.lua - the layers that apply one function to every element.
--
-- They hold no parameters. Those without an argument are made by one function, those with numbers
-- by another; GELU, which has two forms, stands below.

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

--- min(max(x, 0), 6). Source: Howard et al. 2017 (MobileNets).
--- ```lua
--- assert(nn.ReLU6()(gp.tensor {-1, 9}):sum():item() == 6)
--- ```
---@class nn.ReLU6: nn.Module
activation.ReLU6 = elementwise("ReLU6", "relu6")

--- min(max(x + 3, 0), 6) / 6, a sigmoid made of lines. Source: Howard et al. 2019 (MobileNetV3).
--- ```lua
--- assert(nn.Hardsigmoid()(gp.tensor {-3, 3}):sum():item() == 1)
--- ```
---@class nn.Hardsigmoid: nn.Module
activation.Hardsigmoid = elementwise("Hardsigmoid", "hardsigmoid")

--- x * min(max(x + 3, 0), 6) / 6, a SiLU made of lines. Source: Howard et al. 2019 (MobileNetV3).
--- ```lua
--- assert(nn.Hardswish()(gp.tensor {-3, 3}):sum():item() == 3)
--- ```
---@class nn.Hardswish: nn.Module
activation.Hardswish = elementwise("Hardswish", "hardswish")

-- ---- with numbers ----------------------------------------------------------------------------

-- A class whose forward is a tensor's method with the numbers that init took. fields: {name,
-- default}, in the order of the method's arguments.
local function parametric(name, method, fields)
  local made = class.new(name, Module, true)
  function made:init(...)
    local given = table.pack(...)
    for i, field in ipairs(fields) do
      local value = given[i] == nil and field[2] or given[i]
      self[field[1]] = check.number("nn." .. name, field[1], value)
    end
  end
  local function values(self)
    local list = {}
    for i, field in ipairs(fields) do list[i] = self[field[1]] end
    return table.unpack(list)
  end
  function made:forward(x)
    local tensor = input.tensor(self, x)
    return tensor[method](tensor, values(self))
  end
  function made:describe()
    return (("%g, "):rep(#fields - 1) .. "%g"):format(values(self))
  end
  return made
end

--- `nn.LeakyReLU(slope)`: x where it is above 0, else slope * x; 0.01 unless said.
--- Errors: a slope that is no finite number. Source: Maas et al. 2013.
--- ```lua
--- assert(nn.LeakyReLU(0.5)(gp.tensor {-2, 3}):sum():item() == 2)
--- ```
---@class nn.LeakyReLU: nn.Module
---@field slope number
activation.LeakyReLU = parametric("LeakyReLU", "leaky_relu", { { "slope", 0.01 } })

--- `nn.ELU(alpha)`: x where it is above 0, else alpha * (exp(x) - 1); 1 unless said.
--- Errors: an alpha that is no finite number. Source: Clevert et al. 2015.
--- ```lua
--- assert(nn.ELU()(gp.tensor {0, 3}):sum():item() == 3)
--- ```
---@class nn.ELU: nn.Module
---@field alpha number
activation.ELU = parametric("ELU", "elu", { { "alpha", 1 } })

--- `nn.Softplus(beta, threshold)`: log(1 + exp(beta x)) / beta, and x itself where beta x is above
--- the threshold; 1 and 20 unless said.
--- Errors: values that are no finite numbers. Source: Dugas et al. 2000.
--- ```lua
--- assert(nn.Softplus()(gp.full({1}, 30)):item() == 30)
--- ```
---@class nn.Softplus: nn.Module
---@field beta number
---@field threshold number
activation.Softplus = parametric("Softplus", "softplus", { { "beta", 1 }, { "threshold", 20 } })

-- ---- GELU ------------------------------------------------------------------------------------

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
