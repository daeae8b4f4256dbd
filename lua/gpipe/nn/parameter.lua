-- lua/gpipe/nn/parameter.lua - `nn.Parameter` and `nn.Buffer`: tensors that belong to a model.
--
-- In `forward` a parameter is a tensor like any other. It is a parameter because it was declared
-- here; the table below remembers that outside of the tensor, without keeping the tensor alive.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local check = require "gpipe.nn.check"
local initial = require "gpipe.nn.initial"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local random = require "gpipe.nn.random"

local parameter = {}

local kinds = setmetatable({}, { __mode = "k" }) ---@type table<userdata, "parameter"|"buffer">

--- The kind that a value was declared as; nil for anything else.
---@param value any
---@return "parameter"|"buffer"|nil
function parameter.kind(value)
  return is_tensor(value) and kinds[value] or nil
end

-- ---- declaration -----------------------------------------------------------------------------

-- The first value: an initialiser, a number for all elements, or a tensor to copy.
local function recipe(who, init)
  if initial.is(init) then return init end
  if math.type(init) then return initial.constant(init) end
  if is_tensor(init) then return initial.zeros() end
  check.fail(who, "init", init, "an initialiser such as nn.init.normal(0, 0.02)")
end

local function copy_in(who, box, init)
  local have, want = check.shape_text(init.shape), check.shape_text(box.shape)
  if have ~= want then errors.raise("%s: init is %s, expected %s", who, have, want) end
  box:value():copy_(init)
end

local function declare(who, shape, init, opts)
  shape = check.shape(who, "shape", shape)
  local kind, a, b = recipe(who, init).resolve(shape)
  local seed, number = random.next()
  local box = core.parameter {
    shape = shape, dtype = opts.dtype, kind = kind, a = a, b = b, seed = seed, number = number,
    buffer = opts.buffer, frozen = opts.frozen,
  }
  if is_tensor(init) then copy_in(who, box, init) end
  kinds[box] = opts.buffer and "buffer" or "parameter"
  return box
end

local DTYPE = { choices = { "f32", "f64" }, default = "f32" }

-- Buffers may also hold counts.
local STATE = { choices = { "f32", "f64", "i64" }, default = "f32" }

--- Declare a parameter: a tensor that training changes.
---
--- Its first value is a function of the current seed and of how many parameters were declared since
--- that seed was set.
--- Errors: sizes that are not positive integers; an init that is not an initialiser.
--- ```lua
--- local w = nn.Parameter({4, 8}, nn.init.normal(0, 0.02))
--- assert(w:numel() == 32)
--- ```
---@param shape integer[] {} is a scalar
---@param init nn.Initializer|number|gpipe.Tensor a number: all elements; a tensor is copied
---@param opts? {frozen?: boolean, dtype?: "f32"|"f64"} frozen: no gradient, no optimizer state
---@return gpipe.Tensor
function parameter.Parameter(shape, init, opts)
  opts = options.check("nn.Parameter", opts, {
    frozen = { type = "boolean", default = false }, dtype = DTYPE,
  })
  return declare("nn.Parameter", shape, init, opts)
end

--- Declare a buffer: state that is saved with the model but has no gradient. `forward` may write it
--- with `copy_`; the writes of a step are kept if the step succeeds.
--- ```lua
--- local mean = nn.Buffer({8}, nn.init.zeros())
--- ```
---@param shape integer[]
---@param init? nn.Initializer|number|gpipe.Tensor zeros
---@param opts? {dtype?: "f32"|"f64"|"i64"}
---@return gpipe.Tensor
function parameter.Buffer(shape, init, opts)
  opts = options.check("nn.Buffer", opts, { dtype = STATE })
  opts.buffer = true
  return declare("nn.Buffer", shape, init == nil and 0 or init, opts)
end

local SPREAD = 0.05 -- of values that stand for those of another rank

--- A parameter or buffer of the same shape, dtype and values; where another rank holds these, with
--- values drawn near zero, which take as long. The declaration does not count, so later parameters
--- are drawn as if there were no copy.
---@param box gpipe.Tensor
---@return gpipe.Tensor
function parameter.copy(box)
  local away = core.param_away(box) ~= nil
  local copy = core.parameter {
    shape = box.shape, dtype = box.dtype, buffer = box:is_buffer(), frozen = box:is_frozen(),
    kind = away and box.dtype ~= "i64" and "uniform" or "constant", a = away and -SPREAD or 0,
    b = SPREAD,
  }
  if not away then copy:value():copy_(box:value()) end
  kinds[copy] = kinds[box]
  return copy
end

-- ---- listing ---------------------------------------------------------------------------------

-- `value` and `grad` are fetched when they are read: so a list that was made before training shows
-- the gradients of the last step, and listing a model draws no values.
local Entry = {}

function Entry.__index(entry, key)
  if key == "value" then return entry.param:value() end
  if key == "grad" then return entry.param.grad end
  if key == "box" then return entry.param end -- as all entries of a state have it
end

function Entry.__tostring(entry)
  return ("%s %s"):format(entry.name, check.shape_text(entry.param.shape))
end

---@class nn.ParameterEntry
---@field name string path, "3.fc.weight"
---@field param gpipe.Tensor as declared
---@field value gpipe.Tensor the values now
---@field grad? gpipe.Tensor of the last step

--- One row of `model:parameters()`.
---@return nn.ParameterEntry
function parameter.entry(name, box)
  return setmetatable({ name = name, param = box }, Entry)
end

return parameter
