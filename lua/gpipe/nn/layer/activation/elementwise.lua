-- lua/gpipe/nn/layer/activation/elementwise.lua - the layers that apply one function to every
-- element.
--
-- They hold no parameters. Each is a formula of the input and of the numbers that the layer was
-- made with.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"

local activation = {}

-- Make a class whose forward is a formula of x and of the numbers given to init. fields: {name,
-- default}.
local function formula(name, fields, compute)
  local made = class.new(name, Module, true)
  local function init(self, ...)
    local given = table.pack(...)
    for i, field in ipairs(fields) do
      local value = given[i] == nil and field[2] or given[i]
      self[field[1]] = check.number("nn." .. name, field[1], value)
      if field.not_negative and self[field[1]] < 0 then
        check.fail("nn." .. name, field[1], value, "a number that is not negative")
      end
      if field.positive and self[field[1]] <= 0 then
        check.fail("nn." .. name, field[1], value, "a number above 0")
      end
    end
  end
  if #fields > 0 then made.init = init end
  local function values(self)
    local list = {}
    for i, field in ipairs(fields) do list[i] = self[field[1]] end
    return table.unpack(list)
  end
  function made:forward(x) return compute(input.tensor(self, x), values(self)) end
  function made:describe()
    if #fields == 0 then return "" end
    return (("%g, "):rep(#fields - 1) .. "%g"):format(values(self))
  end
  return made
end

-- The formula that calls a method of the tensor.
local function method(name)
  return function(x, ...) return x[name](x, ...) end
end

--- max(x, 0).
--- ```lua
--- assert(nn.ReLU()(gp.tensor {-1, 2}):sum():item() == 2)
--- ```
---@class nn.ReLU: nn.Module
activation.ReLU = formula("ReLU", {}, method "relu")

--- x * sigmoid(x). Source: Elfwing et al. 2018; Ramachandran et al. 2017 (swish).
--- ```lua
--- local y = nn.SiLU()(gp.tensor {-1, 2})
--- ```
---@class nn.SiLU: nn.Module
activation.SiLU = formula("SiLU", {}, method "silu")

--- Hyperbolic tangent.
--- ```lua
--- local y = nn.Tanh()(gp.tensor {-1, 2})
--- ```
---@class nn.Tanh: nn.Module
activation.Tanh = formula("Tanh", {}, method "tanh")

--- 1 / (1 + exp(-x)).
--- ```lua
--- local y = nn.Sigmoid()(gp.tensor {-1, 2})
--- ```
---@class nn.Sigmoid: nn.Module
activation.Sigmoid = formula("Sigmoid", {}, method "sigmoid")

--- min(max(x, 0), 6). Source: Howard et al. 2017 (MobileNets).
--- ```lua
--- assert(nn.ReLU6()(gp.tensor {-1, 9}):sum():item() == 6)
--- ```
---@class nn.ReLU6: nn.Module
activation.ReLU6 = formula("ReLU6", {}, method "relu6")

--- min(max(x + 3, 0), 6) / 6, a sigmoid made of lines. Source: Howard et al. 2019 (MobileNetV3).
--- ```lua
--- assert(nn.Hardsigmoid()(gp.tensor {-3, 3}):sum():item() == 1)
--- ```
---@class nn.Hardsigmoid: nn.Module
activation.Hardsigmoid = formula("Hardsigmoid", {}, method "hardsigmoid")

--- x * min(max(x + 3, 0), 6) / 6, a SiLU made of lines. Source: Howard et al. 2019 (MobileNetV3).
--- ```lua
--- assert(nn.Hardswish()(gp.tensor {-3, 3}):sum():item() == 3)
--- ```
---@class nn.Hardswish: nn.Module
activation.Hardswish = formula("Hardswish", {}, method "hardswish")

--- x * tanh(softplus(x)). Source: Misra 2019.
--- ```lua
--- assert(nn.Mish()(gp.zeros {2}):sum():item() == 0)
--- ```
---@class nn.Mish: nn.Module
activation.Mish = formula("Mish", {}, function(x) return x * x:softplus():tanh() end)

--- An ELU scaled so that mean and variance stay the same through many layers.
--- Source: Klambauer et al. 2017.
--- ```lua
--- assert(nn.SELU()(gp.ones {2})[1] > 1.05)
--- ```
---@class nn.SELU: nn.Module
activation.SELU = formula("SELU", {}, function(x)
  return x:elu(1.6732632423543772848170429916717) * 1.0507009873554804934193349852946
end)

--- log(sigmoid(x)).
--- ```lua
--- assert(nn.LogSigmoid()(gp.zeros {1})[1] < -0.69)
--- ```
---@class nn.LogSigmoid: nn.Module
activation.LogSigmoid = formula("LogSigmoid", {}, function(x) return x:log_sigmoid() end)

--- x / (1 + |x|).
--- ```lua
--- assert(nn.Softsign()(gp.ones {1})[1] == 0.5)
--- ```
---@class nn.Softsign: nn.Module
activation.Softsign = formula("Softsign", {}, function(x) return x / (x:abs() + 1) end)

--- x - tanh(x).
--- ```lua
--- assert(nn.Tanhshrink()(gp.zeros {1})[1] == 0)
--- ```
---@class nn.Tanhshrink: nn.Module
activation.Tanhshrink = formula("Tanhshrink", {}, function(x) return x - x:tanh() end)

-- ---- with numbers ----------------------------------------------------------------------------

--- `nn.LeakyReLU(slope)`: x where it is above 0, else slope * x; 0.01 unless said.
--- Errors: a slope that is no finite number. Source: Maas et al. 2013.
--- ```lua
--- assert(nn.LeakyReLU(0.5)(gp.tensor {-2, 3}):sum():item() == 2)
--- ```
---@class nn.LeakyReLU: nn.Module
---@field slope number
activation.LeakyReLU = formula("LeakyReLU", { { "slope", 0.01 } }, method "leaky_relu")

--- `nn.ELU(alpha)`: x where it is above 0, else alpha * (exp(x) - 1); 1 unless said.
--- Errors: an alpha that is no finite number. Source: Clevert et al. 2015.
--- ```lua
--- assert(nn.ELU()(gp.tensor {0, 3}):sum():item() == 3)
--- ```
---@class nn.ELU: nn.Module
---@field alpha number
activation.ELU = formula("ELU", { { "alpha", 1 } }, method "elu")

--- `nn.Softplus(beta, threshold)`: log(1 + exp(beta x)) / beta, and x itself where beta x is above
--- the threshold; 1 and 20 unless said.
--- Errors: values that are no finite numbers. Source: Dugas et al. 2000.
--- ```lua
--- assert(nn.Softplus()(gp.full({1}, 30)):item() == 30)
--- ```
---@class nn.Softplus: nn.Module
---@field beta number
---@field threshold number
activation.Softplus = formula("Softplus", { { "beta", 1 }, { "threshold", 20 } }, method "softplus")

--- `nn.CELU(alpha)`: an ELU whose slope is 1 at 0 for any alpha; 1 unless said.
--- Errors: an alpha that is not above 0. Source: Barron 2017.
--- ```lua
--- assert(nn.CELU(2)(gp.tensor {3})[1] == 3)
--- ```
---@class nn.CELU: nn.Module
---@field alpha number
activation.CELU = formula("CELU", { { "alpha", 1, positive = true } }, function(x, alpha)
  return (x / alpha):elu(1) * alpha
end)

--- `nn.Hardtanh(min, max)`: x, but at least min and at most max; -1 and 1 unless said.
--- Errors: a min above max.
--- ```lua
--- assert(nn.Hardtanh()(gp.tensor {-3, 0.5}):sum():item() == -0.5)
--- ```
---@class nn.Hardtanh: nn.Module
---@field min number
---@field max number
activation.Hardtanh = formula("Hardtanh", { { "min", -1 }, { "max", 1 } }, function(x, min, max)
  if min > max then
    errors.raise("nn.Hardtanh: min is %g and max %g, expected the lower one first", min, max)
  end
  return x:clamp(min, max)
end)

--- `nn.Threshold(threshold, value)`: x where it is above the threshold, else the value.
--- Errors: numbers that are not finite.
--- ```lua
--- assert(nn.Threshold(1, 20)(gp.tensor {1, 2}):sum():item() == 22)
--- ```
---@class nn.Threshold: nn.Module
---@field threshold number
---@field value number
activation.Threshold = formula("Threshold", { { "threshold" }, { "value" } },
  function(x, threshold, value) return core.where(x:gt(threshold), x, value) end)

--- `nn.Softshrink(bound)`: x moved towards 0 by the bound, 0 where it is nearer; 0.5 unless said.
--- ```lua
--- assert(nn.Softshrink()(gp.tensor {2, -0.25}):sum():item() == 1.5)
--- ```
---@class nn.Softshrink: nn.Module
---@field bound number
activation.Softshrink = formula("Softshrink", {
  { "bound", 0.5, not_negative = true },
}, function(x, bound) return x - x:clamp(-bound, bound) end)

--- `nn.Hardshrink(bound)`: x where it is farther from 0 than the bound, else 0; 0.5 unless said.
--- ```lua
--- assert(nn.Hardshrink()(gp.tensor {2, -0.25}):sum():item() == 2)
--- ```
---@class nn.Hardshrink: nn.Module
---@field bound number
activation.Hardshrink = formula("Hardshrink", { { "bound", 0.5 } }, function(x, bound)
  return core.where(x:abs():gt(bound), x, 0)
end)

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
