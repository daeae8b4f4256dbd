-- lua/gpipe/nn/sequence/recurrent.lua - `nn.LSTM`, `nn.GRU`, `nn.RNN`: layers that run along time.
--
-- Parameters have PyTorch's names, layouts and order, so that its files can be loaded. Source:
-- Hochreiter and Schmidhuber 1997; Cho et al. 2014; PyTorch nn.LSTM, nn.GRU, nn.RNN.

local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"
local options = require "gpipe.options"
local walks = require "gpipe.nn.sequence.walks"

local recurrent = {}

local OPTIONS = {
  layers = { type = "integer", default = 1, min = 1 },
  bidirectional = { type = "boolean", default = false },
  dropout = { type = "number", default = 0, min = 0, max = 1 },
  bias = { type = "boolean", default = true },
  states = { type = "boolean", default = false },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

local RNN_OPTIONS = { nonlinearity = { choices = { "tanh", "relu" }, default = "tanh" } }
for name, option in pairs(OPTIONS) do RNN_OPTIONS[name] = option end

---@class nn.RecurrentOptions
---@field layers? integer 1; each reads the outputs of the one before
---@field bidirectional? boolean false; true: a second pass from the end; its outputs come after the
--- first's
---@field dropout? number 0; on the outputs of every layer but the last, in training mode only
---@field bias? boolean true
---@field states? boolean false; true: also return the last states
---@field dtype? "f32"|"f64"

-- ---- LSTM ------------------------------------------------------------------------------------

---@class nn.LSTM: nn.Module
---@field weight_ih_l0 gpipe.Tensor [4 hidden, in]: input gate, forget gate, cell, output gate
---@field weight_hh_l0 gpipe.Tensor [4 hidden, hidden]
---@field bias_ih_l0? gpipe.Tensor [4 hidden]
---@field bias_hh_l0? gpipe.Tensor [4 hidden]
local LSTM = class.new("LSTM", Module, true)
LSTM.gates = 4

--- Long short-term memory along the second dimension.
---
--- Shapes: [B, T, in] -> [B, T, directions hidden]; with `states` also the last h and c, both
--- [B, layers directions, hidden]. Called with (x, h, c) it starts from this state, else from
--- zeros. Called with (x, lengths), or (x, h, c, lengths), with lengths i64 [B] from 1 to T, each
--- row ends at its length: later outputs are zeros, the last states are those at the row's end, and
--- the pass from the end begins there, as with PyTorch's packed sequences. In a pipeline:
--- `pipe:step({x, lengths}, y)`. Parameters are named weight_ih_l0, weight_hh_l0, bias_ih_l0,
--- bias_hh_l0; those of the second layer end in _l1, those of the pass from the end in _l0_reverse.
--- They start uniform in +-1 / sqrt(hidden).
--- Errors: sizes that are not positive integers; when called, other shapes, an h without c, and
--- lengths outside of 1 .. T if they are known (not while a pipeline records the layer).
--- Source: PyTorch nn.LSTM with batch_first.
--- ```lua
--- local lstm = nn.LSTM(3, 5, {layers = 2, states = true})
--- local y, h, c = lstm(gp.randn {4, 7, 3})
--- assert(y.shape[3] == 5 and h.shape[2] == 2 and c.shape[3] == 5)
--- ```
---@param input_size integer
---@param hidden_size integer
---@param opts? nn.RecurrentOptions
function LSTM:init(input_size, hidden_size, opts)
  walks.set_up(self, "nn.LSTM", input_size, hidden_size, options.check("nn.LSTM", opts, OPTIONS))
end

-- from_x, from_h [B, 4 hidden] -> the next h and c.
function LSTM:step(from_x, from_h, _, c)
  local sum, n = from_x + from_h, self.hidden_size
  local both = sum:narrow(2, 1, 2 * n):sigmoid()
  local cell, out = sum:narrow(2, 2 * n + 1, n):tanh(), sum:narrow(2, 3 * n + 1, n):sigmoid()
  c = both:narrow(2, n + 1, n) * c + both:narrow(2, 1, n) * cell
  return out * c:tanh(), c
end

LSTM.forward, LSTM.describe = walks.forward_cell, walks.describe

-- ---- GRU -------------------------------------------------------------------------------------

---@class nn.GRU: nn.Module
---@field weight_ih_l0 gpipe.Tensor [3 hidden, in]: reset gate, update gate, new state
---@field weight_hh_l0 gpipe.Tensor [3 hidden, hidden]
---@field bias_ih_l0? gpipe.Tensor [3 hidden]
---@field bias_hh_l0? gpipe.Tensor [3 hidden]
local GRU = class.new("GRU", Module, true)
GRU.gates = 3

--- Gated recurrent units along the second dimension.
---
--- Shapes: [B, T, in] -> [B, T, directions hidden]; with `states` also the last h,
--- [B, layers directions, hidden]. Called with (x, h) it starts from h, else from zeros; called
--- with (x, lengths), or (x, h, lengths), rows end as in nn.LSTM. Names and initial values of the
--- parameters are those of nn.LSTM.
--- Errors: as of nn.LSTM.
--- Source: PyTorch nn.GRU with batch_first.
--- ```lua
--- local y = nn.GRU(3, 5, {bidirectional = true})(gp.randn {4, 7, 3})
--- assert(y.shape[3] == 10)
--- ```
---@param input_size integer
---@param hidden_size integer
---@param opts? nn.RecurrentOptions
function GRU:init(input_size, hidden_size, opts)
  walks.set_up(self, "nn.GRU", input_size, hidden_size, options.check("nn.GRU", opts, OPTIONS))
end

-- from_x, from_h [B, 3 hidden] -> the next h.
function GRU:step(from_x, from_h, h)
  local n = self.hidden_size
  local both = (from_x:narrow(2, 1, 2 * n) + from_h:narrow(2, 1, 2 * n)):sigmoid()
  local reset, update = both:narrow(2, 1, n), both:narrow(2, n + 1, n)
  local new = (from_x:narrow(2, 2 * n + 1, n) + reset * from_h:narrow(2, 2 * n + 1, n)):tanh()
  return new + update * (h - new)
end

GRU.forward, GRU.describe = walks.forward, walks.describe

-- ---- RNN -------------------------------------------------------------------------------------

---@class nn.RNN: nn.Module
---@field weight_ih_l0 gpipe.Tensor [hidden, in]
---@field weight_hh_l0 gpipe.Tensor [hidden, hidden]
---@field bias_ih_l0? gpipe.Tensor [hidden]
---@field bias_hh_l0? gpipe.Tensor [hidden]
local RNN = class.new("RNN", Module, true)
RNN.gates = 1

---@class nn.RNNOptions: nn.RecurrentOptions
---@field nonlinearity? "tanh"|"relu" "tanh"

--- The simple recurrent network: h' = tanh(W x + b + V h + d), or relu.
---
--- Shapes, names and initial values: those of nn.GRU.
--- Errors: as of nn.LSTM; another nonlinearity.
--- Source: PyTorch nn.RNN with batch_first.
--- ```lua
--- local y, h = nn.RNN(3, 5, {nonlinearity = "relu", states = true})(gp.randn {4, 7, 3})
--- assert(gp.equal(h:reshape {4, 5}, y:select(2, 7)))
--- ```
---@param input_size integer
---@param hidden_size integer
---@param opts? nn.RNNOptions
function RNN:init(input_size, hidden_size, opts)
  opts = options.check("nn.RNN", opts, RNN_OPTIONS)
  self.nonlinearity = opts.nonlinearity
  walks.set_up(self, "nn.RNN", input_size, hidden_size, opts)
end

function RNN:step(from_x, from_h)
  local sum = from_x + from_h
  return self.nonlinearity == "relu" and sum:relu() or sum:tanh()
end

RNN.forward, RNN.describe = walks.forward, walks.describe

recurrent.LSTM, recurrent.GRU, recurrent.RNN = LSTM, GRU, RNN
return recurrent
