-- lua/gpipe/nn/layer/activation/log_softmax.lua - `nn.LogSoftmax`: scores to logarithms of shares.

local Softmax = require "gpipe.nn.layer.activation.softmax"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"

--- `nn.LogSoftmax(dim)`: the logarithm of nn.Softmax along a dimension, the last unless said,
--- computed without its underflow. nn.NLLLoss takes what it gives.
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

return LogSoftmax
