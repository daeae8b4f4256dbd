-- lua/gpipe/nn/layer/activation/glu.lua - `nn.GLU`: one half of a dimension opens the other.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

---@class nn.GLU: nn.Module
---@field over integer the dimension
local GLU = class.new("GLU", Module, true)

--- The first half of a dimension times the sigmoid of the second. Source: Dauphin et al. 2016.
---
--- Shapes: [.., 2 n, ..] -> [.., n, ..].
--- Errors: dim 0 or no integer; when called, a size that is odd.
--- ```lua
--- assert(nn.GLU()(gp.ones {3, 8}).shape[2] == 4)
--- ```
---@param dim? integer from 1, negative from the end; -1
function GLU:init(dim)
  self.over = check.integer("nn.GLU", "dim", dim == nil and -1 or dim)
  if self.over == 0 then check.fail("nn.GLU", "dim", 0, "1 or more, or negative") end
end

function GLU:forward(x)
  local size = input.tensor(self, x):size(self.over)
  if size % 2 ~= 0 then
    errors.raise("%s: input is %s, expected an even size of dimension %d", scope.label(self),
      check.shape_text(x.shape), self.over)
  end
  local half = size // 2
  return x:narrow(self.over, 1, half) * x:narrow(self.over, half + 1, half):sigmoid()
end

function GLU:describe() return tostring(self.over) end

return GLU
