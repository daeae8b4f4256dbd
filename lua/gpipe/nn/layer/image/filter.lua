-- lua/gpipe/nn/layer/image/filter.lua - what all convolutions share: options, parameters, padding,
-- and how they are printed.
--
-- Weights have PyTorch's layouts, so that its files fit.

local check = require "gpipe.nn.check"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"
local window = require "gpipe.nn.layer.image.window"

local filter = {}

filter.MODES = { "zeros", "reflect", "replicate", "circular" }

filter.TRANSPOSED = {
  stride = { type = { "number", "table" }, default = 1 },
  padding = { type = { "number", "table", "string" }, default = 0 },
  dilation = { type = { "number", "table" }, default = 1 },
  groups = { type = "number", default = 1 },
  bias = { type = "boolean", default = true },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
  output_padding = { type = { "number", "table" }, default = 0 },
}

filter.OPTIONS = { padding_mode = { choices = filter.MODES, default = "zeros" } }
for name, option in pairs(filter.TRANSPOSED) do
  if name ~= "output_padding" then filter.OPTIONS[name] = option end
end

---@class nn.ConvOptions
---@field stride? integer|integer[] 1
---@field padding? integer|integer[]|"same"|"valid" 0
---@field dilation? integer|integer[] 1
---@field groups? integer 1
---@field bias? boolean true
---@field padding_mode? "zeros"|"reflect"|"replicate"|"circular" what the padding shows; "zeros"
---@field dtype? "f32"|"f64"

---@class nn.ConvTransposeOptions: nn.ConvOptions
---@field output_padding? integer|integer[] 0

-- ---- what all of them have -------------------------------------------------------------------

local function read_padding(self, who, value)
  if value == "valid" then value = 0 end
  if type(value) ~= "string" then return window.padding(who, value, #self.kernel) end
  if value ~= "same" then check.fail(who, "padding", value, 'numbers, "same" or "valid"') end
  return window.same(who, self.kernel, self.stride, self.dilation)
end

local function read(self, who, kernel, opts)
  local axes = self.axes
  self.kernel = window.numbers(who, "kernel", kernel, axes, 1)
  self.stride = window.numbers(who, "stride", opts.stride, axes, 1)
  self.dilation = window.numbers(who, "dilation", opts.dilation, axes, 1)
  self.padding = read_padding(self, who, opts.padding)
  if opts.padding_mode and opts.padding_mode ~= "zeros" then
    self.padding_mode = opts.padding_mode
  end
  self.groups = check.size(who, "groups", opts.groups)
end

local function check_groups(who, name, channels, groups)
  if channels % groups ~= 0 then
    check.fail(who, name, channels, ("a multiple of the %d groups"):format(groups))
  end
end

-- Weight and bias start uniform in +-1 / sqrt(of what one output is made of), as kaiming_uniform
-- with a = sqrt(5) does.
function filter.declare(self, opts, first, second, outputs)
  local shape, taps = { first, second }, 1
  for axis, size in ipairs(self.kernel) do shape[2 + axis], taps = size, taps * size end
  local bound = 1 / math.sqrt(second * taps)
  local init = initial.uniform(-bound, bound)
  self.weight = parameter.Parameter(shape, init, { dtype = opts.dtype })
  if opts.bias then self.bias = parameter.Parameter({ outputs }, init, { dtype = opts.dtype }) end
end

function filter.set_up(self, who, in_channels, out_channels, kernel, opts)
  self.in_channels = check.size(who, "in_channels", in_channels)
  self.out_channels = check.size(who, "out_channels", out_channels)
  read(self, who, kernel, opts)
  check_groups(who, "in_channels", self.in_channels, self.groups)
  check_groups(who, "out_channels", self.out_channels, self.groups)
end

-- {1, 1, 0, 0} as "1x0", the size of each axis, where both sides have the same; else all numbers.
local function padding_text(padding)
  local each = {}
  for axis = 1, #padding // 2 do
    if padding[2 * axis - 1] ~= padding[2 * axis] then
      return "{" .. table.concat(padding, ", ") .. "}"
    end
    each[axis] = padding[2 * axis]
  end
  return window.text(each)
end

local function is_all(list, value)
  for _, number in ipairs(list) do
    if number ~= value then return false end
  end
  return true
end

-- What is not as it would be without options.
function filter.describe(self)
  local parts = { ("%d -> %d"):format(self.in_channels, self.out_channels),
    "kernel " .. window.text(self.kernel) }
  local function add(name, list, usual, text)
    if list and not is_all(list, usual) then
      parts[#parts + 1] = ("%s %s"):format(name, (text or window.text)(list))
    end
  end
  add("stride", self.stride, 1)
  add("padding", self.padding, 0, padding_text)
  if self.padding_mode then parts[#parts + 1] = "padding_mode " .. self.padding_mode end
  add("output padding", self.output_padding, 0)
  add("dilation", self.dilation, 1)
  if self.groups > 1 then parts[#parts + 1] = ("%d groups"):format(self.groups) end
  if not self.bias then parts[#parts + 1] = "no bias" end
  return table.concat(parts, ", ")
end

--- Errors: another number of dimensions, or other channels.
function filter.check_input(self, x)
  local shape = input.tensor(self, x).shape
  if #shape ~= self.axes + 2 or shape[2] ~= self.in_channels then
    errors.raise_as("shape", "%s: input is %s, expected ?x%d%s", scope.label(self),
      check.shape_text(shape), self.in_channels, ("x?"):rep(self.axes))
  end
  return x
end

--- The input with what the padding shows, and the padding that is still to be done: of zeros, the
--- op does it.
---@return gpipe.Tensor
---@return integer[] padding
function filter.padded(self, x)
  if not self.padding_mode then return x, self.padding end
  local pads, none = {}, {}
  for axis = self.axes, 1, -1 do -- t:pad takes the last dimension first
    pads[#pads + 1], pads[#pads + 2] = self.padding[2 * axis - 1], self.padding[2 * axis]
  end
  for i = 1, #pads do none[i] = 0 end
  return x:pad(pads, self.padding_mode), none
end

return filter
