-- lua/gpipe/nn/initial.lua - `nn.init`: how a parameter gets its first value.
--
-- An initialiser is a recipe, not numbers: for a shape it resolves to (kind, a, b), from which the
-- runtime draws when the value is first needed. So a model that is larger than host memory can be
-- declared.
-- Source: PyTorch 2.x torch/nn/init.py for fans and gains; Glorot & Bengio 2010; He et al. 2015.

local errors = require "gpipe.errors"
local check = require "gpipe.nn.check"
local namespace = require "gpipe.namespace"
local options = require "gpipe.options"

local initial = {}

---@class nn.Initializer
---@field resolve fun(shape: integer[]): string, number, number  kind, a, b as in core.parameter
local Initializer = {}
Initializer.__index = Initializer
Initializer.__name = "nn.Initializer"
function Initializer:__tostring() return self.text end

-- Make a recipe whose text is `name(numbers)`.
local function recipe(name, numbers, resolve)
  local shown = {}
  for i, number in ipairs(numbers) do shown[i] = ("%.6g"):format(number) end
  local text = ("%s(%s)"):format(name, table.concat(shown, ", "))
  return setmetatable({ text = text, resolve = resolve }, Initializer)
end

local function fixed(name, kind, a, b)
  return recipe(name, { a, b }, function() return kind, a, b or 0 end)
end

--- Whether a value is an initialiser.
---@param value any
---@return boolean
function initial.is(value) return getmetatable(value) == Initializer end

--- All elements 0.
--- ```lua
--- local p = nn.Parameter({3}, nn.init.zeros())
--- ```
---@return nn.Initializer
function initial.zeros() return fixed("constant", "constant", 0) end

--- All elements 1.
--- ```lua
--- local p = nn.Parameter({3}, nn.init.ones())
--- ```
---@return nn.Initializer
function initial.ones() return fixed("constant", "constant", 1) end

--- All elements `value`.
--- ```lua
--- local p = nn.Parameter({3}, nn.init.constant(0.5))
--- ```
---@param value number finite
---@return nn.Initializer
function initial.constant(value)
  return fixed("constant", "constant", check.number("nn.init.constant", "value", value))
end

--- Normal with the given mean and standard deviation.
--- ```lua
--- local p = nn.Parameter({256, 64}, nn.init.normal(0, 0.02))
--- ```
---@param mean? number 0
---@param std? number 1; not negative
---@return nn.Initializer
function initial.normal(mean, std)
  mean = check.number("nn.init.normal", "mean", mean or 0)
  std = check.number("nn.init.normal", "std", std or 1)
  if std < 0 then check.fail("nn.init.normal", "std", std, "a number that is not negative") end
  return fixed("normal", "normal", mean, std)
end

--- Uniform in [low, high).
--- ```lua
--- local p = nn.Parameter({8}, nn.init.uniform(-0.1, 0.1))
--- ```
---@param low? number 0
---@param high? number 1; not below low
---@return nn.Initializer
function initial.uniform(low, high)
  low = check.number("nn.init.uniform", "low", low or 0)
  high = check.number("nn.init.uniform", "high", high or 1)
  if high < low then
    errors.raise("nn.init.uniform: the range is %g to %g, expected low <= high", low, high)
  end
  return fixed("uniform", "uniform", low, high)
end

-- The numbers of inputs and outputs of one unit: [out, in, window...].
local function fans(who, shape)
  if #shape < 2 then
    errors.raise("%s: shape is %s, expected at least two dimensions (fans need [out, in])", who,
      check.shape_text(shape))
  end
  local window = 1
  for i = 3, #shape do window = window * shape[i] end
  return shape[2] * window, shape[1] * window
end

local function xavier(name, gain, draw)
  local who = "nn.init." .. name
  gain = check.number(who, "gain", gain or 1)
  return recipe(name, { gain }, function(shape)
    local fan_in, fan_out = fans(who, shape)
    return draw(gain * math.sqrt(2 / (fan_in + fan_out)))
  end)
