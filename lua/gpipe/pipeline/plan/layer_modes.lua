-- lua/gpipe/pipeline/plan/layer_modes.lua - option `checkpoint` for stages, or as a function: the
-- list of layers that it stands for.
--
-- Which layers a stage has is known when the model is cut, so these forms become lists then. A
-- list says the same for all micro-batches of a stage; where a schedule is to treat single ones
-- apart, its rows name them (R).

local checkpoint = require "gpipe.pipeline.plan.checkpoint"
local errors = require "gpipe.errors"

local layer_modes = {}

-- The same mode for all layers of a stage.
local function by_stage(who, modes, balance)
  if #modes ~= #balance then
    errors.raise("%s: option 'checkpoint' says something for %d stages and there are %d, expected "
      .. "one of %s for each", who, #modes, #balance, checkpoint.mode_names())
  end
  local list = {}
  for s, count in ipairs(balance) do
    for _ = 1, count do list[#list + 1] = modes[s] end
  end
  return list
end

-- What the function says of a layer for every micro-batch.
local function ask(who, fn, layer, stage, chunks)
  local first = fn(layer, stage, 0)
  if checkpoint.mode_fault(first) then
    errors.raise("%s: the function in option 'checkpoint' returned %s for layer %d (stage %d, "
      .. "micro-batch 0), expected %s", who, errors.show(first), layer, stage,
      checkpoint.mode_fault(first))
  end
  for micro = 1, chunks - 1 do
    local mode = fn(layer, stage, micro)
    if mode ~= first then
      errors.raise("%s: the function in option 'checkpoint' returned %s for layer %d in "
        .. "micro-batch 0 and %s in micro-batch %d, expected the same for all of them (R in the "
        .. "rows of a schedule recomputes single ones)", who, errors.show(first), layer,
        errors.show(mode), micro)
    end
  end
  return first
end

local function by_function(who, fn, balance, chunks)
  local list = {}
  for s, count in ipairs(balance) do
    for _ = 1, count do list[#list + 1] = ask(who, fn, #list + 1, s - 1, chunks) end
  end
  return list
end

--- The option as the runtime takes it: a name, or a list for the layers.
---@param who string
---@param given string|string[]|{stage: string[]}|fun(layer: integer, stage: integer, micro: integer): string
---@param balance integer[]
---@param chunks integer of all replicas
---@return string|string[]
function layer_modes.settle(who, given, balance, chunks)
  if type(given) == "function" then return by_function(who, given, balance, chunks) end
  if type(given) == "table" and given.stage then return by_stage(who, given.stage, balance) end
  return given
end

return layer_modes
