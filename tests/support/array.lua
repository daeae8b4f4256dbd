-- tests/support/array.lua - small arrays in plain Lua, for references that use nothing of the
-- runtime.
--
-- An array is a list of its elements in row-major order with its sizes in `shape`. The code is
-- written for clarity, not for speed: specs compare what the runtime computes with what these loops
-- give.

local array = {}

---@class tests.Array
---@field shape integer[]

-- ---- making ----------------------------------------------------------------------------------

--- Count the elements of a shape.
function array.count(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

--- Make an array with element f(index) at each index (a table of positions from 1, reused).
function array.build(shape, f)
  local out, index, n = { shape = { table.unpack(shape) } }, {}, array.count(shape)
  for d = 1, #shape do index[d] = 1 end
  for flat = 1, n do
    out[flat] = f(index, flat)
    for d = #shape, 1, -1 do
      index[d] = index[d] + 1
      if index[d] <= shape[d] then break end
      index[d] = 1
    end
  end
  return out
end

--- Make a scalar.
function array.scalar(value) return { shape = {}, value } end

local function append_leaves(nested, out)
  if type(nested) ~= "table" then
    if type(nested) == "boolean" then nested = nested and 1 or 0 end
    out[#out + 1] = nested
    return
  end
  for _, part in ipairs(nested) do append_leaves(part, out) end
end

--- Return the elements of a tensor; true and false become 1 and 0.
function array.of(tensor)
  local out = { shape = tensor.shape }
  append_leaves(tensor:totable(), out)
  return out
end

-- ---- reading ---------------------------------------------------------------------------------

--- Return the element at an index, broadcast: a list longer than the rank is read from its end, and
--- a dimension of size 1 has its one element everywhere.
function array.at(a, index)
  local flat, skip = 0, #index - #a.shape
  for d, size in ipairs(a.shape) do
    flat = flat * size + (size == 1 and 0 or index[d + skip] - 1)
  end
  return a[flat + 1]
end

--- Return the shape that arrays broadcast to.
function array.broadcast(...)
  local shape = {}
  for _, a in ipairs { ... } do
    local grown = {}
    for back = 0, math.max(#shape, #a.shape) - 1 do
      local one, two = shape[#shape - back] or 1, a.shape[#a.shape - back] or 1
      assert(one == two or one == 1 or two == 1, "shapes do not broadcast")
      table.insert(grown, 1, one == 1 and two or one)
    end
    shape = grown
  end
  return shape
end

-- ---- computing -------------------------------------------------------------------------------

--- Apply f to the elements of one to three arrays, broadcast.
function array.map(f, a, b, c)
  return array.build(array.broadcast(a, b, c), function(i)
    return f(array.at(a, i), b and array.at(b, i), c and array.at(c, i))
  end)
end

--- Apply f to the list of elements along dimensions `dims` (nil: all) at each index of the others;
--- the dimensions disappear or stay with size 1.
function array.fold(a, dims, keep, f)
  local gone, lists, shape = {}, {}, {}
  for d = 1, #a.shape do gone[d] = dims == nil end
  for _, d in ipairs(dims or {}) do gone[d < 0 and #a.shape + 1 + d or d] = true end
  for d, size in ipairs(a.shape) do
    if not gone[d] or keep then shape[#shape + 1] = gone[d] and 1 or size end
  end
  for flat = 1, array.count(shape) do lists[flat] = {} end
  array.build(a.shape, function(i, flat)
    local to = 0
    for d, size in ipairs(a.shape) do if not gone[d] then to = to * size + i[d] - 1 end end
    table.insert(lists[to + 1], a[flat])
  end)
  return array.build(shape, function(_, flat) return f(lists[flat]) end)
end

--- Apply f, a function of a list to a list, to each line along a dimension (the last by default).
function array.lines(a, f, dim)
  dim = dim or -1
  if dim < 0 then dim = #a.shape + 1 + dim end
  local found = array.fold(a, { dim }, true, f)
  return array.build(a.shape, function(i)
    local at = { table.unpack(i) }
    at[dim] = 1
    return array.at(found, at)[i[dim]]
  end)
end

--- Multiply [.., M, K] by [.., K, N], leading dimensions broadcast.
function array.matmul(a, b)
  local k = a.shape[#a.shape]
  local function lead(x) return { shape = { table.unpack(x.shape, 1, #x.shape - 2) } } end
  local shape = array.broadcast(lead(a), lead(b))
  table.move({ a.shape[#a.shape - 1], b.shape[#b.shape] }, 1, 2, #shape + 1, shape)
  return array.build(shape, function(i)
    local left, right, sum = { table.unpack(i) }, { table.unpack(i) }, 0.0
    for c = 1, k do
      left[#i], right[#i - 1] = c, c
      sum = sum + array.at(a, left) * array.at(b, right)
    end
    return sum
  end)
end

-- ---- rearranging -----------------------------------------------------------------------------

function array.reshape(a, shape) return array.build(shape, function(_, flat) return a[flat] end) end

function array.permute(a, order)
  local shape = {}
  for d, from in ipairs(order) do shape[d] = a.shape[from] end
  return array.build(shape, function(i)
    local from = {}
    for d, dim in ipairs(order) do from[dim] = i[d] end
    return array.at(a, from)
  end)
end

function array.narrow(a, dim, first, length)
  local shape = { table.unpack(a.shape) }
  shape[dim] = length
  return array.build(shape, function(i)
    local from = { table.unpack(i) }
    from[dim] = i[dim] + first - 1
    return array.at(a, from)
  end)
end

function array.expand(a, shape) return array.build(shape, function(i) return array.at(a, i) end) end

function array.concat(list, dim)
  local shape, starts = { table.unpack(list[1].shape) }, {}
  shape[dim] = 0
  for k, a in ipairs(list) do
    starts[k] = shape[dim]
    shape[dim] = shape[dim] + a.shape[dim]
  end
  return array.build(shape, function(i)
    for k = #list, 1, -1 do
      if i[dim] > starts[k] and list[k].shape[dim] > 0 then
        local from = { table.unpack(i) }
        from[dim] = i[dim] - starts[k]
        return array.at(list[k], from)
      end
    end
  end)
end

return array
