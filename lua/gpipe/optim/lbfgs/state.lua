-- lua/gpipe/optim/lbfgs/state.lua - the memory of LBFGS between steps, as plain values.
--
-- The vectors of the history are the rows of two matrices. Values that follow from them (their
-- products) are computed again, to the same bits.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"

local state = {}

-- The vectors in a list as the rows of one matrix.
local function rows_of(history, name)
  local lines = {}
  for i, entry in ipairs(history) do lines[i] = entry[name]:reshape { 1, -1 } end
  return #lines > 0 and core.concat(lines, 1) or nil
end

--- See opt:state_dict.
---@param opt gpipe.LBFGS
---@return table
function state.get(opt)
  local values = { iterations = opt.iterations, scale = opt.scale, skipped = opt.skipped }
  values.changes, values.moves = rows_of(opt.history, "change"), rows_of(opt.history, "moved")
  if opt.iterations > 0 then
    values.direction, values.gradient = opt.direction:clone(), opt.gradient:clone()
    values.step_size = opt.step_size
  end
  return values
end

local TENSOR = { check = function(v) return not is_tensor(v) and "a tensor" or nil end }
local COUNT = { type = "integer", min = 0, required = true }
local SPEC = {
  iterations = COUNT, skipped = COUNT, scale = { type = "number", required = true },
  step_size = { type = "number" }, direction = TENSOR, gradient = TENSOR, changes = TENSOR,
  moves = TENSOR,
}

-- Check one vector of all parameters, or this many of them.
local function check_line(opt, name, value, rows)
  local shape = is_tensor(value) and value.shape or {}
  if is_tensor(value) and value.dtype == "f64" and shape[#shape] == opt.size
    and #shape == (rows and 2 or 1) and (not rows or shape[1] == rows) then
    return
  end
  errors.raise("load_state_dict: %s is %s, expected f64 lines of %d values", name,
    is_tensor(value) and value.dtype .. " " .. table.concat(shape, "x") or errors.show(value),
    opt.size)
end

local function history_of(opt, values)
  local history = {}
  if values.changes == nil then return history end
  local rows = is_tensor(values.changes) and values.changes:dim() > 0 and #values.changes or 0
  check_line(opt, "changes", values.changes, rows)
  check_line(opt, "moves", values.moves, rows)
  for i = 1, rows do
    local change, moved = values.changes[i]:clone(), values.moves[i]:clone()
    history[i] = { change = change, moved = moved, share = 1 / change:dot(moved):item() }
  end
  return history
end

--- See opt:load_state_dict.
---@param opt gpipe.LBFGS
---@param values table
function state.set(opt, values)
  values = options.check("load_state_dict", values, SPEC)
  if values.iterations > 0 then
    check_line(opt, "direction", values.direction)
    check_line(opt, "gradient", values.gradient)
  end
  opt.history = history_of(opt, values)
  opt.iterations, opt.scale, opt.skipped = values.iterations, values.scale, values.skipped
  opt.direction, opt.gradient, opt.step_size = values.direction, values.gradient, values.step_size
end

return state
