-- lua/gpipe/nn/layer/log_softmax.lua - `nn.LogSoftmax`: scores to logarithms of probabilities.

local Softmax = require "gpipe.nn.layer.softmax"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"

--- `nn.LogSoftmax(dim)`: the logarithm of nn.Softmax along a dimension, by default the last,
--- computed without underflow. Its output is the input of nn.NLLLoss.
---
--- Shapes: any.
--- Errors: a dim that is 0 or not an integer; when called, a dimension that the input does not
--- have.
--- ```lua
--- local y = nn.LogSoftmax(2)(gp.ones {3, 1})
--- assert(y:sum():item() == 0)
--- ```
---@class nn.LogSoftmax: nn.Softmax
local LogSoftmax = class.new("LogSoftmax", Softmax, true)

function LogSoftmax:forward(x) return input.tensor(self, x):log_softmax(self.over) end

return LogSoftmax
