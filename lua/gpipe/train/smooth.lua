-- lua/gpipe/train/smooth.lua - `gp.train.smooth`: an exponential mean.

local options = require "gpipe.options"
local part = require "gpipe.train.part"

---@class gpipe.Smooth
---@field value number? the mean so far; nil before the first finite value
local methods = {}

local new = part.class {
  who = "gp.train.smooth", methods = methods, call = "update", may = { beta = true },
  fields = {
    sum = { type = "number", required = true }, weight = { type = "number", required = true },
    value = { type = "number" },
  },
}

--- Add a value; calling the object does the same. Values that are not finite are left out, because
--- the mean would never be finite again.
--- ```lua
--- local smooth = gp.train.smooth(0.5)
--- assert(smooth:update(4) == 4 and smooth:update(0 / 0) == 4)
--- ```
---@param value number
---@return number? mean of the values so far
function methods:update(value)
  part.number("gp.train.smooth", "value", value)
  if not part.is_finite(value) then return self.value end
  self.sum = self.beta * self.sum + (1 - self.beta) * value
  self.weight = self.beta * self.weight + (1 - self.beta)
  self.value = self.sum / self.weight
  return self.value
end

--- An exponential mean of a measure, for people to look at: each value counts `beta` times as much
--- as the next one. Bias correction keeps the first means from being too close to zero.
--- Errors: a beta outside of [0, 1).
--- ```lua
--- local smooth = gp.train.smooth(0.9)
--- assert(smooth(2) == 2)
--- assert(smooth(4) > 3 and smooth.value < 4)
--- ```
---@param beta? number share of the past; 0.98
---@return gpipe.Smooth
local function smooth(beta)
  beta = options.argument("gp.train.smooth", "beta", beta,
    { type = "number", min = 0, below = 1, default = 0.98 })
  return new { beta = beta, sum = 0, weight = 0 }
end

return { new = smooth, methods = methods }
