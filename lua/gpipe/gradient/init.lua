-- lua/gpipe/gradient/init.lua - gp.no_grad and gp.grad: gradients of what a script computes outside
-- of pipelines.
--
-- Ops on tensors that require a gradient, and on parameters of models that no pipeline owns, are
-- recorded as they run; `loss:backward()` goes back through them. A pipeline plans its gradients
-- and uses none of this.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local gradient = {}

local function check_function(who, fn)
  local meta = type(fn) == "table" and getmetatable(fn)
  if type(fn) == "function" or type(meta) == "table" and meta.__call then return end
  errors.raise("%s: the first argument is %s, expected a function", who, errors.show(fn))
end

-- Switch the recording of ops on or off until the returned value is closed.
local Mode = { __close = function(mode) core.no_grad(mode.before) end }
local function mode(off) return setmetatable({ before = core.no_grad(off) }, Mode) end

local go_on

-- Handle the results of resuming fn's coroutine, after the mode was restored.
local function settle(thread, good, ...)
  if not good then error((...), 0) end
  if coroutine.status(thread) == "dead" then return ... end
  return go_on(thread, coroutine.yield(...))
end

function go_on(thread, ...)
  local before = core.no_grad(true)
  local results = table.pack(coroutine.resume(thread, ...))
  core.no_grad(before)
  return settle(thread, table.unpack(results, 1, results.n))
end

--- Call a function without recording its ops for gradients: for evaluation, and for updates by
--- hand.
--- ```lua
--- local w = gp.ones {2}
--- w.requires_grad = true
--- gp.no_grad(function() w:copy_(w * 2) end)
--- assert(w[1] == 2)
--- ```
---@param fn function
---@param ... any its arguments
---@return any ... what it returns
function gradient.no_grad(fn, ...)
  check_function("gp.no_grad", fn)
  -- Inside a coroutine fn may yield and never be resumed. So fn runs in a coroutine of its own, and
  -- recording is off only while that one runs.
  if coroutine.isyieldable() then
    return go_on(coroutine.create(function(...) return fn(...) end), ...)
  end
  local _mode <close> = mode(true)
  return fn(...)
end

local FLOATS = { f32 = true, f64 = true, bf16 = true, f16 = true }

-- Make new leaves of the arguments, so that the script's own tensors keep their gradients.
local function leaves_of(arguments)
  local leaves = {}
  for i = 1, arguments.n do
    local value = arguments[i]
    if is_tensor(value) and FLOATS[value.dtype] then
      arguments[i] = value:detach()
      arguments[i].requires_grad = true
      leaves[#leaves + 1] = arguments[i]
    end
  end
  return leaves
end

local inside = setmetatable({}, { __mode = "k" }) -- coroutines that are running the fn of a gp.grad

local Inside = { __close = function(mark) inside[mark.thread] = nil end }

-- Refuse a gp.grad inside another: its gradients are plain numbers to the outer one, whose own
-- gradient would lack a term.
local function enter()
  local thread = coroutine.running()
  local taking = not core.no_grad(false)
  core.no_grad(not taking)
  if inside[thread] and taking then
    errors.raise("gp.grad: it is called within a function that gp.grad differentiates, and second "
      .. "derivatives are not computed, expected gp.no_grad(function .. end) around the inner one "
      .. "where its gradients are meant as constants")
  end
  if inside[thread] then return nil end
  inside[thread] = true
  return setmetatable({ thread = thread }, Inside)
end

--- Return a function that returns what fn returns, followed by its gradients for each argument that
--- is a tensor of floats, in order.
---
--- fn's first value is differentiated. It is a tensor of one element; if it has more, the gradients
--- are those of their sum. Nothing is added to any `grad`. The gradient of an argument that the
--- value does not depend on is zero.
--- Errors: fn returns no tensor; a gp.grad within fn, as there are no second derivatives.
--- ```lua
--- local value, dx = gp.grad(function(x) return (x * x):sum() end)(gp.tensor {1, 2, 3})
--- assert(value:item() == 14 and dx[3] == 6)
--- ```
---@param fn function
---@return fun(...): gpipe.Tensor, gpipe.Tensor ...
function gradient.grad(fn)
  check_function("gp.grad", fn)
  return function(...)
    local arguments = table.pack(...)
    local leaves = leaves_of(arguments)
    if #leaves == 0 then
      errors.raise("gp.grad: none of the %d arguments is a tensor of floats, expected one",
        arguments.n)
    end
    local _inside <close> = enter()
    local _mode <close> = mode(false)
    local value = fn(table.unpack(arguments, 1, arguments.n))
    if not is_tensor(value) then
      errors.raise("gp.grad: the function returned %s, expected a tensor", errors.show(value))
    end
    local grads = gradient.of(value, leaves)
    return value:detach(), table.unpack(grads)
  end
end

--- The gradients of a value (of its sum) for each leaf; zeros for a leaf that it does not depend
--- on.
---@param value gpipe.Tensor
---@param leaves gpipe.Tensor[]
---@param seed? gpipe.Tensor
---@return gpipe.Tensor[]
function gradient.of(value, leaves, seed)
  local create = require "gpipe.tensor.create"
  local found = {}
  if value.requires_grad then
    seed = seed or create.ones(value.shape, { dtype = value.dtype, device = value.device })
    found = core.gradients(value + 0, seed, leaves)
  end
  for i, leaf in ipairs(leaves) do
    found[i] = found[i] or create.zeros(leaf.shape, { dtype = leaf.dtype, device = leaf.device })
  end
  return found
end

return gradient
