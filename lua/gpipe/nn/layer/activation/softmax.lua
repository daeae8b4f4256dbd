-- lua/gpipe/nn/layer/activation/softmax.lua - `nn.Softmax` and its kin: scores to shares that sum
-- to 1, or to their logarithms.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

---@class nn.Softmax: nn.Module
---@field over integer the dimension
local Softmax = class.new("Softmax", Module, true)

--- exp(x) divided by its sum along a dimension. (A model that ends in nn.CrossEntropyLoss needs no
--- softmax: that loss takes scores.)
---
--- Shapes: any.
--- Errors: dim 0 or no integer; when called, a dimension the input does not have.
--- ```lua
--- local y = nn.Softmax(2)(gp.ones {3, 4})
--- assert(y:sum():item() == 3)
--- ```
---@param dim? integer from 1, negative from the end; -1
function Softmax:init(dim)
  local who = class.of(self).shown
  self.over = check.integer(who, "dim", dim == nil and -1 or dim)
  if self.over == 0 then check.fail(who, "dim", 0, "1 or more, or negative") end
end

function Softmax:forward(x) return input.tensor(self, x):softmax(self.over) end

function Softmax:describe() return tostring(self.over) end

--- `nn.LogSoftmax(dim)`: the logarithm of nn.Softmax along a dimension, the last unless said,
--- computed without its underflow. nn.NLLLoss takes it.
---
--- Shapes: any.
--- Errors: dim 0 or no integer; when called, a dimension the input does not have.
--- ```lua
--- local y = nn.LogSoftmax(2)(gp.ones {3, 1})
--- assert(y:sum():item() == 0)
--- ```
---@class nn.LogSoftmax: nn.Softmax
local LogSoftmax = class.new("LogSoftmax", Softmax, true)

function LogSoftmax:forward(x) return input.tensor(self, x):log_softmax(self.over) end

---@class nn.Softmin: nn.Softmax
local Softmin = class.new("Softmin", Softmax, true)

--- nn.Softmax of -x: the least score has the largest share.
--- Errors: dim 0 or no integer; when called, a dimension the input does not have.
--- ```lua
--- assert(nn.Softmin(1)(gp.zeros {2})[1] == 0.5)
--- ```
---@param dim? integer from 1, negative from the end; -1
function Softmin:init(dim) Softmax.init(self, dim) end

function Softmin:forward(x) return (-input.tensor(self, x)):softmax(self.over) end

--- nn.Softmax of the channels at each place of images [N, C, H, W].
--- Errors: when called, another number of dimensions.
--- ```lua
--- assert(nn.Softmax2d()(gp.zeros {1, 4, 2, 2})[1][1][1][1] == 0.25)
--- ```
---@class nn.Softmax2d: nn.Module
local Softmax2d = class.new("Softmax2d", Module, true)

function Softmax2d:forward(x)
  if #input.tensor(self, x).shape ~= 4 then
    errors.raise("%s: input is %s, expected ?x?x?x?", scope.label(self), check.shape_text(x.shape))
  end
  return x:softmax(2)
end

return {
  Softmax = Softmax, LogSoftmax = LogSoftmax, Softmin = Softmin, Softmax2d = Softmax2d,
}
