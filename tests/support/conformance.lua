-- tests/support/conformance.lua - runs one case of the op table in every way that a script can.
--
-- A case runs eagerly, recorded in a pipeline of one or more stages, and trained, for gradients.
-- Everything goes through the public surface (layers, gp.pipeline, p.grad), so that the comparison
-- is with what users get.

local gp = require "gpipe"
local array = require "tests.support.array"
local inputs = require "tests.support.inputs"
local special = require "tests.support.special"
local tolerances = require "tests.support.tolerance"

local nn = gp.nn

local conformance = {}

-- ---- cases -----------------------------------------------------------------------------------

-- Returns the specs of a case: its list without the options.
local function specs_of(case) return table.move(case, 1, #case, 1, {}) end

local function describe(row, number, dtype, specs)
  local shown = {}
  for i, spec in ipairs(specs) do shown[i] = inputs.show(spec, dtype) end
  return ("%s, case %d (%s)"):format(row.op, number, table.concat(shown, ", "))
end

--- Make case `number` of a row for runs in `dtype`, with its inputs and options.
function conformance.case(row, number, dtype, list)
  local case = (list or row.cases)[number]
  local specs, made = specs_of(case), {}
  for i, spec in ipairs(specs) do made[i] = inputs.make(spec, dtype, 100 * number + i) end
  return {
    row = row, dtype = dtype, o = case.o or {}, inputs = made, error = case.error,
    name = describe(row, number, dtype, specs),
  }
end

--- Say whether the case covers this dtype.
function conformance.applies(row, number, dtype)
  local only = row.cases[number].dtypes
  return not only or only:find(dtype, 1, true) ~= nil
end

-- Returns the outputs of the op on base tensors, real or symbolic.
local function apply(case, bases)
  local views = {}
  for i, input in ipairs(case.inputs) do views[i] = inputs.view(input, bases[i]) end
  return case.row.call(case.o, table.unpack(views))
end

-- place: a function that moves a tensor to where it shall lie.
local function base_tensors(case, place)
  local list = {}
  for i, input in ipairs(case.inputs) do
    list[i] = inputs.tensor(input)
    if place then list[i] = place(list[i]) end
  end
  return list
end

--- Compute the outputs of the op at once.
---@param case table
---@param place? fun(t: gpipe.Tensor): gpipe.Tensor moves the base tensors, of which the op sees views
function conformance.eager(case, place) return { apply(case, base_tensors(case, place)) } end

--- Compute the outputs by the row's reference; bases[i] may replace the base of input i.
function conformance.reference(case, bases)
  local logical = {}
  for i, input in ipairs(case.inputs) do
    logical[i] = inputs.logical(input, bases and bases[i])
  end
  return { case.row.reference(case.o, table.unpack(logical)) }
end

-- ---- comparing -------------------------------------------------------------------------------

-- Returns nil where the two agree, else what differs.
local function difference(got, want, bound, dtype)
  if got == want or (got ~= got and want ~= want) then return nil end
  if bound == "rounded" then
    want, bound = special.round(want, dtype), 0
    if got == want then return nil end
  end
  if bound > 0 and math.abs(got - want) <= bound * (1 + math.abs(want)) then return nil end
  return ("%.17g, expected %.17g (off by %.3g, allowed %.3g)"):format(got, want,
    math.abs(got - want), bound * (1 + math.abs(want)))
end

--- Check shape and elements against an array.
---@param name string of the value, for messages
---@param got tests.Array
---@param want tests.Array
---@param bound number|"rounded"
---@param dtype string
function conformance.compare(name, got, want, bound, dtype)
  local have, wanted = table.concat(got.shape, "x"), table.concat(want.shape, "x")
  if have ~= wanted then error(("%s: shape is %s, expected %s"):format(name, have, wanted), 2) end
  assert(#want == #got, name)
  for i = 1, #want do
    local what = difference(got[i], want[i], bound, dtype)
    if what then error(("%s: element %d is %s"):format(name, i, what), 2) end
  end
end

--- Return the bound of a row (or of a named tolerance) for a dtype.
function conformance.bound(name, dtype)
  local entry = tolerances[name] or error("no tolerance " .. tostring(name))
  return entry[dtype] or 0
end

--- Return the dtype that output k must have.
function conformance.result_dtype(case, k)
  local want = case.row.result and case.row.result[k] or "like"
  if type(want) == "function" then want = want(case.dtype, case.o) end
  return want == "like" and case.dtype or want
end

-- ---- layers ----------------------------------------------------------------------------------

-- A layer that calls a function.
local Call = nn.class("Call")
function Call:init(f) self.f = f end
function Call:forward(...) return self.f(...) end

-- A layer that owns the differentiable inputs as parameters and passes all inputs on, each times
-- the batch, which is 1. So the next layer gets values that every pass computes anew, not
-- parameters.
local Source = nn.class("Source")
function Source:init(case)
  self.case = function() return case end -- hidden, because nn would search the table for modules
  for i, input in ipairs(case.inputs) do
    if input.differentiable then
      self["p" .. i] = nn.Parameter(input.base.shape, inputs.tensor(input), { dtype = input.dtype })
    end
  end
end

function Source:values()
  local list = base_tensors(self.case())
  for i in ipairs(list) do list[i] = self["p" .. i] or list[i] end
  return list
end

function Source:forward(x)
  local list = self:values()
  for i, value in ipairs(list) do
    if self["p" .. i] then list[i] = value * x:sum() end
  end
  return table.unpack(list)
end

-- Applies the op to parameters of the same layer: what depends only on parameters runs once per
-- step.
local Own = nn.class("Own", Source)
function Own:forward() return (apply(self.case(), self:values())) end

-- ---- recorded --------------------------------------------------------------------------------

-- Puts one row in front of a shape, so that the batch has one row whatever the shape is.
local function batched(shape) return { 1, table.unpack(shape) } end

local MOST = 8 -- inputs that a pipeline takes; those beyond are constants of the trace

--- Run the op on the inputs of a pipeline. Two layers restore the shapes and apply the op.
---@param case table
---@param k integer which output
---@param opts table of gp.pipeline
---@return gpipe.Tensor
function conformance.recorded(case, k, opts)
  local known, batch = base_tensors(case), {}
  for i = 1, math.min(#known, MOST) do batch[i] = known[i]:reshape(batched(known[i].shape)) end
  local restore = Call(function(...)
    local list = { ... }
    for i in ipairs(list) do list[i] = list[i]:reshape(known[i].shape) end
    return table.unpack(list)
  end)
  local op = Call(function(...)
    local list = table.move(known, #batch + 1, #known, #batch + 1, { ... })
    local out = select(k, apply(case, list))
    return out:reshape(batched(out.shape))
  end)
  local pipe <close> = gp.pipeline(nn.Sequential { restore, op }, opts)
  local out = pipe:eval():forward(batch)
  return out:reshape { table.unpack(out.shape, 2) }
end

--- Run the op on parameters; returns its first output.
---@return gpipe.Tensor
function conformance.recorded_parameters(case)
  local one_row = Call(function(out) return out:reshape(batched(out.shape)) end)
  local pipe <close> = gp.pipeline(nn.Sequential { Own(case), one_row })
  local out = pipe:eval():forward(gp.ones { 1 })
  return out:reshape { table.unpack(out.shape, 2) }
end

-- ---- trained ---------------------------------------------------------------------------------

--- Make fixed weights for the sum that is differentiated: no two are alike, and both signs occur.
function conformance.weights(shape)
  return array.build(shape, function(_, flat) return ((flat * 37) % 64 - 24.5) / 32 end)
end

local function weighted_sum(output)
  local w = conformance.weights(output.shape)
  w = gp.tensor({ table.unpack(w) }, { dtype = output.dtype }):reshape(output.shape)
  return (output * w):sum(), 1
end

-- Makes a model whose parameters are the inputs; with `split` the parameters are in a layer before
-- the op's.
local function model_of(case, split)
  if not split then return nn.Sequential { Own(case) } end
  return nn.Sequential { Source(case), Call(function(...) return (apply(case, { ... })) end) }
end

--- Return the gradients of sum(output * weights) by each differentiable input's base: [input] =
--- tensor.
---@param case table
---@param opts table of gp.pipeline
---@param split? boolean the parameters belong to a layer before the op's
function conformance.gradients(case, opts, split)
  opts.loss = weighted_sum
  local pipe <close> = gp.pipeline(model_of(case, split), opts)
  pipe:step(gp.ones({ 1 }, { dtype = case.dtype }), gp.zeros { 1 })
  local grads = {}
  for _, p in ipairs(pipe:parameters()) do
    assert(p.grad, case.name .. ": " .. p.name .. " has no gradient")
    grads[tonumber(p.name:match("p(%d+)$"))] = p.grad:clone()
  end
  return grads
end

local STEP = 2.0 ^ -17 -- exact next to the inputs, which are multiples of 2^-10

local function reference_sum(case, bases)
  local out, sum = conformance.reference(case, bases)[1], 0.0
  local w = conformance.weights(out.shape)
  for i = 1, #out do sum = sum + out[i] * w[i] end
  return sum
end

local SAMPLE = 12 -- so many elements of an input are checked, spread evenly

-- Returns the slope of the weighted sum by one element of input i.
local function slope_at(case, i, base, flat)
  local x = base[flat]
  base[flat] = x + STEP
  local above = reference_sum(case, { [i] = base })
  base[flat] = x - STEP
  local below = reference_sum(case, { [i] = base })
  base[flat] = x
  return (above - below) / (2 * STEP)
end

--- Check gradients against central differences of the reference, in f64.
---@param case table
---@param grads table<integer, gpipe.Tensor> per input
function conformance.check_slopes(case, grads)
  local bound = conformance.bound("gradient", "f64")
  for i, input in ipairs(case.inputs) do
    if grads[i] then
      local name = ("%s, gradient of input %d"):format(case.name, i)
      local got, base = array.of(grads[i]), array.map(function(v) return v end, input.base)
      assert(table.concat(got.shape, "x") == table.concat(base.shape, "x"), name)
      for flat = 1, #base, math.max(1, #base // SAMPLE) do
        local what = difference(got[flat], slope_at(case, i, base, flat), bound, "f64")
        if what then error(("%s: element %d is %s"):format(name, flat, what), 2) end
      end
    end
  end
end

--- Say whether the case can be trained: something is differentiable, and no parameter has a size 0.
function conformance.trains(case)
  local any = false
  for _, input in ipairs(case.inputs) do
    any = any or input.differentiable
    if input.differentiable and #input.base == 0 then return false end
  end
  return any
end

return conformance
