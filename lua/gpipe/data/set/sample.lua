-- gpipe/data/set/sample.lua - draws items at random: with or without replacement, evenly or by
-- weights.
--
-- The draw is a function of the seed, the epoch and the weights. To draw by weights without
-- replacement, every item gets the key -log(u) / weight and the smallest keys are taken: the
-- chances are the same as when drawing one item after the other. Source: Efraimidis and Spirakis
-- 2006.

local class = require "gpipe.data.set.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local random = require "gpipe.random"

local MOST = 1 << 26 -- most items that can be drawn
local SMALLEST = 2.0 ^ -60 -- in place of 0, which has no logarithm

-- ---- weights -----------------------------------------------------------------------------------

-- Check the weights; return them as a list of n numbers, their sum, and how many are above 0.
local function check_weights(given, n)
  local list = given
  if is_tensor(given) then
    list = given:dim() == 1 and given:to("cpu"):totable() or {}
  end
  if #list ~= n then
    errors.raise("sample: %d weights, expected one for each of %d items", #list, n)
  end
  local sum, positive = 0.0, 0
  for i, w in ipairs(list) do
    if type(w) ~= "number" or not (w >= 0 and w < math.huge) then
      errors.raise("sample: weight %d is %s, expected a number >= 0", i, errors.show(w))
    end
    sum = sum + w
    if w > 0 then positive = positive + 1 end
  end
  if not (sum > 0 and sum < math.huge) then
    errors.raise("sample: the weights sum to %g, expected a finite sum > 0", sum)
  end
  return list, sum, positive
end

-- ---- drawing -----------------------------------------------------------------------------------

-- n numbers from 0 to 1.
local function uniform(n, key)
  return core.random("sample", { n }, "uniform", "f64", key.seed, key.stream)
end

-- The first place whose running sum exceeds the value.
local function place_of(sums, value)
  local low, high = 1, #sums
  while low < high do
    local middle = (low + high) // 2
    if sums[middle] > value then high = middle else low = middle + 1 end
  end
  return low
end

local function with_replacement(o, n, key)
  local numbers = uniform(o.count, key)
  if not o.weights then return (numbers * n):floor():clamp(0, n - 1):to("i64") + 1 end
  local drawn = numbers:totable()
  local weights, sum = check_weights(o.weights, n)
  local sums, running = {}, 0.0
  for i, w in ipairs(weights) do
    running = running + w
    sums[i] = w > 0 and running or sums[i - 1] or 0.0
  end
  local below = running * (1 - 2.0 ^ -53)
  for i, u in ipairs(drawn) do drawn[i] = place_of(sums, math.min(u * sum, below)) end
  return core.tensor(drawn, "i64")
end

local function without_replacement(o, n, key)
  if not o.weights then
    return core.permutation(n, key.seed, key.stream):narrow(1, 1, o.count):contiguous()
  end
  local weights = check_weights(o.weights, n)
  local keys, list = uniform(n, key):totable(), {}
  for i, w in ipairs(weights) do
    keys[i] = -math.log(math.max(keys[i], SMALLEST)) / w
    if w > 0 then list[#list + 1] = i end
  end
  table.sort(list, function(a, b)
    if keys[a] ~= keys[b] then return keys[a] < keys[b] end
    return a < b
  end)
  return core.tensor(table.move(list, 1, o.count, 1, {}), "i64")
end

-- ---- the method --------------------------------------------------------------------------------

local SPEC = {
  weights = { type = { "table", "tensor" } },
  replacement = { type = "boolean" },
  count = { type = "integer", min = 1, max = MOST },
  seed = { type = "integer" },
  epoch = { type = "integer", min = 0, max = 1 << 40 },
}

-- Check that count is not more than the items that can be drawn without replacement.
local function check_count(o, n)
  if o.replacement then return end
  local most = n
  if o.weights then most = select(3, check_weights(o.weights, n)) end
  if o.count > most then
    errors.raise("sample: count is %d, but only %d items can be drawn without replacement, "
      .. "expected at most as many (or replacement = true)", o.count, most)
  end
end

---@class gpipe.SampleOptions
---@field weights? number[]|gpipe.Tensor one for each item, >= 0; left out: all alike
---@field replacement? boolean whether an item can be drawn again; default: true with weights, else
--- false
---@field count? integer items to draw; default as many as there are
---@field seed? integer left out: it follows gp.seed, and every call draws others
---@field epoch? integer from 0: other items for each epoch of a seed

--- Draw items at random, each with a chance in proportion to its weight: for example rare classes
--- more often, as PyTorch's WeightedRandomSampler does, or a few of very many items. The draw is a
--- function of seed and epoch. The result is a dataset, in the order in which the items were drawn.
--- Errors: not one weight for each item, negative weights or only zeros; more items than can be
--- drawn without replacement.
--- ```lua
--- local y = gp.tensor({0, 0, 0, 1}, {dtype = "i64"})
--- local d = gp.data.tensors(gp.arange(1, 4), y)
--- for x, y in d:sample {weights = {1, 1, 1, 3}, count = 8, seed = 1}:batches(8) do print(y) end
--- ```
---@param opts? gpipe.SampleOptions
---@return gpipe.Dataset
function class.methods:sample(opts)
  local f = class.fields(self)
  local o = options.check("sample", opts, SPEC)
  if o.replacement == nil then o.replacement = o.weights ~= nil end
  o.count = o.count or f.count
  check_count(o, f.count)
  local key = {}
  key.seed, key.stream = random.next_shuffle(o.seed)
  if o.seed and o.epoch then key.stream = o.epoch end
  local draw = o.replacement and with_replacement or without_replacement
  return class.pick(f, draw(o, f.count, key), key)
end

return class
