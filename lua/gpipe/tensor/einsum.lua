-- lua/gpipe/tensor/einsum.lua - gp.einsum: sums of products by the letters of dimensions.
--
-- Two operands at a time become one batched product of matrices: letters of both that stay are the
-- batch, letters of both that go are summed, the others are rows and columns.

local errors = require "gpipe.errors"

local WHO = "gp.einsum"

local function letters_of(text, tensor, i)
  local letters, seen = {}, {}
  for letter in text:gmatch "." do
    if not letter:match "%a" then
      errors.raise('%s: "%s" has a character that is no letter', WHO, text)
    end
    if seen[letter] then
      errors.raise('%s: "%s" has %s twice, expected each letter once', WHO, text, letter)
    end
    letters[#letters + 1], seen[letter] = letter, true
  end
  if tensor and #letters ~= tensor:dim() then
    errors.raise('%s: operand %d has %d dimensions, "%s" says %d', WHO, i, tensor:dim(), text,
      #letters)
  end
  return letters, seen
end

-- "ab, bc -> ac" -> {letters of each operand}, letters of the result.
local function parse(spec, operands)
  if type(spec) ~= "string" or not spec:find("->", 1, true) then
    errors.raise('%s: the first argument is %s, expected a text such as "ij,jk->ik"', WHO,
      errors.show(spec))
  end
  local left, right = spec:gsub("%s", ""):match "^(.-)%->(.*)$"
  local sides, sizes = {}, {}
  for text in (left .. ","):gmatch "([^,]*)," do
    local i = #sides + 1
    local t = operands[i]
    if getmetatable(t) ~= "gpipe.Tensor" then
      errors.raise("%s: operand %d is %s, expected a tensor", WHO, i, errors.show(t))
    end
    local letters = letters_of(text, t, i)
    for d, letter in ipairs(letters) do
      local size = t:size(d)
      if sizes[letter] and sizes[letter] ~= size then
        errors.raise("%s: %s is %d in operand %d and %d before", WHO, letter, size, i,
          sizes[letter])
      end
      sizes[letter] = size
    end
    sides[i] = { tensor = t, letters = letters }
  end
  if #sides ~= operands.n then
    errors.raise('%s: "%s" has %d operands, there are %d', WHO, spec, #sides, operands.n)
  end
  local result = letters_of(right)
  for _, letter in ipairs(result) do
    if not sizes[letter] then errors.raise('%s: %s is in no operand of "%s"', WHO, letter, spec) end
  end
  return sides, result, sizes
end

local function set_of(letters)
  local set = {}
  for i, letter in ipairs(letters) do set[letter] = i end
  return set
end

-- Sum over the letters that nobody wants any more.
local function drop(side, wanted)
  local dims, kept = {}, {}
  for d, letter in ipairs(side.letters) do
    if wanted[letter] then kept[#kept + 1] = letter else dims[#dims + 1] = d end
  end
  if #dims == 0 then return side end
  return { tensor = side.tensor:sum(dims), letters = kept }
end

-- The tensor with its dimensions in the order of the letters.
local function ordered(side, letters)
  local at, order, same = set_of(side.letters), {}, true
  for i, letter in ipairs(letters) do
    order[i] = at[letter]
    same = same and at[letter] == i
  end
  return same and side.tensor or side.tensor:permute(order)
end

local function product(letters, sizes)
  local n = 1
  for _, letter in ipairs(letters) do n = n * sizes[letter] end
  return n
end

local function joined(...)
  local all = {}
  for _, list in ipairs { ... } do
    for _, letter in ipairs(list) do all[#all + 1] = letter end
  end
  return all
end

-- One product of matrices; wanted: letters that are read later.
local function multiply(a, b, wanted, sizes)
  local in_a, in_b = set_of(a.letters), set_of(b.letters)
  local needed_a, needed_b = {}, {}
  for letter in pairs(wanted) do needed_a[letter], needed_b[letter] = true, true end
  for letter in pairs(in_b) do needed_a[letter] = true end
  for letter in pairs(in_a) do needed_b[letter] = true end
  a, b = drop(a, needed_a), drop(b, needed_b)
  local batch, summed, rows, columns = {}, {}, {}, {}
  for _, letter in ipairs(a.letters) do
    local list = not in_b[letter] and rows or wanted[letter] and batch or summed
    list[#list + 1] = letter
  end
  for _, letter in ipairs(b.letters) do
    if not in_a[letter] then columns[#columns + 1] = letter end
  end
  local n, k = product(batch, sizes), product(summed, sizes)
  local left = ordered(a, joined(batch, rows, summed)):reshape { n, product(rows, sizes), k }
  local right = ordered(b, joined(batch, summed, columns)):reshape { n, k,
    product(columns, sizes) }
  local letters, shape = joined(batch, rows, columns), {}
  for i, letter in ipairs(letters) do shape[i] = sizes[letter] end
  return { tensor = left:matmul(right):reshape(shape), letters = letters }
end

--- Sums of products by letters: each letter is a dimension, those that the result lacks are summed.
---
--- Operands are joined from left to right, each time by one batched product of matrices.
--- Errors: another number of operands or dimensions than the text says; sizes that differ; a letter
--- twice in an operand.
--- ```lua
--- local a, b = gp.ones {2, 3, 4}, gp.ones {2, 4, 5}
--- assert(gp.einsum("bij,bjk->bik", a, b).shape[3] == 5)
--- ```
---@param spec string "ij,jk->ik"
---@param ... gpipe.Tensor
---@return gpipe.Tensor
return function(spec, ...)
  local sides, result, sizes = parse(spec, table.pack(...))
  local done = sides[1]
  for i = 2, #sides do
    local wanted = set_of(result)
    for j = i + 1, #sides do
      for letter in pairs(set_of(sides[j].letters)) do wanted[letter] = true end
    end
    done = multiply(done, sides[i], wanted, sizes)
  end
  return ordered(drop(done, set_of(result)), result)
end
