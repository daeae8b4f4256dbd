-- lua/gpipe/tensor/einsum.lua - gp.einsum: sums of products by the letters of dimensions.
--
-- Two operands at a time become one batched product of matrices: letters of both that remain are
-- the batch, letters of both that disappear are summed, and the others are rows and columns.

local errors = require "gpipe.errors"

local WHO = "gp.einsum"

-- ---- letters ---------------------------------------------------------------------------------

-- The letters for the dimensions that "..." stands for, counted from the last one: "...1" and so
-- on.
local function dots(count)
  local letters = {}
  for i = 1, count do letters[i] = "..." .. (count - i + 1) end
  return letters
end

-- The letters of a text in which "..." stands for this many dimensions.
local function letters_of(text, more)
  local before, after = text:match "^(%a*)%.%.%.(%a*)$"
  if not before and not text:match "^%a*$" then
    errors.raise('%s: "%s" has a character that is no letter, nor "..." once', WHO, text)
  end
  local letters = {}
  for letter in (before or text):gmatch "." do letters[#letters + 1] = letter end
  if before then
    table.move(dots(more), 1, more, #letters + 1, letters)
    for letter in after:gmatch "." do letters[#letters + 1] = letter end
  end
  return letters
end

-- Take the diagonal of two dimensions if an operand has their letter twice.
local function diagonals(tensor, letters)
  local at = {}
  for d, letter in ipairs(letters) do
    if at[letter] then
      local first = at[letter]
      local rest = {}
      for k, other in ipairs(letters) do
        if k ~= first and k ~= d then rest[#rest + 1] = other end
      end
      rest[#rest + 1] = letter
      return diagonals(tensor:movedim({ first, d }, { -2, -1 }):diagonal(), rest)
    end
    at[letter] = d
  end
  return tensor, letters
end

-- Read one operand: its letters, and its sizes, which must agree with the others.
local function read_operand(text, t, i, sizes)
  if getmetatable(t) ~= "gpipe.Tensor" then
    errors.raise("%s: operand %d is %s, expected a tensor", WHO, i, errors.show(t))
  end
  local _, said = text:gsub("%a", "")
  local more = text:find("...", 1, true) and math.max(t:dim() - said, 0) or 0
  local letters = letters_of(text, more)
  if #letters ~= t:dim() then
    errors.raise('%s: operand %d has %d dimensions, "%s" says %d', WHO, i, t:dim(), text, #letters)
  end
  for d, letter in ipairs(letters) do
    local size, before = t:size(d), sizes[letter]
    local fits = not before or before == size or letter:find "%." and (before == 1 or size == 1)
    if not fits then
      errors.raise("%s: %s is %d in operand %d and %d before", WHO, letter, size, i, before)
    end
    sizes[letter] = before and before ~= 1 and before or size
  end
  return { tensor = t, letters = letters, more = more }
end

-- The result of a text without "->": "..." and the letters that occur once, in alphabetical order.
local function implied(left, more)
  local counts, once = {}, {}
  for letter in left:gmatch "%a" do counts[letter] = (counts[letter] or 0) + 1 end
  for letter, count in pairs(counts) do
    if count == 1 then once[#once + 1] = letter end
  end
  table.sort(once)
  return table.move(once, 1, #once, more + 1, dots(more))
end

local function read_result(spec, left, right, more, sizes)
  local result = right and letters_of(right, more) or implied(left, more)
  local seen = {}
  for _, letter in ipairs(result) do
    if not sizes[letter] then errors.raise('%s: %s is in no operand of "%s"', WHO, letter, spec) end
    if seen[letter] then
      errors.raise('%s: "%s" has %s twice, expected each letter once', WHO, right, letter)
    end
    seen[letter] = true
  end
  return result
end

-- "ab, bc -> ac" -> {letters of each operand}, letters of the result.
local function parse(spec, operands)
  if type(spec) ~= "string" then
    errors.raise('%s: the first argument is %s, expected a text such as "ij,jk->ik"', WHO,
      errors.show(spec))
  end
  local plain = spec:gsub("%s", "")
  local left, right = plain:match "^(.-)%->(.*)$"
  left = left or plain
  local sides, sizes, more = {}, {}, 0
  for text in (left .. ","):gmatch "([^,]*)," do
    local i = #sides + 1
    sides[i] = read_operand(text, operands[i], i, sizes)
    more = math.max(more, sides[i].more)
  end
  if #sides ~= operands.n then
    errors.raise('%s: "%s" has %d operands, there are %d', WHO, spec, #sides, operands.n)
  end
  local result = read_result(spec, left, right, more, sizes)
  for _, side in ipairs(sides) do
    local shape = {}
    for d, letter in ipairs(side.letters) do shape[d] = sizes[letter] end
    side.tensor, side.letters = diagonals(side.tensor:expand(shape), side.letters)
  end
  return sides, result, sizes
end

-- ---- products --------------------------------------------------------------------------------

local function set_of(letters)
  local set = {}
  for i, letter in ipairs(letters) do set[letter] = i end
  return set
end

-- Sum over the letters that are not needed any more.
local function drop(side, wanted)
  local dims, kept = {}, {}
  for d, letter in ipairs(side.letters) do
    if wanted[letter] then kept[#kept + 1] = letter else dims[#dims + 1] = d end
  end
  if #dims == 0 then return side end
  return { tensor = side.tensor:sum(dims), letters = kept }
end

-- Permute a tensor's dimensions into the order of the letters.
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

-- Multiply two operands as matrices; wanted: letters that are needed later.
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

--- Sums of products by letters: each letter is a dimension, and dimensions whose letters the result
--- lacks are summed. "..." stands for the dimensions without a letter; a letter twice in an operand
--- means a diagonal. Without "->" the result has the letters that occur once, in alphabetical
--- order.
---
--- Operands are joined from left to right, each time by one batched product of matrices.
--- Errors: another number of operands or dimensions than the text says; sizes that differ.
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
