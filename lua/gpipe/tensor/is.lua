-- lua/gpipe/tensor/is.lua - says whether a value is a tensor, real or symbolic.

---@param value any
---@return boolean
return function(value) return getmetatable(value) == "gpipe.Tensor" end
