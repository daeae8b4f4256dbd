-- gpipe/data/image/pixels.lua - a dataset of images that lie as bytes in memory; they become f32
-- [C, H, W] when a batch is made.

local core = require "gpipe.core"
local dataset = require "gpipe.data.dataset"
local errors = require "gpipe.errors"

local pixels = {}

local Source = { gap = 0, workers = 2 }
Source.__index = Source

function Source:gather(positions, seed, stream)
  return core.items_batch(self.items, positions, seed, stream)
end

function Source:describe() return self.name end

-- ---- options -----------------------------------------------------------------------------------

-- The rules of the options that all images share.
pixels.SPEC = {
  path = { type = "string", required = true },
  normalise = { type = { "boolean", "table" }, default = true },
}

local function check_numbers(who, name, list, above)
  if type(list) ~= "table" or #list < 1 or #list > 4 then
    errors.raise("%s: normalise.%s is %s, expected a list of 1 to 4 numbers, one a channel", who,
      name, errors.show(list))
  end
  for i, v in ipairs(list) do
    if type(v) ~= "number" or v ~= v or (above and v <= above) then
      errors.raise("%s: normalise.%s[%d] is %s, expected a number%s", who, name, i, errors.show(v),
        above and " > 0" or "")
    end
  end
  return list
end

--- Mean and deviation for the option `normalise`: true takes those that are usual for the data,
--- false leaves values in [0, 1].
---@param who string
---@param given boolean|table
---@param usual {mean: number[], deviation: number[]}
---@return number[] mean
---@return number[] deviation
function pixels.normalisation(who, given, usual)
  if given == true then return usual.mean, usual.deviation end
  if given == false then return { 0 }, { 1 } end
  for key in pairs(given) do
    if key ~= "mean" and key ~= "deviation" then
      errors.raise("%s: unknown option 'normalise.%s'%s", who, errors.name(tostring(key)),
        errors.hint(tostring(key), { "mean", "deviation" }, "options"))
    end
  end
  return check_numbers(who, "mean", rawget(given, "mean")),
    check_numbers(who, "deviation", rawget(given, "deviation"), 0)
end

-- ---- opening -----------------------------------------------------------------------------------

---@class gpipe.PixelsSpec
---@field name string for tostring
---@field x gpipe.Tensor u8 [N, C, H, W]
---@field y gpipe.Tensor i64 [N]
---@field rule table of core.items_pixels
---@field classes? string[]

---@param spec gpipe.PixelsSpec
---@return gpipe.Dataset
function pixels.new(spec)
  return pixels.wrap {
    items = core.items_pixels(spec.x, spec.y, spec.rule), name = spec.name,
    classes = spec.classes, count = spec.x:size(1),
  }
end

--- Make a dataset of items that are made in C.
---@param spec {items: any, name: string, classes: string[]?, count: integer}
---@return gpipe.Dataset
function pixels.wrap(spec) return dataset(setmetatable(spec, Source)) end

--- Find the first of these files that exists.
---@param folders string[]
---@param names string[]
---@return string?
function pixels.find(folders, names)
  for _, folder in ipairs(folders) do
    for _, name in ipairs(names) do
      local path = folder .. "/" .. name
      local list = core.file_list(path) -- io.open would wait for the writer of a pipe
      if list and list[1] == path then return path end
    end
  end
end

return pixels