end

-- A distribution with mean 0 and the given standard deviation.
local function uniform_of(std) return "uniform", -math.sqrt(3) * std, math.sqrt(3) * std end
local function normal_of(std) return "normal", 0, std end

--- Uniform with variance 2 / (fan_in + fan_out), times gain squared; for tanh and sigmoid.
--- Errors: a shape of fewer than two dimensions.
--- ```lua
--- local p = nn.Parameter({10, 4}, nn.init.xavier_uniform())
--- ```
---@param gain? number 1; see nn.init.gain
---@return nn.Initializer
function initial.xavier_uniform(gain) return xavier("xavier_uniform", gain, uniform_of) end

--- Normal with variance 2 / (fan_in + fan_out), times gain squared.
--- Errors: a shape of fewer than two dimensions.
--- ```lua
--- local p = nn.Parameter({10, 4}, nn.init.xavier_normal(nn.init.gain("tanh")))
--- ```
---@param gain? number 1; see nn.init.gain
---@return nn.Initializer
function initial.xavier_normal(gain) return xavier("xavier_normal", gain, normal_of) end

local GAINS = { linear = 1, sigmoid = 1, tanh = 5 / 3, relu = math.sqrt(2), silu = 1, selu = 0.75 }
local NONLINEARITIES = { "linear", "sigmoid", "tanh", "relu", "leaky_relu", "silu", "selu" }

--- The factor by which a nonlinearity shrinks a standard deviation.
--- ```lua
--- assert(nn.init.gain("relu") == math.sqrt(2))
--- ```
---@param nonlinearity "linear"|"sigmoid"|"tanh"|"relu"|"leaky_relu"|"silu"|"selu"
---@param slope? number of leaky_relu for negative inputs; 0.01
---@return number
function initial.gain(nonlinearity, slope)
  check.choice("nn.init.gain", "nonlinearity", nonlinearity, NONLINEARITIES)
  if nonlinearity ~= "leaky_relu" then return GAINS[nonlinearity] end
  slope = check.number("nn.init.gain", "slope", slope or 0.01)
  return math.sqrt(2 / (1 + slope * slope))
end

local KAIMING = {
  a = { type = "number", default = 0 },
  mode = { choices = { "fan_in", "fan_out" }, default = "fan_in" },
  nonlinearity = { type = "string", default = "leaky_relu" },
}

local function kaiming(name, opts, draw)
  local who = "nn.init." .. name
  opts = options.check(who, opts, KAIMING)
  local gain = initial.gain(opts.nonlinearity, check.number(who, "a", opts.a))
  return recipe(name, { gain }, function(shape)
    local fan_in, fan_out = fans(who, shape)
    return draw(gain / math.sqrt(opts.mode == "fan_in" and fan_in or fan_out))
  end)
end

--- Uniform with variance gain^2 / fan; for relu and similar functions.
--- Errors: a shape of fewer than two dimensions.
--- ```lua
--- local p = nn.Parameter({10, 4}, nn.init.kaiming_uniform{nonlinearity = "relu"})
--- ```
---@param opts? {a?: number, mode?: "fan_in"|"fan_out", nonlinearity?: string}
---@return nn.Initializer
function initial.kaiming_uniform(opts) return kaiming("kaiming_uniform", opts, uniform_of) end

--- Normal with variance gain^2 / fan.
--- Errors: a shape of fewer than two dimensions.
--- ```lua
--- local p = nn.Parameter({10, 4}, nn.init.kaiming_normal{mode = "fan_out"})
--- ```
---@param opts? {a?: number, mode?: "fan_in"|"fan_out", nonlinearity?: string}
---@return nn.Initializer
function initial.kaiming_normal(opts) return kaiming("kaiming_normal", opts, normal_of) end

return namespace("gp.nn.init", initial)
