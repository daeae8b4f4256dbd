-- lua/gpipe/optim/whole/adafactor.lua - Adafactor: keeps second moments of a matrix only for its
-- rows and columns.
-- Source: Shazeer and Stern 2018, algorithms 4 to 6; formulas as in PyTorch.

local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local EPSILON = { f32 = 2.0 ^ -23, f64 = 2.0 ^ -52 } -- of the dtype: the default of eps[1]

local rule = { moments = 2 }

-- The shape of moment k. For matrices, and tensors of more dimensions, these are the means of rows
-- and of columns; for vectors one moment holds all elements.
function rule.shape(shape, k)
  local rank = #shape
  if rank < 2 then return k == 1 and shape or nil end
  local reduced = table.move(shape, 1, rank, 1, {})
  reduced[k == 1 and rank or rank - 1] = 1
  return reduced
end

local function root_mean_square(t) return t:norm():item() / math.sqrt(math.max(t:numel(), 1)) end

local function move(moment, to, weight) return moment:copy_(moment + (to - moment) * weight) end

-- Estimate the squares of the gradient from the moments, after moving these towards them.
local function variance(gradient, moments, weight, least)
  local squares = gradient:square()
  if not moments[2] then return move(moments[1], squares, weight) end
  local rows = move(moments[1], squares:mean(-1, true), weight)
  local columns = move(moments[2], squares:mean(-2, true), weight)
  return rows:matmul(columns) / rows:mean(-2, true):clamp { min = least }
end

function rule.update(value, gradient, moments, o, step)
  local least = o.eps[1] or EPSILON[value.dtype]
  local rate = math.min(o.lr, 1 / math.sqrt(step))
  local alpha = math.max(o.eps[2], root_mean_square(value)) * rate
  if o.weight_decay ~= 0 then value = value * (1 - o.lr * o.weight_decay) end
  local around = variance(gradient, moments, step ^ o.beta2_decay, least)
  local change = around:clamp({ min = least * least }):rsqrt() * gradient
  return value - change * (alpha / math.max(1, root_mean_square(change) / o.d))
end

local function check_eps(value)
  local first, second = value[1], value[2]
  local good = (not first or math.type(first) and first > 0 and first < math.huge)
    and math.type(second) and second >= 0 and second < math.huge
  if not good then return "two numbers such as {1e-30, 1e-3}, the first may be false" end
end

local kind = {
  who = "optim.Adafactor",
  rule = rule,
  spec = {
    lr = rules.amount(1e-2), weight_decay = rules.amount(0),
    beta2_decay = { type = "number", above = -math.huge, max = 0, default = -0.8 },
    eps = { type = "table", check = check_eps, default = { false, 1e-3 } },
    d = { type = "number", min = 1, below = math.huge, default = 1.0 },
  },
  moments = function() return 2 end,
}

---@class gpipe.AdafactorOptions
---@field lr? number 0.01: the largest step, relative to the length of the parameter
---@field weight_decay? number 0
---@field beta2_decay? number -0.8: the weight of a new square at step t is t^beta2_decay
---@field eps? table {false, 1e-3}: the root of the smallest variance (false: the epsilon of the
--- dtype) and the smallest length
---@field d? number 1: changes are scaled down to this root mean square

--- Adafactor: like Adam without a first moment, but for a matrix [m, n] it keeps m + n numbers
--- instead of m n. Steps are relative to the length of the parameters. It updates in opt:step(),
--- not by pipe:use.
--- Errors: a negative or NaN setting.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local opt = gp.optim.Adafactor(model:parameters(), {lr = 0.01})
--- ```
---@param params table `pipe:parameters()`, or groups {params = ..., lr = ...}
---@param opts? gpipe.AdafactorOptions
---@return gpipe.Optimizer
return function(params, opts) return new(kind, params, opts) end
