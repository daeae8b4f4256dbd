-- lua/gpipe/gradient/check.lua - gp.gradcheck: compares the gradients of a function with
-- differences.
--
-- Each element of each input is moved by eps both ways. The outputs are weighted by fixed numbers
-- that all differ, so that errors of two outputs cannot cancel.

local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local gradient = require "gpipe.gradient"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"

local RULES = {
  eps = { type = "number", above = 0, default = 1e-6 },
  rtol = { type = "number", min = 0, default = 1e-3 },
  atol = { type = "number", min = 0, default = 1e-5 },
}

-- The outputs of fn, weighted and added.
local function weigh(fn, inputs)
  local outputs = table.pack(fn(table.unpack(inputs)))
  local total
  for k = 1, outputs.n do
    local value = outputs[k]
    if not is_tensor(value) then
      errors.raise("gp.gradcheck: value %d of the function is %s, expected a tensor", k,
        errors.show(value))
    end
    if value.dtype == "f64" then
      local weights = create.rand(value.shape, { dtype = "f64", seed = 77 + k })
      local part = (value * (weights + 0.5)):sum()
      total = total and total + part or part
    end
  end
  return total or errors.raise("gp.gradcheck: the function returned no tensor of f64")
end

local function check_inputs(inputs)
  if is_tensor(inputs) then inputs = { inputs } end
  if type(inputs) ~= "table" or #inputs == 0 then
    errors.raise("gp.gradcheck: the inputs are %s, expected a list of tensors",
      errors.show(inputs))
  end
  local leaves, copies = {}, {}
  for i, value in ipairs(inputs) do
    copies[i] = value
    if is_tensor(value) and value.dtype == "f64" then
      copies[i] = value:detach():clone()
      copies[i].requires_grad = true
      leaves[#leaves + 1] = { at = i, tensor = copies[i] }
    elseif is_tensor(value) and value.dtype:find "^[fb]" and value.dtype ~= "bool" then
      errors.raise("gp.gradcheck: input %d is %s, expected f64 (differences need its digits)", i,
        value.dtype)
    end
  end
  if #leaves == 0 then errors.raise "gp.gradcheck: no input is a tensor of f64, expected one" end
  return copies, leaves
end

-- (f(x + eps) - f(x - eps)) / 2 eps for element e of a leaf.
local function difference(fn, inputs, leaf, e, eps)
  local flat = leaf:detach():view { -1 }
  local before = flat[e]
  local function at(value)
    flat[e] = value
    return gradient.no_grad(weigh, fn, inputs):item()
  end
  local up, down = at(before + eps), at(before - eps)
  flat[e] = before
  return (up - down) / (2 * eps)
end

local function compare(fn, inputs, leaf, grad, o, faults)
  local flat = grad:reshape { -1 }
  for e = 1, leaf.tensor:numel() do
    local want, have = difference(fn, inputs, leaf.tensor, e, o.eps), flat[e]
    local close = math.abs(have - want) <= o.atol + o.rtol * math.abs(want)
    if not close then -- also if one of them is NaN
      faults[#faults + 1] = ("input %d, element %d: gradient %.9g, difference %.9g"):format(
        leaf.at, e, have, want)
    end
  end
end

local SHOWN = 10

--- Compare the gradients of a function with differences, element by element.
---
--- Inputs of f64 are checked, others are passed on. Each element is moved by eps, so the function
--- must be smooth there and give the same value each time (no dropout).
--- ```lua
--- assert(gp.gradcheck(function(x) return (x * x):sum() end, {gp.randn({3}, {dtype = "f64"})}))
--- ```
---@param fn function
---@param inputs gpipe.Tensor[]
---@param opts? {eps?: number, rtol?: number, atol?: number} 1e-6, 1e-3, 1e-5
---@return boolean? good nil where they differ
---@return string? report the elements that differ
return function(fn, inputs, opts)
  local o = options.check("gp.gradcheck", opts, RULES)
  local copies, leaves = check_inputs(inputs)
  local tensors, faults = {}, {}
  for k, leaf in ipairs(leaves) do tensors[k] = leaf.tensor end
  local grads = gradient.of(weigh(fn, copies), tensors)
  for k, leaf in ipairs(leaves) do compare(fn, copies, leaf, grads[k], o, faults) end
  if #faults == 0 then return true end
  local left = #faults - SHOWN
  if left > 0 then faults[SHOWN + 1] = ("and %d more"):format(left) end
  return nil, ("gp.gradcheck: %d elements differ\n  %s"):format(left + SHOWN,
    table.concat(faults, "\n  ", 1, math.min(#faults, SHOWN + 1)))
end
