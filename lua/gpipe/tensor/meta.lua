---@meta gpipe.Tensor
-- lua/gpipe/tensor/meta.lua - documents every field and method of a tensor, for readers, editors
-- and tests. The methods themselves are in bindings/. Methods that are single ops (arithmetic,
-- functions, comparisons) are in runtime/ops/ops.def, from which stubs.lua annotates them.
--
-- Positions and dimensions count from 1, negative ones from the end. Methods that do not read
-- elements also work on values of a trace. A spec runs the examples and checks that no method is
-- missing.
-- luacheck: ignore 212

---@class gpipe.Tensor
---@field shape integer[] a fresh table; {} for a scalar
---@field dtype gpipe.dtype
---@field device string "cpu"
---@field requires_grad boolean whether gradients of results computed from it reach it; settable
---@field grad? gpipe.Tensor the gradient so far of a leaf or parameter; assign nil to forget it
---@operator add(gpipe.Tensor|number): gpipe.Tensor
---@operator sub(gpipe.Tensor|number): gpipe.Tensor
---@operator mul(gpipe.Tensor|number): gpipe.Tensor
---@operator div(gpipe.Tensor|number): gpipe.Tensor
---@operator pow(gpipe.Tensor|number): gpipe.Tensor
---@operator mod(gpipe.Tensor|number): gpipe.Tensor
---@operator idiv(gpipe.Tensor|number): gpipe.Tensor
---@operator unm: gpipe.Tensor
---@operator len: integer
local Tensor = {}
-- ---- facts -----------------------------------------------------------------------------------
--- Dimensions. `gp.ones({2, 3}):dim() == 2`
---@return integer
function Tensor:dim() end

--- Number of elements. `gp.ones({2, 3}):numel() == 6`
---@return integer
function Tensor:numel() end

--- Size of one dimension. `gp.ones({2, 3}):size(-1) == 3`
---@param d integer
---@return integer
function Tensor:size(d) end

--- Whether the elements lie row-major without gaps. `gp.ones({2, 3}):is_contiguous()`
---@return boolean
function Tensor:is_contiguous() end

-- ---- elements by position --------------------------------------------------------------------
--- `t[i]` is element or row i (negative: from the end). `t[{2, {1, 3}, {}}]` has one entry for each
--- dimension: a position (the dimension disappears), a range {first, last} with both ends, or
--- {first, last, step}, or {} for all. These are views; a single element is a number. `t[mask]`
--- (bool) and `t[positions]` (i64) are copies.
--- `gp.tensor({{1, 2, 3}, {4, 5, 6}})[{2, {2, 3}}][1] == 5`
--- Errors: a position outside of the dimension, more entries than dimensions.
---@param index integer|table|gpipe.Tensor
---@return gpipe.Tensor|number
function Tensor:__index(index) end

--- Write to the same places: `t[i] = v`, `t[{2, {1, 3}}] = v`, `t[mask] = v`. v is a number, a
--- table or a tensor that broadcasts; for a mask it may have as many values as the mask selects.
--- `(function() local t = gp.zeros {2}; t[2] = 5; return t[2] == 5 end)()`
---@param index integer|table|gpipe.Tensor
---@param value number|table|gpipe.Tensor
function Tensor:__newindex(index, value) end

-- ---- reading and writing elements ------------------------------------------------------------
--- Nested tables of the elements; a number for a scalar. `gp.ones({1, 2}):totable()[1][2] == 1`
--- Integer dtypes return integers, bool returns booleans. Errors: while tracing.
---@return table|number|boolean
function Tensor:totable() end

--- The elements in row-major order as a string, as they lie in memory (little-endian); gp.frombytes
--- takes it back. `#gp.ones({2, 3}):bytes() == 24`
---@return string
function Tensor:bytes() end

--- The one element. `gp.ones({1}):item() == 1` Errors: more or fewer than one; while tracing.
---@return number|integer|boolean
function Tensor:item() end

--- Write a tensor, a number or nested tables in place, converted and broadcast. In forward only
--- Buffers can be written. `gp.zeros({2}):copy_({1, 2})[2] == 2`
---@param other gpipe.Tensor|number|table
---@return gpipe.Tensor self
function Tensor:copy_(other) end

--- Write one number, or a scalar tensor, into every element. `gp.ones({2}):fill_(3)[2] == 3`
---@param value number|boolean|gpipe.Tensor
---@return gpipe.Tensor self
function Tensor:fill_(value) end

--- Write 0 into every element. `gp.ones({2}):zero_()[2] == 0`
---@return gpipe.Tensor self
function Tensor:zero_() end

--- The elements, with value where the mask is true; mask and value broadcast.
--- `gp.ones({2}):masked_fill(gp.tensor {true, false}, 5)[1] == 5`
---@param mask gpipe.Tensor bool
---@param value number|gpipe.Tensor
---@return gpipe.Tensor
function Tensor:masked_fill(mask, value) end

--- The same in place. `gp.ones({2}):masked_fill_(gp.tensor {true, false}, 5)[2] == 1`
---@param mask gpipe.Tensor bool
---@param value number|gpipe.Tensor
---@return gpipe.Tensor self
function Tensor:masked_fill_(mask, value) end

--- Whether both have the same shape, the same dtype and the same bits.
--- `gp.ones({2}):equal(gp.ones {2})`
---@param other gpipe.Tensor
---@return boolean
function Tensor:equal(other) end

--- Free the memory now instead of at collection; the tensor cannot be used afterwards.
--- `gp.ones({2}):free() == nil`
function Tensor:free() end

-- ---- shape -----------------------------------------------------------------------------------
--- The elements in row-major order in another shape; one size may be -1. A view where possible.
--- `gp.arange(1, 6):reshape(2, -1).shape[2] == 3`
---@param shape integer[]|integer also as arguments
---@param ... integer
---@return gpipe.Tensor
function Tensor:reshape(shape, ...) end

