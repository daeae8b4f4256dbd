-- gpipe/data/dataset.lua - a dataset of all items of a source, with the methods of data sets.

local class = require "gpipe.data.set.class"
require "gpipe.data.set.parts"
require "gpipe.data.set.sample"
require "gpipe.data.set.functions"
require "gpipe.data.set.walk"

---@param source gpipe.DataSource
---@return gpipe.Dataset
return function(source) return class.new(source, 0, source.count) end
