-- lua/gpipe/compile.lua - `gp.compile`: a function of tensors, recorded and planned.
--
-- A compiled function runs as the forward pass of a pipeline of one stage. Each tensor is passed as
-- a batch of one row, so that tensors of any rank, scalars included, can go in and come out.

local class = require "gpipe.nn.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local random = require "gpipe.random"

-- ---- the only row -------------------------------------------------------------------------------

-- The shape of a tensor without its first dimension, which is 1.
local function inner(tensor)
  local shape = tensor.shape
  table.remove(shape, 1)
  return tensor:reshape(shape)
end

local function as_row(tensor)
  local shape = tensor.shape
  table.insert(shape, 1, 1)
  return tensor:reshape(shape)
end

local function each(fn, values, n)
  local made = {}
  for i = 1, n do made[i] = fn(values[i]) end
  return made
end

local function check_outputs(outputs)
  if outputs.n == 0 then
    errors.raise("gp.compile: the function returned nothing, expected a tensor (or several)")
  end
  for i = 1, outputs.n do
    if not is_tensor(outputs[i]) then
      errors.raise("gp.compile: the function returned %s as value %d, expected a tensor",
        errors.show(outputs[i]), i)
    end
  end
end

local MOST_DEEP = 8 -- how deep functions within functions are searched

-- Collect the modules and parameters among a function's upvalues; the recorded module must own
-- them.
local function captured(fn, found, seen, depth)
  if type(fn) ~= "function" or seen[fn] or depth > MOST_DEEP then return end
  seen[fn] = true
  local function look(value)
    if class.of(value) or parameter.kind(value) then
      if not seen[value] then found[#found + 1] = value end
      seen[value] = true
    elseif type(value) == "function" then
      captured(value, found, seen, depth + 1)
    elseif type(value) == "table" and getmetatable(value) == nil and not seen[value] then
      seen[value] = true
      for _, inner_value in pairs(value) do
        if class.of(inner_value) or parameter.kind(inner_value) then look(inner_value) end
      end
    end
  end
  for i = 1, math.huge do
    local name, value = debug.getupvalue(fn, i)
    if not name then return end
    if name ~= "_ENV" then look(value) end
  end
end

local Recorded = class.new("Recorded", require "gpipe.nn.module")
function Recorded:init(fn)
  self.fn = fn
  local found = {}
  captured(fn, found, { [self] = true }, 1)
  for i, value in ipairs(found) do self["captured_" .. i] = value end
end
function Recorded:forward(...)
  local inputs = table.pack(...)
  local outputs = table.pack(self.fn(table.unpack(each(inner, inputs, inputs.n))))
  check_outputs(outputs)
  return table.unpack(each(as_row, outputs, outputs.n))
end

-- ---- calls --------------------------------------------------------------------------------------

local function takes_gradients()
  local off = core.no_grad(true)
  core.no_grad(off)
  return not off
end

local function check_inputs(inputs, who, wanted)
  if inputs.n ~= wanted then
    errors.raise("%s: %d tensors, expected %d", who, inputs.n, wanted)
  end
  for i = 1, inputs.n do
    if not is_tensor(inputs[i]) then
      errors.raise("%s: argument %d is %s, expected a tensor", who, i, errors.show(inputs[i]))
    end
    if inputs[i].requires_grad and takes_gradients() then
      errors.raise("%s: argument %d requires a gradient, which a compiled function does not give: "
        .. "pass t:detach(), or call it within gp.no_grad", who, i)
    end
  end
end

---@class gpipe.Compiled
local Compiled = { __name = "gpipe.Compiled" }
Compiled.__index = Compiled

function Compiled:__call(...)
  local inputs = table.pack(...)
  if not self.pipe then errors.raise("compiled function: it was closed") end
  check_inputs(inputs, "compiled function", self.count)
  return table.unpack(each(inner, { self.pipe:forward(each(as_row, inputs, inputs.n)) },
    self.outputs))
end

--- Free its memory. This also happens at the end of a `<close>` scope and when it is collected.
function Compiled:close()
  if self.pipe then self.pipe:close() end
  self.pipe = nil
end
Compiled.__close = Compiled.close

local function text_of(tensors)
  local parts = {}
  for i, t in ipairs(tensors) do
    local shape = table.concat(t.shape, "x")
    parts[i] = t.dtype .. " " .. (shape == "" and "scalar" or shape)
  end
  return table.concat(parts, ", ")
end

function Compiled:__tostring()
  return ("compiled function: %s%s"):format(self.text, self.pipe and "" or " (closed)")
end

local compiled = 0 -- compiled functions so far; each draws its own random numbers

local OPTIONS = { device = { type = "string", default = "cpu" } }

--- Compile a function of tensors. The function runs once for each set of shapes, on symbolic
--- tensors, and is recorded; calls then run the plan, fused, in memory that is allocated once. In
--- f32 and f64 the results have the same bits as those of the function itself.
---
--- fn: a function, or a module (`nn`), which is compiled in evaluation mode: without dropout and
--- without writing buffers. It may not branch on values. The compiled function owns the modules and
--- parameters that fn refers to until it is closed, as a pipeline does; other tensors are
--- constants. Random numbers (gp.rand) differ from call to call and from one compiled function to
--- the next. They follow gp.seed, but they are not those that fn itself would draw.
--- example_inputs: one tensor, or a list of up to eight. Calls with other shapes are planned when
--- they come; the plans of the six sets of shapes that were used last are kept.
--- opts: `device = "cpu"` (or `"cuda:0"`): where it runs; results come back to the host.
--- Returns a callable with `close()`. It gives no gradients.
--- Errors: those of fn, with its line; arguments that are not tensors, or require a gradient.
--- ```lua
--- local norm <close> = gp.compile(function(x) return (x * x):sum():sqrt() end, gp.ones {2})
--- assert(norm(gp.tensor {3, 4}):item() == 5)
--- assert(norm(gp.tensor {1, 2, 2}):item() == 3) -- planned anew: other shapes
--- ```
---@param fn function|nn.Module
---@param example_inputs gpipe.Tensor|gpipe.Tensor[]
---@param opts? {device?: string}
---@return gpipe.Compiled
return function(fn, example_inputs, opts)
  local o = options.check("gp.compile", opts, OPTIONS)
  local meta = getmetatable(fn)
  if type(fn) ~= "function" and not (type(meta) == "table" and meta.__call) then
    errors.raise("gp.compile: the first argument is %s, expected a function or a module",
      errors.show(fn))
  end
  local list = is_tensor(example_inputs) and { example_inputs } or example_inputs
  if type(list) ~= "table" or #list == 0 then
    errors.raise("gp.compile: example_inputs is %s, expected a tensor, or a list of tensors",
      errors.show(example_inputs))
  end
  check_inputs({ n = #list, table.unpack(list) }, "gp.compile", #list)
  compiled = compiled + 1
  local pipe = require "gpipe.pipeline" (require "gpipe.nn".Sequential { Recorded(fn) },
    { devices = { o.device }, seed = random.current() ~ compiled << 32 }):eval()
  local made <const> = setmetatable({ pipe = pipe, count = #list }, Compiled)
  local good, outputs = pcall(function() return { pipe:forward(each(as_row, list, #list)) } end)
  if not good then
    made:close()
    error(outputs, 0)
  end
  made.outputs = #outputs
  made.text = ("(%s) -> (%s) on %s"):format(text_of(list),
    text_of(each(inner, outputs, #outputs)), o.device)
  return made
end