--- Like reshape, but never a copy. `gp.arange(1, 6):view({3, 2})[3][2] == 6`
--- Errors: a tensor with gaps.
---@param shape integer[]|integer
---@param ... integer
---@return gpipe.Tensor
function Tensor:view(shape, ...) end

--- Dimension d of the view is dimension order[d].
--- `gp.ones({2, 3, 4}):permute({3, 1, 2}).shape[1] == 4`
---@param order integer[]|integer also as arguments
---@param ... integer
---@return gpipe.Tensor
function Tensor:permute(order, ...) end

--- A view with two dimensions exchanged, by default the last two.
--- `gp.ones({2, 3}):transpose().shape[1] == 3`
---@param a? integer
---@param b? integer
---@return gpipe.Tensor
function Tensor:transpose(a, b) end

--- A view of positions first .. first + length - 1 of a dimension.
--- `gp.arange(1, 6):narrow(1, 2, 3)[1] == 2`
---@param d integer
---@param first integer
---@param length integer
---@return gpipe.Tensor
function Tensor:narrow(d, first, length) end

--- A view of one position of a dimension, which disappears.
--- `gp.ones({2, 3}):select(2, -1).shape[1] == 2`
---@param d integer
---@param i integer
---@return gpipe.Tensor
function Tensor:select(d, i) end

--- A view repeated along dimensions of size 1. `gp.ones({1, 2}):expand({3, 2}).shape[1] == 3`
---@param shape integer[]|integer
---@param ... integer
---@return gpipe.Tensor
function Tensor:expand(shape, ...) end

--- The tensor itself if it is contiguous, else a copy.
--- `gp.ones({2, 3}):transpose():contiguous():is_contiguous()`
---@return gpipe.Tensor
function Tensor:contiguous() end

--- A copy with its own memory. `gp.ones({2}):clone()[1] == 1`
---@return gpipe.Tensor
function Tensor:clone() end

--- Convert to a dtype or device (floats are truncated to integers); returns the tensor itself if
--- there is nothing to do. `gp.tensor({1.9}):to("i64")[1] == 1`
---@param what gpipe.dtype|"cpu"
---@return gpipe.Tensor
function Tensor:to(what) end

-- ---- along dimensions ------------------------------------------------------------------------
--- The product of matrices [.., M, K] and [.., K, N]; leading dimensions broadcast; vectors are
--- accepted. `gp.ones({2, 3}):matmul(gp.ones {3, 4}).shape[2] == 4`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:matmul(other) end

--- Sum over a dimension, a list of them, or all. Integers and booleans sum to i64.
--- `gp.ones({2, 3}):sum():item() == 6`
---@param dim? integer|integer[]
---@param keep? boolean keep the dimensions with size 1
---@return gpipe.Tensor
function Tensor:sum(dim, keep) end

--- Mean over a dimension, a list of them, or all. `gp.ones({2, 3}):mean(1).shape[1] == 3`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:mean(dim, keep) end

--- The largest values along a dimension, and their positions (i64; the first of equals). Without a
--- dimension only the largest of all is returned, for a list of dimensions only the values.
--- `gp.tensor({1, 9, 2}):max():item() == 9`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor values
---@return gpipe.Tensor? positions
function Tensor:max(dim, keep) end

--- Positions of the largest values along a dimension, or among all elements (i64, from 1).
--- `gp.tensor({1, 9, 2}):argmax():item() == 2`
---@param dim? integer
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:argmax(dim, keep) end

--- exp(x) / sum of exp(x) along a dimension, by default the last.
--- `gp.zeros({4}):softmax()[1] == 0.25`
---@param dim? integer
---@return gpipe.Tensor
function Tensor:softmax(dim) end

--- Logarithm of softmax. `gp.zeros({1}):log_softmax()[1] == 0`
---@param dim? integer
---@return gpipe.Tensor
function Tensor:log_softmax(dim) end

-- ---- parameters and buffers (of nn.Parameter and nn.Buffer) ----------------------------------
--- Whether the tensor belongs to a model: a parameter or a buffer.
--- `not gp.ones({1}):is_parameter()`
---@return boolean
function Tensor:is_parameter() end

--- Whether the tensor is a buffer. `nn.Buffer({2}):is_buffer()`
---@return boolean
function Tensor:is_buffer() end

--- Whether training leaves the parameter unchanged. `not nn.Parameter({2}, 0):is_frozen()`
---@return boolean
function Tensor:is_frozen() end

--- Freeze or unfreeze. `nn.Parameter({2}, 0):set_frozen(true):is_frozen()` Errors: while a pipeline
--- owns it.
---@param frozen boolean
---@return gpipe.Tensor self
function Tensor:set_frozen(frozen) end

--- The current values, as a tensor that shares their memory. `nn.Parameter({2}, 3):value()[1] == 3`
---@return gpipe.Tensor
function Tensor:value() end

-- ---- gradients -------------------------------------------------------------------------------
--- Add the gradients of the tensor to `grad` of everything that it was computed from and that
--- requires one: leaves (`t.requires_grad = true`) and parameters of models that no pipeline owns.
--- Going back twice adds twice. `gp.ones({1}).grad == nil`
--- Errors: several elements and no seed; nothing requires a gradient; a value that the gradient
--- needs was overwritten.
---@param seed? gpipe.Tensor the initial gradient, with the tensor's shape and dtype; 1
function Tensor:backward(seed) end

--- The same elements, in the same memory, as if they had been computed from nothing.
--- `not gp.ones({1}):detach().requires_grad`
---@return gpipe.Tensor
function Tensor:detach() end

return Tensor
