-- lua/gpipe/plan/sums.lua - what a range of layers takes together, in constant time: running sums,
-- and a table of maxima for what only one layer needs at a time.

local sums = {}

local SUMMED = { "forward", "forward_dropped", "input", "weight", "backward", "recompute",
  "saved_bytes", "parameter_bytes", "head_bytes", "carried_bytes", "packed_bytes", "output_bytes" }

---@class gpipe.LayerSums
---@field count integer
---@field layers gpipe.PlanLayer[]
---@field forward number[] element i + 1: the first i layers together
---@field work number[] the same of forward and backward
---@field crossing? table what cuts cost, of crossing.seconds
---@field output number[] bytes that cross a cut behind layer i; 0 before the first, behind the last
---@field gradient number[] the same of gradients, which cross it backward

local function running(layers, key)
  local list, sum = { 0 }, 0.0
  for i, layer in ipairs(layers) do
    sum = sum + layer[key]
    list[i + 1] = sum
  end
  return list
end

-- Where a layer has neighbours in its stage, backward holds their gradients beside its workspace:
-- one on its way in, one on its way out, and those being added up.
local function work_of(layers, i)
  local before = i > 1 and layers[i - 1].output_bytes or 0
  local behind = i < #layers and layers[i].output_bytes or 0
  return layers[i].workspace_bytes + 2 * (before + behind)
end

-- maxima[k][i]: the largest value of 2^(k-1) layers from i on.
local function maxima_of(layers, value)
  local maxima, width = { {} }, 1
  for i = 1, #layers do maxima[1][i] = value(layers, i) end
  while 2 * width <= #layers do
    local below, row = maxima[#maxima], {}
    for i = 1, #layers - 2 * width + 1 do row[i] = math.max(below[i], below[i + width]) end
    maxima[#maxima + 1], width = row, 2 * width
  end
  return maxima
end

local function selective_of(layers)
  local kept, remade, head = { 0 }, { 0 }, { 0 }
  for i, layer in ipairs(layers) do
    local some = layer.selective
    kept[i + 1] = kept[i] + (some and some.saved_bytes or layer.saved_bytes)
    remade[i + 1] = remade[i] + (some and some.recompute or 0)
    head[i + 1] = head[i] + (some and some.head_bytes or layer.head_bytes)
  end
  return kept, remade, head
end

--- The sums of a list of layers.
---@param layers gpipe.PlanLayer[]
---@return gpipe.LayerSums
function sums.of(layers)
  local made = { count = #layers, layers = layers, maxima = maxima_of(layers, work_of),
    largest = maxima_of(layers, function(_, i) return layers[i].saved_bytes end),
    output = { [0] = 0 }, gradient = { [0] = 0 }, scratch = 0, crossing = layers.crossing }
  for _, key in ipairs(SUMMED) do made[key] = running(layers, key) end
  made.work = {}
  for i = 1, #layers + 1 do made.work[i] = made.forward[i] + made.input[i] + made.weight[i] end
  made.selective_bytes, made.selective_recompute, made.selective_head = selective_of(layers)
  made.most_output = 0
  for i = 1, #layers do
    made.output[i] = i < #layers and layers[i].output_bytes or 0
    made.gradient[i] = i < #layers and layers[i].gradient_bytes or 0
    made.most_output = math.max(made.most_output, made.output[i])
    made.scratch = math.max(made.scratch, layers[i].scratch_bytes)
  end
  return made
end

--- The sum of a figure over layers i .. j.
function sums.range(list, i, j) return list[j + 1] - list[i] end

--- Forward and backward of layers i .. j, without recomputation.
function sums.compute(self, i, j)
  local work = self.work
  return work[j + 1] - work[i]
end

--- What a stage of layers i .. j saves for a micro-batch; what leaves the stage lies on an edge.
function sums.saved(self, i, j)
  local layer = self.layers[j]
  local leaves = math.min(self.output[j], layer.saved_bytes)
  return self.saved_bytes[j + 1] - self.saved_bytes[i] - leaves
end

--- The same in two parts: what W reads, where it runs apart from I, and what it does not. Of what
--- leaves the stage W reads as much as there is.
---@return number rest
---@return number head
function sums.parts(self, i, j)
  local saved, head = sums.saved(self, i, j), sums.range(self.head_bytes, i, j)
  if head > saved then head = saved end
  return saved - head, head
end

local function most_of(maxima, i, j)
  local level, width = 1, 1
  while 2 * width <= j - i + 1 do level, width = level + 1, 2 * width end
  local row = maxima[level]
  return math.max(row[i], row[j - width + 1])
end

--- The most that one of layers i .. j works with.
function sums.transient(self, i, j) return most_of(self.maxima, i, j) end

--- What a micro-batch holds of layers i .. j while each is made again right before its backward:
--- the inputs of all but the first, for as long as the micro-batch lives; and all of one layer.
---@return number inputs
---@return number layer
function sums.by_layer(self, i, j)
  return self.output_bytes[j] - self.output_bytes[i], most_of(self.largest, i, j)
end

return sums
