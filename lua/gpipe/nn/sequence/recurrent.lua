-- lua/gpipe/nn/sequence/recurrent.lua - `nn.LSTM`, `nn.GRU`, `nn.RNN`: layers that walk along time.
--
-- Parameters have PyTorch's names, layouts and order, so that its files fit. The inputs of all
-- steps go through one product; a step multiplies the hidden state only. Source: Hochreiter and
-- Schmidhuber 1997; Cho et al. 2014; PyTorch nn.LSTM, nn.GRU, nn.RNN.

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
local scope = require "gpipe.nn.scope"

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
---@field bidirectional? boolean false; true: a second walk from the end, its outputs behind
---@field dropout? number 0; of the outputs of every layer but the last, in training mode only
---@field bias? boolean true
---@field states? boolean false; true: also return the last states
---@field dtype? "f32"|"f64"

-- ---- parameters ------------------------------------------------------------------------------

-- "l0", "l0_reverse", "l1", ...: the walks of all layers, as PyTorch names and orders them.
local function walk_names(self)
  local names = {}
  for layer = 0, self.layers - 1 do
    names[#names + 1] = "l" .. layer
    if self.directions == 2 then names[#names + 1] = ("l%d_reverse"):format(layer) end
  end
  return names
end

local function declare_walk(self, name, width, opts)
  local bound = 1 / math.sqrt(self.hidden_size)
  local init, rows = initial.uniform(-bound, bound), self.gates * self.hidden_size
  local function make(role, shape)
    self[role .. "_" .. name] = parameter.Parameter(shape, init, { dtype = opts.dtype })
  end
  make("weight_ih", { rows, width })
  make("weight_hh", { rows, self.hidden_size })
  if not opts.bias then return end
  make("bias_ih", { rows })
  make("bias_hh", { rows })
end

local function set_up(self, who, input_size, hidden_size, opts)
  self.input_size = check.size(who, "input_size", input_size)
  self.hidden_size = check.size(who, "hidden_size", hidden_size)
  self.layers, self.directions = opts.layers, opts.bidirectional and 2 or 1
  self.dropout, self.states, self.dtype = opts.dropout, opts.states, opts.dtype
  for i, name in ipairs(walk_names(self)) do
    local first = i <= self.directions
    declare_walk(self, name, first and self.input_size or self.hidden_size * self.directions, opts)
  end
end

-- ---- walking ---------------------------------------------------------------------------------

-- The parts of x along time: [B, T, F] -> T times [B, F]. Halving again and again, because the
-- gradient of a part is as large as what it was cut from: so T parts cost T log T, not T squared.
local function steps_of(x, parts)
  parts = parts or {}
  local shape = x.shape
  local length = shape[2]
  if length == 1 then
    parts[#parts + 1] = x:reshape { shape[1], shape[3] }
  else
    local half = length // 2
    steps_of(x:narrow(2, 1, half), parts)
    steps_of(x:narrow(2, half + 1, length - half), parts)
  end
  return parts
end

-- One walk along time. x [B, T, in], h (and c) [B, hidden] -> [B, T, hidden], the last h (and c).
local function walk(self, name, x, backward, h, c)
  local bias_hh, weight_hh = self["bias_hh_" .. name], self["weight_hh_" .. name]
  local projected = core.linear(x, self["weight_ih_" .. name], self["bias_ih_" .. name])
  local steps, outputs = steps_of(projected), {}
  local rows, length = x.shape[1], #steps
  for i = 1, length do
    local t = backward and length + 1 - i or i
    h, c = self:step(steps[t], core.linear(h, weight_hh, bias_hh), h, c)
    outputs[t] = h:reshape { rows, 1, self.hidden_size }
  end
  return core.concat(outputs, 2), h, c
end

-- The state of every walk at its beginning: given [B, walks, hidden], or zeros.
local function states_at_start(self, x, given)
  local rows, list = x.shape[1], {}
  local zeros = not given and create.zeros({ rows, self.hidden_size }, { dtype = self.dtype })
  for i = 1, self.layers * self.directions do
    list[i] = zeros or given:select(2, i)
  end
  return list
end

local function joined_states(self, list)
  local rows = {}
  for i, state in ipairs(list) do
    rows[i] = state:reshape { state.shape[1], 1, self.hidden_size }
  end
  return core.concat(rows, 2)
end

local function check_state(self, name, state, rows)
  if state == nil then return end
  local have = check.shape_text(input.tensor(self, state, name).shape)
  local want = check.shape_text { rows, self.layers * self.directions, self.hidden_size }
  if have ~= want then
    errors.raise_as("shape", "%s: %s is %s, expected %s", scope.label(self), name, have, want)
  end
end

local function check_inputs(self, x, h, c)
  local shape = input.tensor(self, x).shape
  if #shape ~= 3 or shape[3] ~= self.input_size or shape[2] == 0 then
    errors.raise_as("shape", "%s: input is %s, expected ?x?x%d (batch, time, features)",
      scope.label(self), check.shape_text(shape), self.input_size)
  end
  check_state(self, "the first h", h, shape[1])
  check_state(self, "the first c", c, shape[1])
end

-- All walks of all layers -> outputs [B, T, directions * hidden], lists of the last h and c.
local function run(self, x, first_h, first_c)
  local last_h, last_c, number = {}, {}, 0
  local names = walk_names(self)
  for layer = 1, self.layers do
    if layer > 1 and self.dropout > 0 and self:is_training() then
      x = core.dropout(x, self.dropout)
    end
    local outputs = {}
    for direction = 1, self.directions do
      number = number + 1
      outputs[direction], last_h[number], last_c[number] = walk(self, names[number], x,
        direction == 2, first_h[number], first_c and first_c[number])
    end
    x = self.directions == 1 and outputs[1] or core.concat(outputs, 3)
  end
  return x, last_h, last_c
end

local function describe(self)
  local text = ("%d -> %d"):format(self.input_size, self.hidden_size)
  if self.layers > 1 then text = ("%s, %d layers"):format(text, self.layers) end
  if self.directions == 2 then text = text .. ", bidirectional" end
  return self.dropout > 0 and ("%s, dropout %g"):format(text, self.dropout) or text
end

-- forward of classes whose state is h alone.
local function forward(self, x, h)
  check_inputs(self, x, h)
  local y, last = run(self, x, states_at_start(self, x, h))
  if not self.states then return y end
  return y, joined_states(self, last)
end

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
--- [B, layers directions, hidden]. Called with (x, h, c) it starts from these, else from zeros.
--- Parameters are named weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, those of the second
--- layer .._l1, of the walk from the end .._l0_reverse; they start uniform in +-1 / sqrt(hidden).
--- Errors: sizes that are no positive integers; when called, other shapes, an h without c.
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
  set_up(self, "nn.LSTM", input_size, hidden_size, options.check("nn.LSTM", opts, OPTIONS))
end

-- from_x, from_h [B, 4 hidden] -> the next h and c.
function LSTM:step(from_x, from_h, _, c)
  local sum, n = from_x + from_h, self.hidden_size
  local both = sum:narrow(2, 1, 2 * n):sigmoid()
  local cell, out = sum:narrow(2, 2 * n + 1, n):tanh(), sum:narrow(2, 3 * n + 1, n):sigmoid()
  c = both:narrow(2, n + 1, n) * c + both:narrow(2, 1, n) * cell
  return out * c:tanh(), c
end

function LSTM:forward(x, h, c)
  check_inputs(self, x, h, c)
  if (h == nil) ~= (c == nil) then
    errors.raise("%s: only %s is given, expected both states or none", scope.label(self),
      h and "the first h" or "the first c")
  end
  local y, last_h, last_c = run(self, x, states_at_start(self, x, h), states_at_start(self, x, c))
  if not self.states then return y end
  return y, joined_states(self, last_h), joined_states(self, last_c)
end

LSTM.describe = describe

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
--- Shapes: [B, T, in] -> [B, T, directions hidden]; with `states` also the last h, [B, layers
--- directions, hidden]. Called with (x, h) it starts from h, else from zeros. Names and initial
--- values of the parameters are those of nn.LSTM.
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
  set_up(self, "nn.GRU", input_size, hidden_size, options.check("nn.GRU", opts, OPTIONS))
end

-- from_x, from_h [B, 3 hidden] -> the next h.
function GRU:step(from_x, from_h, h)
  local n = self.hidden_size
  local both = (from_x:narrow(2, 1, 2 * n) + from_h:narrow(2, 1, 2 * n)):sigmoid()
  local reset, update = both:narrow(2, 1, n), both:narrow(2, n + 1, n)
  local new = (from_x:narrow(2, 2 * n + 1, n) + reset * from_h:narrow(2, 2 * n + 1, n)):tanh()
  return new + update * (h - new)
end

GRU.forward, GRU.describe = forward, describe

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
  set_up(self, "nn.RNN", input_size, hidden_size, opts)
end

function RNN:step(from_x, from_h)
  local sum = from_x + from_h
  return self.nonlinearity == "relu" and sum:relu() or sum:tanh()
end

RNN.forward, RNN.describe = forward, describe

recurrent.LSTM, recurrent.GRU, recurrent.RNN = LSTM, GRU, RNN
return recurrent
