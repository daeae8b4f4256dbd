-- lua/gpipe/nn/layer/image/window.lua - what layers with windows are told: kernels, strides,
-- paddings, dilations.
--
-- One number for all axes, or a list of one an axis. Volumes have three axes, depth, height and
-- width, images two, lines one; ops know images only, so that a line is an image of height 1.

local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"

local window = {}

local WANTED = {
  "an integer of at least %d", "an integer of at least %d, or {height, width} of such",
  "an integer of at least %d, or {depth, height, width} of such",
}

local SHOWN = 8 -- numbers of a list in an error

--- Raise `who: name is {2, 0}, expected wanted`: a list is shown with what is in it.
---@param who string
---@param name string
---@param value any
---@param wanted string
function window.fail(who, name, value, wanted)
  if type(value) ~= "table" or class.of(value) or class.info(value) then
    check.fail(who, name, value, wanted)
  end
  local parts = {}
  for i = 1, math.min(#value, SHOWN) do
    parts[i] = type(value[i]) == "table" and "a table" or errors.show(value[i])
  end
  if #value > SHOWN then parts[#parts + 1] = "..." end
  errors.raise("%s: %s is {%s}, expected %s", who, name, table.concat(parts, ", "), wanted)
end

local function fits(value, least)
  local number = math.type(value) and math.tointeger(value)
  return number and number >= least and number or nil
end

--- One number an axis.
---@param who string the public function
---@param name string the option
---@param value any a number or a list
---@param axes integer 1 to 3
---@param least integer
---@return integer[]
function window.numbers(who, name, value, axes, least)
  local list = type(value) == "table" and value or { value, value, value }
  local numbers = {}
  for axis = 1, axes do numbers[axis] = fits(list[axis], least) end
  if #numbers < axes or (list == value and #list ~= axes) then
    window.fail(who, name, value, WANTED[axes]:format(least))
  end
  return numbers
end

--- What is put before and behind each axis: a number, one an axis, or all of them ({top, bottom,
--- left, right}; {left, right} of a line is {{left, right}}).
---@return integer[] before and behind, axis after axis
function window.padding(who, value, axes)
  if type(value) == "table" and #value == 4 and axes == 2 then
    local all = {}
    for i = 1, 4 do
      all[i] = fits(value[i], 0) or window.fail(who, "padding", value, "integers of at least 0")
    end
    return all
  end
  local each, all = window.numbers(who, "padding", value, axes, 0), {}
  for axis, size in ipairs(each) do all[2 * axis - 1], all[2 * axis] = size, size end
  return all
end

--- The padding after which a window of stride 1 has as many places as there are elements.
function window.same(who, kernel, stride, dilation)
  local all = {}
  for axis, size in ipairs(kernel) do
    if stride[axis] ~= 1 then
      errors.raise('%s: padding is "same" and stride %d, expected stride 1', who, stride[axis])
    end
    local more = dilation[axis] * (size - 1)
    all[2 * axis - 1], all[2 * axis] = more // 2, more - more // 2
  end
  return all
end

--- Numbers of a line as those of an image of height 1.
---@param numbers integer[]
---@param height integer|integer[] that of the height
function window.as_image(numbers, height)
  local list = type(height) == "table" and { table.unpack(height) } or { height }
  return table.move(numbers, 1, #numbers, #list + 1, list)
end

--- "3x3", for descriptions.
function window.text(numbers) return table.concat(numbers, "x") end

return window
