-- lua/gpipe/data/windows.lua - a dataset of windows of context + 1 consecutive ids, for models that
-- predict the next id.
--
-- Window i begins at id (i - 1) * stride; its targets are its ids shifted by one. The ids lie in a
-- tensor of bytes, often a mapped file, `width` bytes each.

local core = require "gpipe.core"
local counted = require "gpipe.counted"
local dataset = require "gpipe.data.dataset"

local windows = {}

local Source = {}
Source.__index = Source

function Source:gather(positions)
  if self.path then core.file_unchanged(self.path, self.ids:numel()) end
  local starts = {}
  for i, position in ipairs(positions) do starts[i] = (position - 1) * self.stride + 1 end
  return core.gather_windows(self.ids, starts, self.context, self.width)
end

function Source:open_items()
  return core.items_windows(self.ids, self.width, self.context, self.stride, self.count, self.path)
end

function Source:describe() return ("%d %s"):format(self.context, self.unit) end

---@class gpipe.WindowsSpec
---@field ids gpipe.Tensor u8 [size]
---@field width integer bytes of an id
---@field context integer
---@field stride? integer
---@field unit string what an id is: "bytes"
---@field path? string the file that the ids are mapped from
---@field name string for messages
---@field files integer how many there are, for messages

--- Make a dataset of windows; nil, message, code if there is not even one.
---@param spec gpipe.WindowsSpec
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function windows.new(spec)
  local stride = spec.stride or spec.context
  local total = spec.ids:numel() // spec.width
  if total <= spec.context then
    return nil, ("%s: %d %s in %s, expected at least context + 1 = %d"):format(spec.name, total,
      spec.unit, counted(spec.files, "file"), spec.context + 1), "format"
  end
  return dataset(setmetatable({
    ids = spec.ids, width = spec.width, context = spec.context, stride = stride, unit = spec.unit,
    path = spec.path, count = (total - spec.context - 1) // stride + 1,
    -- The number of windows to skip so that two parts share no target.
    gap = (spec.context + stride - 1) // stride - 1,
  }, Source))
end

return windows
