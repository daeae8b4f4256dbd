---@meta gpipe
-- lua/gpipe/meta.lua - documents the functions of gp that are written in C, for readers, editors
-- and tests.
-- luacheck: ignore 212

local gp = {}

--- The elements of a where the condition is true, else those of b; all three broadcast.
--- ```lua
--- local y = gp.where(gp.tensor {true, false}, gp.ones {2}, gp.zeros {2})
--- assert(y[1] == 1 and y[2] == 0)
--- ```
---@param condition gpipe.Tensor bool
---@param a gpipe.Tensor|number
---@param b gpipe.Tensor|number
---@return gpipe.Tensor
function gp.where(condition, a, b) end

--- Join tensors along a dimension, the first by default; their other sizes must be equal.
--- ```lua
--- assert(gp.concat({gp.ones {2, 3}, gp.zeros {1, 3}}).shape[1] == 3)
--- ```
---@param tensors gpipe.Tensor[]
---@param dim? integer
---@return gpipe.Tensor
function gp.concat(tensors, dim) end

--- gp.concat under PyTorch's name.
--- ```lua
--- assert(gp.cat({gp.ones {2}, gp.zeros {1}}, 1):numel() == 3)
--- ```
---@param tensors gpipe.Tensor[]
---@param dim? integer
---@return gpipe.Tensor
function gp.cat(tensors, dim) end

--- Whether two tensors have the same shape, dtype and every bit.
--- ```lua
--- assert(gp.equal(gp.ones {2}, gp.ones {2}))
--- ```
---@param a gpipe.Tensor
---@param b gpipe.Tensor
---@return boolean
function gp.equal(a, b) end

return gp
