---@meta gpipe.Tensor
-- lua/gpipe/tensor/meta.lua - what every field and method of a tensor is, for readers, editors and
-- tests; the methods themselves are in bindings/. Those that are ops as they stand (arithmetic,
-- functions, comparisons) are in runtime/ops/ops.def, and annotated by stubs.lua from there.
--
-- Positions and dimensions count from 1, negative ones from the end. What does not read elements
-- works on values of a trace too. A spec runs the examples and misses no method.
-- luacheck: ignore 212

---@class gpipe.Tensor
---@field shape integer[] a fresh table; {} for a scalar
---@field dtype gpipe.dtype
---@field device string "cpu"
---@field requires_grad boolean whether gradients of what is computed from it reach it; settable
---@field grad? gpipe.Tensor the gradient so far of a leaf or parameter; nil forgets it
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
--- `t[i]` is element or row i (negative: from the end); `t[{2, {1, 3}, {}}]` has one entry for each
--- dimension: a position (the dimension goes), a range {first, last} with both ends, or
--- {first, last, step}, {} for all. These are views, of a single element its number. `t[mask]`
--- (bool) and `t[positions]` (i64) are copies.
--- `gp.tensor({{1, 2, 3}, {4, 5, 6}})[{2, {2, 3}}][1] == 5`
--- Errors: a position outside of the dimension, more entries than dimensions.
---@param index integer|table|gpipe.Tensor
---@return gpipe.Tensor|number
function Tensor:__index(index) end

--- Writing to the same: `t[i] = v`, `t[{2, {1, 3}}] = v`, `t[mask] = v`; v is a number, a table or
--- a tensor that broadcasts, of a mask as many values as it chooses.
--- `(function() local t = gp.zeros {2}; t[2] = 5; return t[2] == 5 end)()`
---@param index integer|table|gpipe.Tensor
---@param value number|table|gpipe.Tensor
function Tensor:__newindex(index, value) end

-- ---- reading and writing elements ------------------------------------------------------------
--- Nested tables of the elements; a number for a scalar. `gp.ones({1, 2}):totable()[1][2] == 1`
--- Integer dtypes give integers, bool gives booleans. Errors: while tracing.
---@return table|number|boolean
function Tensor:totable() end

--- The elements in row-major order as a string, as they lie in memory (little-endian); gp.frombytes
--- takes it back. `#gp.ones({2, 3}):bytes() == 24`
---@return string
function Tensor:bytes() end

--- The one element. `gp.ones({1}):item() == 1` Errors: more or fewer than one; while tracing.
---@return number|integer|boolean
function Tensor:item() end

--- Write a tensor, a number or nested tables in place, converted and broadcast. In forward: Buffers
--- only. `gp.zeros({2}):copy_({1, 2})[2] == 2`
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

--- The elements, but value where the mask is true; broadcast.
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

--- Same shape, dtype and every bit. `gp.ones({2}):equal(gp.ones {2})`
---@param other gpipe.Tensor
---@return boolean
function Tensor:equal(other) end

--- Give the memory back now instead of when it is collected; the tensor is dead then.
--- `gp.ones({2}):free() == nil`
function Tensor:free() end

-- ---- shape -----------------------------------------------------------------------------------
--- The elements in row-major order under another shape; one size may be -1. A view where possible.
--- `gp.arange(1, 6):reshape(2, -1).shape[2] == 3`
---@param shape integer[]|integer also as arguments
---@param ... integer
---@return gpipe.Tensor
function Tensor:reshape(shape, ...) end

--- As reshape, but never a copy. `gp.arange(1, 6):view({3, 2})[3][2] == 6`
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

--- A view with two dimensions exchanged, the last two unless said.
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

--- The tensor itself where it is contiguous, else a copy.
--- `gp.ones({2, 3}):transpose():contiguous():is_contiguous()`
---@return gpipe.Tensor
function Tensor:contiguous() end

--- A copy with memory of its own. `gp.ones({2}):clone()[1] == 1`
---@return gpipe.Tensor
function Tensor:clone() end

--- Converted to a dtype or device (floats are truncated); the tensor itself where nothing is to do.
--- `gp.tensor({1.9}):to("i64")[1] == 1`
---@param what gpipe.dtype|"cpu"
---@return gpipe.Tensor
function Tensor:to(what) end

-- ---- along dimensions ------------------------------------------------------------------------
--- Product of matrices [.., M, K] and [.., K, N]; leading dimensions broadcast, vectors are taken.
--- `gp.ones({2, 3}):matmul(gp.ones {3, 4}).shape[2] == 4`
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

--- Greatest values along a dimension, and their positions (i64; the first of equals); without a
--- dimension only the greatest of all, of a list of dimensions only the values.
--- `gp.tensor({1, 9, 2}):max():item() == 9`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor values
---@return gpipe.Tensor? positions
function Tensor:max(dim, keep) end

--- Positions of the greatest values along a dimension, or among all elements (i64, from 1).
--- `gp.tensor({1, 9, 2}):argmax():item() == 2`
---@param dim? integer
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:argmax(dim, keep) end

--- exp(x) / sum of exp(x) along a dimension, the last unless said.
--- `gp.zeros({4}):softmax()[1] == 0.25`
---@param dim? integer
---@return gpipe.Tensor
function Tensor:softmax(dim) end

--- Logarithm of softmax. `gp.zeros({1}):log_softmax()[1] == 0`
---@param dim? integer
---@return gpipe.Tensor
function Tensor:log_softmax(dim) end

-- ---- parameters and buffers (of nn.Parameter and nn.Buffer) ----------------------------------
--- Whether it belongs to a model: a parameter or a buffer. `not gp.ones({1}):is_parameter()`
---@return boolean
function Tensor:is_parameter() end

--- Whether it is a buffer. `nn.Buffer({2}):is_buffer()`
---@return boolean
function Tensor:is_buffer() end

--- Whether training leaves it as it is. `not nn.Parameter({2}, 0):is_frozen()`
---@return boolean
function Tensor:is_frozen() end

--- Freeze or unfreeze. `nn.Parameter({2}, 0):set_frozen(true):is_frozen()` Errors: while a pipeline
--- owns it.
---@param frozen boolean
---@return gpipe.Tensor self
function Tensor:set_frozen(frozen) end

--- The values now, as a tensor that shares their memory. `nn.Parameter({2}, 3):value()[1] == 3`
---@return gpipe.Tensor
function Tensor:value() end

-- ---- gradients -------------------------------------------------------------------------------
--- Add the gradients of the tensor to `grad` of all that it was computed from and that requires
--- one: leaves (`t.requires_grad = true`) and parameters of models that no pipeline owns. Going
--- back twice adds twice. `gp.ones({1}).grad == nil`
--- Errors: several elements and no seed; nothing requires a gradient; a value that is needed was
--- written to since.
---@param seed? gpipe.Tensor what the gradient starts from, of the tensor's shape and dtype; 1
function Tensor:backward(seed) end

--- The same elements, in the same memory, as if they had been computed from nothing.
--- `not gp.ones({1}):detach().requires_grad`
---@return gpipe.Tensor
function Tensor:detach() end

return Tensor
