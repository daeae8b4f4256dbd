-- lua/gpipe/train/divergence.lua - `gp.train.divergence`: detects a loss that is not finite, or
-- that jumps.
--
-- A value is compared with the median of earlier values, in units of their median deviation. One
-- spike changes neither, and values that are not finite are never included (in running sums a
-- single NaN would stay forever, and every later jump would pass).

local options = require "gpipe.options"
local part = require "gpipe.train.part"

local LEAST = 10      -- values before a jump can be detected
local SCALE = 1.4826  -- median deviation to standard deviation of normal values
local LEAST_SHARE = 1e-3 -- of the median: a smaller change is never a jump

---@class gpipe.Divergence
---@field nonfinite integer values in a row that were not finite
---@field jumps integer values so far that jumped
local methods = {}

local new = part.class {
  who = "gp.train.divergence", methods = methods, call = "update",
  may = { window = true, z = true, factor = true, sorted = true, sorted_from = true },
  fields = {
    values = { type = "table", required = true }, at = part.COUNT, nonfinite = part.COUNT,
    jumps = part.COUNT,
  },
}

local Trouble = { __name = "gpipe.Trouble" }
Trouble.__index = function() end
function Trouble:__tostring() return self.text end

-- ---- earlier values ----------------------------------------------------------------------------

-- The first place in a sorted list whose value is not less.
local function place_of(sorted, value)
  local low, high = 1, #sorted + 1
  while low < high do
    local middle = (low + high) // 2
    if sorted[middle] < value then low = middle + 1 else high = middle end
  end
  return low
end

-- The sorted window; it is updated from step to step, and made again after a restore.
local function sorted_of(self)
  if self.sorted_from ~= self.values then
    self.sorted = table.move(self.values, 1, #self.values, 1, {})
    table.sort(self.sorted)
    self.sorted_from = self.values
  end
  return self.sorted
end

local function remember(self, value)
  local sorted = sorted_of(self)
  self.at = self.at % self.window + 1
  local old = self.values[self.at]
  if old then table.remove(sorted, place_of(sorted, old)) end
  table.insert(sorted, place_of(sorted, value), value)
  self.values[self.at] = value
end

-- The median distance from the middle, found by taking the nearest values from both sides.
local function median_distance(sorted, middle)
  local n = #sorted
  local right = place_of(sorted, middle)
  local left, last, before = right - 1, 0, 0
  for _ = 1, n // 2 + 1 do
    local down = left >= 1 and middle - sorted[left] or math.huge
    local up = right <= n and sorted[right] - middle or math.huge
    before = last
    if down < up then last, left = down, left - 1 else last, right = up, right + 1 end
  end
  return n % 2 == 1 and last or (before + last) / 2
end

-- The median of the window and the usual distance from it.
local function usual(self)
  local sorted = sorted_of(self)
  local n = #sorted
  local middle = (sorted[(n + 1) // 2] + sorted[n // 2 + 1]) / 2
  return middle,
    math.max(SCALE * median_distance(sorted, middle), LEAST_SHARE * math.abs(middle))
end

-- ---- messages ----------------------------------------------------------------------------------

local SUGGESTION = "go on from a checkpoint before it with a lower learning rate or more warmup, "
  .. "or clip gradients"

local function not_finite(self, step, value)
  self.nonfinite = self.nonfinite + 1
  return {
    kind = "not finite", step = step, value = value,
    suggestion = "option finite = true of gp.pipeline names the layer; " .. SUGGESTION,
    text = ("step %d: the loss is %s (%d in a row)"):format(step,
      value ~= value and "nan" or value, self.nonfinite),
  }
end

local function jump(self, step, value)
  local middle, spread = usual(self)
  local z = (value - middle) / spread
  if not (z > self.z and (not self.factor or value > self.factor * middle)) then return nil end
  self.jumps = self.jumps + 1
  return {
    kind = "jump", step = step, value = value, usual = middle, z = z, suggestion = SUGGESTION,
    text = ("step %d: the loss jumped to %.4g (%.4g before, %.3g times the usual distance)")
      :format(step, value, middle, z),
  }
end

--- Check the loss of a step; calling the object does the same.
--- ```lua
--- local watch = gp.train.divergence()
--- assert(watch:update(1, 2.5) == nil)
--- assert(watch:update(2, 0 / 0).kind == "not finite")
--- ```
---@param step integer
---@param value number the loss, or the norm of the gradients
---@return gpipe.Trouble? trouble nil if all is well; it prints as a sentence
function methods:update(step, value)
  local who = "gp.train.divergence"
  step = options.argument(who, "step", step, { type = "integer", required = true })
  part.number(who, "value", value)
  local found
  if not part.is_finite(value) then
    found = not_finite(self, step, value)
  else
    self.nonfinite = 0
    if #self.values >= LEAST then found = jump(self, step, value) end
    remember(self, value)
  end
  if not found then return nil end
  found.text = ("%s: %s"):format(found.text, found.suggestion)
  return setmetatable(found, Trouble)
end

---@class gpipe.Trouble
---@field kind "not finite"|"jump"
---@field step integer
---@field value number
---@field usual number? the median before a jump
---@field z number? how far it jumped, in usual distances
---@field suggestion string
---@field text string

--- Detect a loss that is not finite, or that jumps: that exceeds the median of the last `window`
--- values by more than `z` usual distances (1.48 times the median deviation), from the tenth value
--- on. With `factor` it must also exceed the median that many times. The script decides what to do.
--- Cost: 4 microseconds a step with a window of 100.
--- Errors: unknown options, a value that is not a number.
--- ```lua
--- local watch = gp.train.divergence {window = 50, z = 8}
--- for step = 1, 20 do assert(not watch(step, 3 - step / 100)) end
--- local trouble = watch(21, 9.5)
--- assert(trouble.kind == "jump" and trouble.step == 21)
--- print(trouble)
--- ```
---@param opts? {window?: integer, z?: number, factor?: number}
---@return gpipe.Divergence
local function divergence(opts)
  opts = options.check("gp.train.divergence", opts, {
    window = { type = "integer", min = LEAST, max = 100000, default = 100 },
    z = { type = "number", above = 0, default = 6 },
    factor = { type = "number", above = 1 },
  })
  return new { window = opts.window, z = opts.z, factor = opts.factor, values = {}, at = 0,
    nonfinite = 0, jumps = 0 }
end

return { new = divergence, methods = methods }
