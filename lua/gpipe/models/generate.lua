-- lua/gpipe/models/generate.lua - `gp.models.generate`: lets a language model continue a sequence
-- of ids.
--
-- The model's window is padded at its end to a multiple of STEP: causal attention does not look
-- there, and a pipeline needs only one plan for STEP lengths. The choice of ids depends only on the
-- seed and the scores, so it is the same wherever the model is cut.

local context_of = require "gpipe.models.context"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local gradient = require "gpipe.gradient"
local is_tensor = require "gpipe.tensor.is"
local nn = require "gpipe.nn"
local options = require "gpipe.options"

local WHO = "gp.models.generate"
local STEP = 32

local OPTIONS = {
  length = { type = "integer", min = 0, default = 100 },
  temperature = { type = "number", min = 0, default = 1, below = math.huge },
  top_k = { type = "integer", min = 1 },
  top_p = { type = "number", above = 0, max = 1 },
  seed = { type = "integer" },
  stop = { type = "integer", min = 0 },
  context = { type = "integer", min = 1 },
}

-- ---- models -------------------------------------------------------------------------------------

local function is_pipeline(model)
  local meta = type(model) == "table" and getmetatable(model)
  return type(meta) == "table" and meta.__name == "gpipe.Pipeline"
end

-- Run `work` with the model in evaluation mode, and restore its mode afterwards.
local function evaluating(model, work)
  local training = is_pipeline(model) and model.mode == "train"
    or not is_pipeline(model) and model:is_training()
  model:eval()
  local results = table.pack(pcall(work))
  if training then model:train() end
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- The scores [B, T, V] for windows that are padded to `filled` ids.
local function run(model, windows, filled)
  for _, window in ipairs(windows) do
    for i = #window + 1, filled do window[i] = 0 end
    for i = #window, filled + 1, -1 do window[i] = nil end
  end
  local ids = create.tensor(windows, { dtype = "i64" })
  local scores = is_pipeline(model) and model:forward(ids) or model(ids)
  local shape = is_tensor(scores) and scores.shape or {}
  if #shape ~= 3 or shape[1] ~= #windows or shape[2] ~= filled then
    errors.raise("%s: the model gave %s for ids [%d, %d], expected scores [B, T, V]", WHO,
      is_tensor(scores) and "[" .. table.concat(shape, ", ") .. "]" or errors.show(scores),
      #windows, filled)
  end
  return scores
end

-- The same if the model's context is not known: the padded window may be too long for it.
local function try(model, windows, filled, length)
  local good, scores = pcall(run, model, windows, filled)
  if not good and filled > length then good, scores = pcall(run, model, windows, length) end
  if good then return scores end
  if errors.code_of(scores) == "interrupt" then error(scores, 0) end
  errors.raise("%s: the model failed for %d ids, and tells of no context; expected option context, "
    .. "the most ids that it takes (or a field of that name in the model): %s", WHO, length,
    tostring(scores))
end

-- The scores [B, V] of the ids that may follow the windows, which are lists of ids of one length.
local function scores_of(model, windows, context)
  local length = #windows[1]
  local filled = math.min((length + STEP - 1) // STEP * STEP, context or math.maxinteger)
  if not context then return try(model, windows, filled, length):select(2, length) end
  return run(model, windows, filled):select(2, length)
end

-- ---- choosing -----------------------------------------------------------------------------------

-- How many of the probabilities, in descending order, may be drawn.
local function allowed(shares, o)
  local most = math.min(o.top_k or #shares, #shares)
  if not o.top_p then return most end
  local whole, sum = 0, 0
  for i = 1, most do whole = whole + shares[i] end
  for i = 1, most do
    sum = sum + shares[i]
    if sum >= o.top_p * whole then return i end
  end
  return most
end

-- The place among the first `count` probabilities that a number from 0 to 1 selects.
local function place(shares, count, number)
  local whole, sum = 0, 0
  for i = 1, count do whole = whole + shares[i] end
  for i = 1, count do
    sum = sum + shares[i]
    if number * whole < sum then return i end
  end
  return count
end

-- Choose an id for each row of scores [B, V], by one random number a row.
local function choose(scores, o, numbers)
  if o.temperature == 0 then return (scores:argmax(2) - 1):totable() end
  local sorted, positions = (scores / o.temperature):sort(2, { descending = true })
  local shares, ids = sorted:softmax(2):totable(), positions:totable()
  local chosen = {}
  for b, row in ipairs(shares) do
    chosen[b] = ids[b][place(row, allowed(row, o), numbers[b])] - 1
  end
  return chosen
end

-- ---- rows ---------------------------------------------------------------------------------------

local function rows_of(ids)
  if not is_tensor(ids) or ids.dtype ~= "i64" or #ids.shape > 2 or ids:numel() == 0 then
    errors.raise("%s: ids is %s, expected an i64 tensor [T] or [B, T] with T >= 1", WHO,
      is_tensor(ids) and ids.dtype .. " " .. table.concat(ids.shape, "x") or errors.show(ids))
  end
  local rows = ids:to("cpu"):totable()
  if #ids.shape == 1 then return { rows }, true end
  return rows, false
end

local function windows_of(rows, context)
  local windows = {}
  for b, row in ipairs(rows) do
    local first = context and math.max(1, #row - context + 1) or 1
    windows[b] = table.move(row, first, #row, 1, {})
  end
  return windows
end

-- Append an id to each row; rows that have stopped get the stop id. Return whether all have
-- stopped.
local function append(rows, chosen, stop, stopped)
  local all = stop ~= nil
  for b, row in ipairs(rows) do
    row[#row + 1] = stopped[b] and stop or chosen[b]
    stopped[b] = stopped[b] or row[#row] == stop
    all = all and stopped[b]
  end
  return all
end

local function continue(model, rows, o)
  local drawn = o.length > 0 and o.temperature > 0
    and create.rand({ o.length, #rows }, { seed = o.seed }):totable()
  local stopped = {}
  for i = 1, o.length do
    local scores = scores_of(model, windows_of(rows, o.context), o.context)
    if append(rows, choose(scores, o, drawn and drawn[i]), o.stop, stopped) then break end
  end
end

--- Let a language model continue one sequence of ids, or several of one length.
---
--- Shapes: ids [T] or [B, T] -> [T + n] or [B, T + n], the given ids first. n is `length`, or less
--- if every row has reached the id `stop` (rows that stopped earlier are filled with it). The model
--- maps ids [B, T] to scores [B, T, V], is causal, and is in evaluation mode meanwhile. It sees the
--- last `context` ids. By default that is what the model tells, by a field `context` or the rows of
--- its table of positions (`pos`, `wpe`, `position_embeddings` and the like), else all ids.
--- Temperature 0 takes the most likely id. With the same `seed`, or after the same gp.seed, the ids
--- are the same wherever the model is cut.
--- Errors: ids of another kind, an unknown option, a model that fails while no context is known.
--- ```lua
--- local model = gp.models.gpt2 {layers = 1, width = 8, heads = 2, context = 8, vocabulary = 20}
--- local ids = gp.models.generate(model, gp.tensor({1, 2, 3}, {dtype = "i64"}),
---   {length = 5, temperature = 0.8, top_k = 10, seed = 1})
--- assert(ids.shape[1] == 8)
--- ```
---@param model nn.Module|gpipe.Pipeline
---@param ids gpipe.Tensor i64
---@param opts? {length?: integer, temperature?: number, top_k?: integer, top_p?: number,
---  seed?: integer, stop?: integer, context?: integer} length: 100; temperature: 1; top_k: draw
---  from so many most likely ids; top_p: from the fewest whose shares sum to it
---@return gpipe.Tensor ids
return function(model, ids, opts)
  if not nn.is_module(model) and not is_pipeline(model) then
    errors.raise("%s: model is %s, expected a module or a pipeline", WHO, errors.show(model))
  end
  local rows, single = rows_of(ids)
  local o = options.check(WHO, opts, OPTIONS)
  o.context = o.context or context_of(is_pipeline(model) and model.model or model)
  evaluating(model, function()
    gradient.no_grad(continue, model, rows, o)
  end)
  local all = create.tensor(rows, { dtype = "i64" })
  return single and all:select(1, 1) or all
end
