-- lua/gpipe/nn/sequence/cells.lua - `nn.LSTMCell`, `nn.GRUCell`, `nn.RNNCell`: single steps of the
-- layers in recurrent.lua, for your own loops.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local recurrent = require "gpipe.nn.sequence.recurrent"
local scope = require "gpipe.nn.scope"

local OPTIONS = {
  bias = { type = "boolean", default = true },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

local RNN_OPTIONS = { nonlinearity = { choices = { "tanh", "relu" }, default = "tanh" } }
for name, option in pairs(OPTIONS) do RNN_OPTIONS[name] = option end

---@class nn.CellOptions
---@field bias? boolean true
---@field dtype? "f32"|"f64"

local function set_up(self, who, input_size, hidden_size, opts)
  self.input_size = check.size(who, "input_size", input_size)
  self.hidden_size = check.size(who, "hidden_size", hidden_size)
  self.dtype = opts.dtype
  local bound, rows = 1 / math.sqrt(self.hidden_size), self.gates * self.hidden_size
  local function make(shape)
    return parameter.Parameter(shape, initial.uniform(-bound, bound), { dtype = opts.dtype })
  end
  self.weight_ih = make { rows, self.input_size } -- one by one: this is the order in files
  self.weight_hh = make { rows, self.hidden_size }
  if not opts.bias then return end
  self.bias_ih = make { rows }
  self.bias_hh = make { rows }
end

local function check_size(self, name, value, size, rows)
  local shape = input.tensor(self, value, name).shape
  if #shape ~= 2 or shape[2] ~= size or rows and shape[1] ~= rows then
    errors.raise_as("shape", "%s: %s is %s, expected %sx%d", scope.label(self), name,
      check.shape_text(shape), rows or "?", size)
  end
end

-- The state that a step begins with; zeros if none is given.
local function first_state(self, name, state, x)
  if state == nil then
    return create.zeros({ x.shape[1], self.hidden_size }, { dtype = self.dtype })
  end
  check_size(self, name, state, self.hidden_size, x.shape[1])
  return state
end

local function step(self, x, h, c)
  local from_x = core.linear(x, self.weight_ih, self.bias_ih)
  return self:step(from_x, core.linear(h, self.weight_hh, self.bias_hh), h, c)
end

local function forward(self, x, h)
  check_size(self, "input", x, self.input_size)
  return (step(self, x, first_state(self, "h", h, x)))
end

local function describe(self) return ("%d -> %d"):format(self.input_size, self.hidden_size) end

-- Make a class that uses the step of a layer.
local function new(name, layer)
  local made = class.new(name, Module, true)
  made.gates, made.step, made.describe, made.forward = layer.gates, layer.step, describe, forward
  return made
end

---@class nn.LSTMCell: nn.Module
---@field weight_ih gpipe.Tensor [4 hidden, in]: input gate, forget gate, cell, output gate
---@field weight_hh gpipe.Tensor [4 hidden, hidden]
---@field bias_ih? gpipe.Tensor [4 hidden]
---@field bias_hh? gpipe.Tensor [4 hidden]
local LSTMCell = new("LSTMCell", recurrent.LSTM)

--- One step of an nn.LSTM: called with (x, h, c) it returns the next h and c.
---
--- Shapes: x [B, in], h and c [B, hidden]; without them it starts from zeros.
--- Errors: sizes that are not positive integers; when called, other shapes, an h without c.
--- Source: PyTorch nn.LSTMCell.
--- ```lua
--- local cell = nn.LSTMCell(3, 5)
--- local h, c = cell(gp.randn {2, 3})
--- h, c = cell(gp.randn {2, 3}, h, c)
--- assert(h.shape[2] == 5 and c.shape[2] == 5)
--- ```
---@param input_size integer
---@param hidden_size integer
---@param opts? nn.CellOptions
function LSTMCell:init(input_size, hidden_size, opts)
  set_up(self, "nn.LSTMCell", input_size, hidden_size, options.check("nn.LSTMCell", opts, OPTIONS))
end

function LSTMCell:forward(x, h, c)
  check_size(self, "input", x, self.input_size)
  if (h == nil) ~= (c == nil) then
    errors.raise("%s: only %s is given, expected both states or none", scope.label(self),
      h and "h" or "c")
  end
  return step(self, x, first_state(self, "h", h, x), first_state(self, "c", c, x))
end

---@class nn.GRUCell: nn.Module
---@field weight_ih gpipe.Tensor [3 hidden, in]: reset gate, update gate, new state
---@field weight_hh gpipe.Tensor [3 hidden, hidden]
---@field bias_ih? gpipe.Tensor [3 hidden]
---@field bias_hh? gpipe.Tensor [3 hidden]
local GRUCell = new("GRUCell", recurrent.GRU)

--- One step of an nn.GRU: called with (x, h) it returns the next h.
---
--- Shapes: x [B, in], h [B, hidden], zeros unless given. Errors: those of nn.LSTMCell.
--- Source: PyTorch nn.GRUCell.
--- ```lua
--- assert(nn.GRUCell(3, 5)(gp.randn {2, 3}).shape[2] == 5)
--- ```
---@param input_size integer
---@param hidden_size integer
---@param opts? nn.CellOptions
function GRUCell:init(input_size, hidden_size, opts)
  set_up(self, "nn.GRUCell", input_size, hidden_size, options.check("nn.GRUCell", opts, OPTIONS))
end

---@class nn.RNNCell: nn.Module
---@field weight_ih gpipe.Tensor [hidden, in]
---@field weight_hh gpipe.Tensor [hidden, hidden]
---@field bias_ih? gpipe.Tensor [hidden]
---@field bias_hh? gpipe.Tensor [hidden]
local RNNCell = new("RNNCell", recurrent.RNN)

---@class nn.RNNCellOptions: nn.CellOptions
---@field nonlinearity? "tanh"|"relu" "tanh"

--- One step of an nn.RNN: called with (x, h) it returns the next h.
---
--- Shapes and errors: those of nn.GRUCell. Source: PyTorch nn.RNNCell.
--- ```lua
--- assert(nn.RNNCell(3, 5, {nonlinearity = "relu"})(gp.randn {2, 3}).shape[2] == 5)
--- ```
---@param input_size integer
---@param hidden_size integer
---@param opts? nn.RNNCellOptions
function RNNCell:init(input_size, hidden_size, opts)
  opts = options.check("nn.RNNCell", opts, RNN_OPTIONS)
  self.nonlinearity = opts.nonlinearity
  set_up(self, "nn.RNNCell", input_size, hidden_size, opts)
end

return { LSTMCell = LSTMCell, GRUCell = GRUCell, RNNCell = RNNCell }
