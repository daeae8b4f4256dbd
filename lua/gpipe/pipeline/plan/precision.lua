-- lua/gpipe/pipeline/plan/precision.lua - option `precision`: the number format a pipeline computes
-- in.
--
-- Parameters, their gradients and the optimizer's state are f32 in every precision. "tf32" lets
-- products of f32 matrices round their inputs. With "bf16" and "f16" the model runs in that dtype:
-- parameters and inputs of f32 are read in it, and so are constants and buffers where they meet it
-- (runtime/graph/trace.c). Losses other than cross entropy, and the outputs of `forward`, are f32
-- again. f16 has a small range of exponents, so its gradients are scaled
-- (runtime/engine/update/scaling.c).

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local precision = {}

local HALVES = { bf16 = true, f16 = true }

--- The rules of the two options for the checker.
precision.rule = { choices = { "f32", "tf32", "bf16", "f16" }, default = "f32" }
precision.scale_rule = { type = "table" }

local SCALE = {
  initial = { type = "number", above = 0, default = 65536 },
  growth = { type = "number", min = 1, default = 2 },
  backoff = { type = "number", above = 0, below = 1, default = 0.5 },
  window = { type = "integer", min = 1, default = 2000 },
  min = { type = "number", above = 0, default = 1 },
}

local function check_scale(who, opts)
  if opts.precision ~= "f16" then
    if opts.loss_scale then
      errors.raise("%s: loss_scale is for precision 'f16', not for '%s': leave it out", who,
        opts.precision)
    end
    return nil
  end
  local o = options.check(who .. ": loss_scale", opts.loss_scale, SCALE)
  if o.initial < o.min then
    errors.raise("%s: loss_scale.initial is %s and loss_scale.min %s, expected at least as much",
      who, o.initial,
      o.min)
  end
  return { scale = o.initial, growth = o.growth, backoff = o.backoff, window = o.window,
    min = o.min }
end

--- Resolve the number format a pipeline computes in.
---@param who string
---@param opts {precision: string, loss_scale: table?}
---@param asynchronous boolean
---@return {name: string, half: string?, tf32: boolean, scale: table?}
function precision.resolve(who, opts, asynchronous)
  local name = opts.precision
  local scale = check_scale(who, opts)
  if scale and asynchronous then
    errors.raise("%s: precision 'f16' skips updates whose gradients overflow, for which all stages "
      .. "have to wait for each other: expected a synchronous schedule, or precision 'bf16'", who)
  end
  return { name = name, half = HALVES[name] and name or nil, tf32 = name == "tf32", scale = scale }
end

--- Convert a value of the trace to the dtype of the model, or back to f32; other dtypes stay as
--- they are.
---@param value gpipe.Tensor
---@param from string
---@param to string
function precision.convert(value, from, to)
  return value.dtype == from and value:to(to) or value
end

---@class gpipe.LossScale
---@field scale number now
---@field good integer steps in a row whose gradients were finite
---@field skipped integer updates that were left out so far
---@field growth number
---@field backoff number
---@field min number
---@field window integer

-- The fields that may be set, those of the state and the settings.
local FIELDS = {
  scale = { type = "number", above = 0 }, growth = SCALE.growth, backoff = SCALE.backoff,
  min = SCALE.min,
  window = SCALE.window, good = { type = "integer", min = 0 },
  skipped = { type = "integer", min = 0 },
}

--- The loss scale of a pipeline; if values are given, they are set first.
---@param inner userdata
---@param values? gpipe.LossScale
---@return gpipe.LossScale?
function precision.loss_scale(inner, values)
  local now = inner:loss_scale()
  if values == nil then return now end
  if not now then
    errors.raise("loss_scale: the precision is not 'f16', expected 'f16' to set a scale")
  end
  local rules = {}
  for name, rule in pairs(FIELDS) do
    rules[name] = setmetatable({ default = now[name] }, { __index = rule })
  end
  inner:set_loss_scale(options.check("loss_scale", values, rules))
  return inner:loss_scale()
end

return precision
