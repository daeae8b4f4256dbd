-- lua/gpipe/nn/layer/shape/flatten.lua - `nn.Flatten`: joins several dimensions into one.

local errors = require "gpipe.errors"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

---@class nn.Flatten: nn.Module
---@field first integer
---@field last integer
local Flatten = class.new("Flatten", Module, true)

local function position(name, value, default)
  local dim = check.integer("nn.Flatten", name, value == nil and default or value)
  if dim == 0 then check.fail("nn.Flatten", name, 0, "1 or more, or negative") end
  return dim
end

--- Join the dimensions first .. last into one; by default all but the rows.
---
--- Shapes: [B, a, b, c] -> [B, a b c].
--- Errors: positions that are 0, not integers or in the wrong order; when called, dimensions that
--- the input does not have.
--- ```lua
--- local y = nn.Flatten()(gp.ones {2, 3, 4})
--- assert(y.shape[2] == 12)
--- ```
---@param first? integer from 1, negative from the end; 2
---@param last? integer -1
function Flatten:init(first, last)
  self.first, self.last = position("first", first, 2), position("last", last, -1)
  if self.first > self.last and (self.first > 0) == (self.last > 0) then
    check.fail("nn.Flatten", "last", self.last, ("%d or more, as first is"):format(self.first))
  end
end

-- The positions first .. last in a shape of that rank.
function Flatten:range(rank)
  local first = self.first > 0 and self.first or rank + 1 + self.first
  local last = self.last > 0 and self.last or rank + 1 + self.last
  return first, last
end

function Flatten:forward(x)
  local shape = input.tensor(self, x).shape
  local first, last = self:range(#shape)
  if first < 1 or last > #shape or first > last then
    errors.raise("%s: input is %s, expected dimensions %d to %d", scope.label(self),
      check.shape_text(shape), self.first, self.last)
  end
  local size = 1
  for d = first, last do size = size * shape[d] end
  local flat = table.move(shape, 1, first - 1, 1, {})
  flat[first] = size
  return x:reshape(table.move(shape, last + 1, #shape, first + 1, flat))
end

function Flatten:describe() return ("%d .. %d"):format(self.first, self.last) end

return Flatten
