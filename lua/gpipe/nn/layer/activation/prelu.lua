-- lua/gpipe/nn/layer/activation/prelu.lua - the activations that are formulas of a few ops, and PReLU,
-- whose slope is learned.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local Softmax = require "gpipe.nn.layer.activation.softmax"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"

local functions = {}

-- A class whose forward is a formula of x and the numbers that init took. fields: {name, default}.
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

--- x * tanh(softplus(x)). Source: Misra 2019.
--- ```lua
--- assert(nn.Mish()(gp.zeros {2}):sum():item() == 0)
--- ```
---@class nn.Mish: nn.Module
functions.Mish = formula("Mish", {}, function(x) return x * x:softplus():tanh() end)

--- An ELU that keeps mean and variance of what goes through many layers.
--- Source: Klambauer et al. 2017.
--- ```lua
--- assert(nn.SELU()(gp.ones {2})[1] > 1.05)
--- ```
---@class nn.SELU: nn.Module
functions.SELU = formula("SELU", {}, function(x)
  return x:elu(1.6732632423543772848170429916717) * 1.0507009873554804934193349852946
end)

--- `nn.CELU(alpha)`: an ELU whose slope is 1 at 0 for any alpha; 1 unless said.
--- Errors: an alpha that is not above 0. Source: Barron 2017.
--- ```lua
--- assert(nn.CELU(2)(gp.tensor {3})[1] == 3)
--- ```
---@class nn.CELU: nn.Module
---@field alpha number
functions.CELU = formula("CELU", { { "alpha", 1, positive = true } }, function(x, alpha)
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
functions.Hardtanh = formula("Hardtanh", { { "min", -1 }, { "max", 1 } }, function(x, min, max)
  if min > max then
    errors.raise("nn.Hardtanh: min is %g and max %g, expected the lower one first", min, max)
  end
  return x:clamp(min, max)
end)

--- `nn.Threshold(threshold, value)`: x where it is above the threshold, else the value.
--- Errors: what is no finite number.
--- ```lua
--- assert(nn.Threshold(1, 20)(gp.tensor {1, 2}):sum():item() == 22)
--- ```
---@class nn.Threshold: nn.Module
---@field threshold number
---@field value number
functions.Threshold = formula("Threshold", { { "threshold" }, { "value" } },
  function(x, threshold, value) return core.where(x:gt(threshold), x, value) end)

--- log(sigmoid(x)).
--- ```lua
--- assert(nn.LogSigmoid()(gp.zeros {1})[1] < -0.69)
--- ```
---@class nn.LogSigmoid: nn.Module
functions.LogSigmoid = formula("LogSigmoid", {}, function(x) return x:log_sigmoid() end)

--- x / (1 + |x|).
--- ```lua
--- assert(nn.Softsign()(gp.ones {1})[1] == 0.5)
--- ```
---@class nn.Softsign: nn.Module
functions.Softsign = formula("Softsign", {}, function(x) return x / (x:abs() + 1) end)

--- x - tanh(x).
--- ```lua
--- assert(nn.Tanhshrink()(gp.zeros {1})[1] == 0)
--- ```
---@class nn.Tanhshrink: nn.Module
functions.Tanhshrink = formula("Tanhshrink", {}, function(x) return x - x:tanh() end)

--- `nn.Softshrink(bound)`: x moved towards 0 by the bound, 0 where it is nearer; 0.5 unless said.
--- ```lua
--- assert(nn.Softshrink()(gp.tensor {2, -0.25}):sum():item() == 1.5)
--- ```
---@class nn.Softshrink: nn.Module
---@field bound number
functions.Softshrink = formula("Softshrink", {
  { "bound", 0.5, not_negative = true },
}, function(x, bound) return x - x:clamp(-bound, bound) end)

--- `nn.Hardshrink(bound)`: x where it is farther from 0 than the bound, else 0; 0.5 unless said.
--- ```lua
--- assert(nn.Hardshrink()(gp.tensor {2, -0.25}):sum():item() == 2)
--- ```
---@class nn.Hardshrink: nn.Module
---@field bound number
functions.Hardshrink = formula("Hardshrink", { { "bound", 0.5 } }, function(x, bound)
  return core.where(x:abs():gt(bound), x, 0)
end)

-- ---- along a dimension -----------------------------------------------------------------------

---@class nn.Softmin: nn.Softmax
local Softmin = class.new("Softmin", Softmax, true)
functions.Softmin = Softmin

--- nn.Softmax of -x: the least score has the largest share.
--- Errors: dim 0 or no integer; when called, a dimension the input does not have.
--- ```lua
--- assert(nn.Softmin(1)(gp.zeros {2})[1] == 0.5)
--- ```
---@param dim? integer from 1, negative from the end; -1
function Softmin:init(dim) Softmax.init(self, dim) end

function Softmin:forward(x) return (-input.tensor(self, x)):softmax(self.over) end

--- nn.Softmax of the channels at each place of images [N, C, H, W].
--- Errors: when called, another number of dimensions.
--- ```lua
--- assert(nn.Softmax2d()(gp.zeros {1, 4, 2, 2})[1][1][1][1] == 0.25)
--- ```
---@class nn.Softmax2d: nn.Module
local Softmax2d = class.new("Softmax2d", Module, true)
functions.Softmax2d = Softmax2d

function Softmax2d:forward(x)
  if #input.tensor(self, x).shape ~= 4 then
    errors.raise("%s: input is %s, expected ?x?x?x?", scope.label(self), check.shape_text(x.shape))
  end
  return x:softmax(2)
end

---@class nn.GLU: nn.Module
---@field over integer the dimension
local GLU = class.new("GLU", Module, true)
functions.GLU = GLU

--- The first half of a dimension times the sigmoid of the second. Source: Dauphin et al. 2016.
---
--- Shapes: [.., 2 n, ..] -> [.., n, ..].
--- Errors: dim 0 or no integer; when called, a size that is odd.
--- ```lua
--- assert(nn.GLU()(gp.ones {3, 8}).shape[2] == 4)
--- ```
---@param dim? integer from 1, negative from the end; -1
function GLU:init(dim)
  self.over = check.integer("nn.GLU", "dim", dim == nil and -1 or dim)
  if self.over == 0 then check.fail("nn.GLU", "dim", 0, "1 or more, or negative") end
end

function GLU:forward(x)
  local size = input.tensor(self, x):size(self.over)
  if size % 2 ~= 0 then
    errors.raise("%s: input is %s, expected an even size of dimension %d", scope.label(self),
      check.shape_text(x.shape), self.over)
  end
  local half = size // 2
  return x:narrow(self.over, 1, half) * x:narrow(self.over, half + 1, half):sigmoid()
end

function GLU:describe() return tostring(self.over) end

---@class nn.PReLU: nn.Module
---@field weight gpipe.Tensor [n]
local PReLU = class.new("PReLU", Module, true)
functions.PReLU = PReLU

--- x where it is above 0, else weight * x, with a weight that is learned: one for all, or one for
--- each channel, which dimension 2 is. Source: He et al. 2015.
---
--- Shapes: any, with one weight; [N, n, ..] with n.
--- Errors: an n that is no positive integer; when called, other channels.
--- ```lua
--- assert(nn.PReLU()(gp.tensor {-4, 1}):sum():item() == 0)
--- ```
---@param n? integer of weights, 1
---@param value? number what they begin with, 0.25
---@param opts? {dtype?: "f32"|"f64"}
function PReLU:init(n, value, opts)
  n = check.size("nn.PReLU", "n", n == nil and 1 or n)
  value = check.number("nn.PReLU", "value", value == nil and 0.25 or value)
  local o = options.check("nn.PReLU", opts, { dtype = { choices = { "f32", "f64" } } })
  self.weight = parameter.Parameter({ n }, initial.constant(value), { dtype = o.dtype })
end

function PReLU:forward(x)
  local shape, n = input.tensor(self, x).shape, self.weight.shape[1]
  local weight = self.weight
  if n > 1 and shape[2] ~= n then
    errors.raise("%s: input is %s, expected ?x%d.. channels", scope.label(self),
      check.shape_text(shape), n)
  end
  if n > 1 then
    local line = {}
    for d = 2, #shape do line[d - 1] = d == 2 and n or 1 end
    weight = weight:reshape(line)
  end
  return core.where(x:gt(0), x, weight * x)
end

function PReLU:describe() return tostring(self.weight.shape[1]) end

return functions
