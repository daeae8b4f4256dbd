-- lua/gpipe/nn/layer/norm/local_response_norm.lua - `nn.LocalResponseNorm`: divide each channel by
-- a function of the channels around it.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

---@class nn.LocalResponseNorm: nn.Module
local LocalResponseNorm = class.new("LocalResponseNorm", Module, true)

--- x / (k + alpha / size * sum of the squares of `size` channels around)^beta.
---
--- Shapes: [N, C, ..], the same. Source: Krizhevsky et al. 2012; PyTorch nn.LocalResponseNorm.
--- Errors: a size that is no positive integer.
--- ```lua
--- assert(nn.LocalResponseNorm(5)(gp.ones {1, 3, 2, 2}).shape[2] == 3)
--- ```
---@param size integer
---@param opts? {alpha?: number, beta?: number, k?: number} 1e-4, 0.75, 1
function LocalResponseNorm:init(size, opts)
  self.size = check.size("nn.LocalResponseNorm", "size", size)
  opts = options.check("nn.LocalResponseNorm", opts, {
    alpha = { type = "number", default = 1e-4 }, beta = { type = "number", default = 0.75 },
    k = { type = "number", default = 1 },
  })
  self.alpha, self.beta, self.k = opts.alpha, opts.beta, opts.k
end

function LocalResponseNorm:forward(x)
  local rank, pads = input.tensor(self, x):dim(), {}
  if rank < 2 then
    errors.raise("%s: input is %s, expected rows and channels", scope.label(self),
      check.shape_text(x.shape))
  end
  local channels, before = x:size(2), self.size // 2
  if channels == 0 then return x end
  -- The window's first and last place that has a channel in it; all others would add zeros.
  local first = math.max(1, before - channels + 2)
  local last = math.min(self.size, before + channels)
  for i = 1, 2 * (rank - 2) do pads[i] = 0 end
  pads[#pads + 1], pads[#pads + 2] = before - first + 1, math.max(0, last - 1 - before)
  local squares, sum = (x * x):pad(pads), nil
  for i = 1, last - first + 1 do
    local part = squares:narrow(2, i, channels)
    sum = sum and sum + part or part
  end
  return x / (sum * (self.alpha / self.size) + self.k) ^ self.beta
end

function LocalResponseNorm:describe() return tostring(self.size) end

return LocalResponseNorm
