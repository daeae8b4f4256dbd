-- lua/gpipe/nn/sequence/walks.lua - shared by nn.LSTM, nn.GRU and nn.RNN: parameters, and walks
-- along time, from both ends, through all layers, for rows of one length or several.
--
-- The inputs of all steps go through one product; a step multiplies only the hidden state. A class
-- has `gates` and `step(from_x, from_h, h, c)`.

local core = require "gpipe.core"
local check = require "gpipe.nn.check"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local is_tensor = require "gpipe.tensor.is"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"

local walks = {}

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

function walks.set_up(self, who, input_size, hidden_size, opts)
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

-- Split x along time: [B, T, F] -> T times [B, F]. It is halved again and again, because the
-- gradient of a part is as large as the tensor that it was cut from: so T parts cost T log T, not T
-- squared.
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

-- The states after a step: rows that have ended keep their state and output zeros. So a walk from
-- the end begins at the end of each row.
local function kept(alive, new_h, new_c, h, c)
  if not alive then return new_h, new_c, new_h end
  local next_h = core.where(alive, new_h, h)
  return next_h, c and core.where(alive, new_c, c), new_h:masked_fill(alive:logical_not(), 0)
end

-- One walk along time. x [B, T, in], h (and c) [B, hidden] -> [B, T, hidden], the last h (and c).
-- alive: for each step which rows have not ended, [B, 1]; nil: all.
local function walk(self, name, x, alive, backward, h, c)
  local bias_hh, weight_hh = self["bias_hh_" .. name], self["weight_hh_" .. name]
  local projected = core.linear(x, self["weight_ih_" .. name], self["bias_ih_" .. name])
  local steps, outputs = steps_of(projected), {}
  local rows, length = x.shape[1], #steps
  for i = 1, length do
    local t = backward and length + 1 - i or i
    local new_h, new_c = self:step(steps[t], core.linear(h, weight_hh, bias_hh), h, c)
    local y
    h, c, y = kept(alive and alive[t], new_h, new_c, h, c)
    outputs[t] = y:reshape { rows, 1, self.hidden_size }
  end
  return core.concat(outputs, 2), h, c
end

-- The initial state of every walk: given as [B, walks, hidden], or zeros.
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

local WHOLE = { i64 = true, i32 = true, u8 = true }

local function is_whole(t) return is_tensor(t) and WHOLE[t.dtype] or false end

local function check_lengths(self, lengths, rows, time)
  local have = check.shape_text(input.tensor(self, lengths, "lengths").shape)
  if not is_whole(lengths) or have ~= tostring(rows) then
    errors.raise_as("shape", "%s: lengths are %s %s, expected i64 %d", scope.label(self),
      lengths.dtype, have, rows)
  end
  if core.tracing() then return end -- the values are not known yet
  local wide = lengths:to "f64"
  local least, most = wide:min():item(), wide:max():item()
  if least < 1 or most > time then
    errors.raise("%s: lengths are %d to %d, expected 1 to %d", scope.label(self), least, most, time)
  end
end

-- [t] = whether each row has a step t, [B, 1].
local function alive_of(lengths, time)
  if not lengths then return nil end
  local list, column = {}, lengths:to("i64"):reshape { lengths.shape[1], 1 }
  for t = 1, time do list[t] = column:ge(t) end
  return list
end

local function check_inputs(self, x, h, c, lengths)
  local shape = input.tensor(self, x).shape
  if #shape ~= 3 or shape[3] ~= self.input_size or shape[2] == 0 then
    errors.raise_as("shape", "%s: input is %s, expected ?x?x%d (batch, time, features)",
      scope.label(self), check.shape_text(shape), self.input_size)
  end
  check_state(self, "the first h", h, shape[1])
  check_state(self, "the first c", c, shape[1])
  if lengths then check_lengths(self, lengths, shape[1], shape[2]) end
end

-- Run all walks of all layers; return the outputs [B, T, directions * hidden] and lists of the last
-- h and c.
local function run(self, x, alive, first_h, first_c)
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
        alive, direction == 2, first_h[number], first_c and first_c[number])
    end
    x = self.directions == 1 and outputs[1] or core.concat(outputs, 3)
  end
  return x, last_h, last_c
end

function walks.describe(self)
  local text = ("%d -> %d"):format(self.input_size, self.hidden_size)
  if self.layers > 1 then text = ("%s, %d layers"):format(text, self.layers) end
  if self.directions == 2 then text = text .. ", bidirectional" end
  return self.dropout > 0 and ("%s, dropout %g"):format(text, self.dropout) or text
end

--- The forward of classes whose state is only h: (x, lengths), or (x, h, lengths).
function walks.forward(self, x, h, lengths)
  if lengths == nil and is_whole(h) then h, lengths = nil, h end
  check_inputs(self, x, h, nil, lengths)
  local y, last = run(self, x, alive_of(lengths, x.shape[2]), states_at_start(self, x, h))
  if not self.states then return y end
  return y, joined_states(self, last)
end

--- The forward of classes with a cell state c: (x, lengths), or (x, h, c, lengths).
function walks.forward_cell(self, x, h, c, lengths)
  if c == nil and lengths == nil and is_whole(h) then h, lengths = nil, h end
  check_inputs(self, x, h, c, lengths)
  if (h == nil) ~= (c == nil) then
    errors.raise("%s: only %s is given, expected both states or none", scope.label(self),
      h and "the first h" or "the first c")
  end
  local y, last_h, last_c = run(self, x, alive_of(lengths, x.shape[2]),
    states_at_start(self, x, h), states_at_start(self, x, c))
  if not self.states then return y end
  return y, joined_states(self, last_h), joined_states(self, last_c)
end

return walks
