-- lua/gpipe/nn/summary.lua - `model:summary(input_shape)`: output shape, parameters and cost of
-- each layer.
--
-- There is one row for each layer of the outermost Sequential, because `balance` counts those.
-- Shapes and FLOP come from tracing each layer with a value that has a type and no data, so a model
-- that is larger than this machine can be summarized.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local attributes = require "gpipe.nn.attributes"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local random = require "gpipe.random"
local scope = require "gpipe.nn.scope"
local skips = require "gpipe.nn.skip.values"

local summary = {}

---@class nn.SummaryRow
---@field name string path of the layer
---@field layer string "Linear 784 -> 256"
---@field shape? integer[] of its (first) output
---@field parameters integer elements, those shared with an earlier layer left out
---@field flop? number of the forward pass, per sample

-- ---- rows ------------------------------------------------------------------------------------

-- Count the elements of parameters below a module that were not counted before.
local function count_parameters(module, counted)
  local total = 0
  attributes.walk(module, function(_, value, kind)
    if kind == "parameter" and not counted[value] then
      counted[value] = true
      total = total + value:numel()
    end
  end)
  return total
end

-- Guess the dtype of the input: models that begin with an Embedding take ids.
local function guess_dtype(model)
  local first
  attributes.walk(model, function(_, value, kind)
    local leaf = kind == "module" and #attributes.list(value) > 0 and class.of(value).name
    if leaf == "Embedding" or leaf == "Linear" or leaf == "LayerNorm" then first = first or leaf end
  end)
  local own = class.of(model).name
  return (first or own) == "Embedding" and "i64" or "f32"
end

-- The layers of a Sequential; any other model is its own only layer.
local function layers_of(model)
  local layers = {}
  if not model.run_layers then
    local function run(...) return model(...) end
    return { { name = "", module = model, run = run } }
  end
  for i, layer in ipairs(model) do
    layers[i] = {
      name = model:attribute_name(i), module = layer,
      run = function(...) return model:run_layers(i, i, ...) end,
    }
  end
  return layers
end

-- Trace one layer. `flow` is what passes from layer to layer: {outputs = a list of {shape, dtype},
-- kept = skips that are not yet popped}. core.trace_cost(fn, inputs) traces fn in evaluation mode
-- on values of the given types. Each layer has a trace of its own, so tensors on a skip go into it
-- and out of it like the others.
local function cost_of(run, flow)
  local inputs, count = table.move(flow.outputs, 1, #flow.outputs, 1, {}), #flow.outputs
  local tensors = {} -- positions in flow.kept of those that are tensors and not nil
  for k, each in ipairs(flow.kept) do
    if each.shape then
      inputs[#inputs + 1], tensors[#tensors + 1] = each, k
    end
  end
  local made
  local cost = core.trace_cost(function(...)
    local given = { ... }
    for k, position in ipairs(tensors) do flow.kept[position].value = given[count + k] end
    return skips.within(function()
      local all = { run(table.unpack(given, 1, count)) }
      count, made = #all, skips.kept()
      for _, each in ipairs(made) do
        if is_tensor(each.value) then
          each.shape, each.dtype = each.value.shape, each.value.dtype
          all[#all + 1] = each.value
        end
      end
      return table.unpack(all)
    end, flow.kept)
  end, inputs)
  return { outputs = table.move(cost.outputs, 1, count, 1, {}), kept = made, flop = cost.flop }
end

---@return nn.SummaryRow[]
local function rows_of(model, inputs, samples)
  local rows, counted = {}, {}
  local flow = { outputs = inputs, kept = {} }
  for i, layer in ipairs(layers_of(model)) do
    local row = { name = layer.name, layer = scope.describe(layer.module) }
    row.parameters = count_parameters(layer.module, counted)
    local _guard <close> = random.guard()
    flow = cost_of(layer.run, flow)
    row.shape, row.flop = flow.outputs[1].shape, flow.flop / samples
    rows[i] = row
  end
  return rows
end

-- ---- text ------------------------------------------------------------------------------------

-- 1234567 -> "1,234,567"
local function grouped(n)
  local text = ("%d"):format(n)
  return (text:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

-- 1234567 -> "1.23 M"
local function scaled(n)
  if not n then return "-" end
  for _, unit in ipairs { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } } do
    if n >= unit[1] then return ("%.2f %s"):format(n / unit[1], unit[2]) end
  end
  return ("%d"):format(math.floor(n + 0.5))
end

local function total_of(rows)
  local total = { name = "total", layer = "", parameters = 0,
    flop = rows[1] and rows[1].flop and 0 }
  for _, row in ipairs(rows) do
    total.parameters = total.parameters + row.parameters
    if total.flop then total.flop = total.flop + row.flop end
  end
  return total
end

local function cells_of(row)
  return {
    row.name, row.layer, row.shape and check.shape_text(row.shape) or "-",
    grouped(row.parameters), scaled(row.flop),
  }
end

local function table_text(rows)
  local cells = { { "name", "layer", "output", "parameters", "FLOP/sample" } }
  for _, row in ipairs(rows) do cells[#cells + 1] = cells_of(row) end
  cells[#cells + 1] = cells_of(total_of(rows))
  cells[#cells][3] = ""
  local width = { 0, 0, 0, 0, 0 }
  for _, line in ipairs(cells) do
    for c, cell in ipairs(line) do width[c] = math.max(width[c], #cell) end
  end
  local form = ("%%-%ds  %%-%ds  %%%ds  %%%ds  %%%ds"):format(table.unpack(width))
  local lines = {}
  for i, line in ipairs(cells) do lines[i] = form:format(table.unpack(line)) end
  return table.concat(lines, "\n")
end

-- ---- the method ------------------------------------------------------------------------------

--- Print one line for each layer: output shape, parameters, FLOP of the forward pass per sample.
--- Shapes: input_shape includes the rows, e.g. {32, 784}.
--- Errors: those of the layers, when the shape does not fit.
--- ```lua
--- local model = nn.Sequential {nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)}
--- local rows = model:summary({32, 784})
--- assert(rows[1].parameters == 784 * 256 + 256)
--- ```
---@param input_shape integer[]
---@param opts? {dtype?: string, quiet?: boolean} dtype of the input: "i64" where the model begins
---  with an Embedding, else "f32"; quiet: only return the rows
---@return nn.SummaryRow[]
function summary.print(model, input_shape, opts)
  if type(input_shape) ~= "table" or #input_shape == 0 then
    errors.raise("summary: input_shape is %s, expected a list of sizes such as {32, 784}",
      errors.show(input_shape))
  end
  local shape = check.shape("summary", "input_shape", input_shape)
  opts = options.check("summary", opts, {
    dtype = { type = "string", default = guess_dtype(model) },
    quiet = { type = "boolean", default = false },
  })
  local rows = rows_of(model, { { shape = shape, dtype = opts.dtype } }, shape[1])
  if not opts.quiet then io.write(table_text(rows), "\n") end
  return rows
end

return summary
