-- lua/gpipe/pipeline/median.lua - the median of measured times.

--- Return the median of a list of numbers that has one at least; the list is sorted in place.
---@param list number[]
---@return number
return function(list)
  table.sort(list)
  local middle = #list // 2
  return #list % 2 == 1 and list[middle + 1] or (list[middle] + list[middle + 1]) / 2
end
