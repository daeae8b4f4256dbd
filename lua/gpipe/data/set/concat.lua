-- gpipe/data/set/concat.lua - `gp.data.concat`: joins data sets into one.
--
-- Items of a batch are gathered from each part that holds some of them, and the rows are then put
-- in the order of the batch, so dtypes stay as they are in the parts.

local class = require "gpipe.data.set.class"
local core = require "gpipe.core"
local dataset = require "gpipe.data.dataset"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local made = require "gpipe.data.item.made"
local several = require "gpipe.data.item.several"

local WHO = "gp.data.concat"

local Source = made.class()

-- ---- where items are ---------------------------------------------------------------------------

-- The part that holds a position of the whole.
local function part_of(self, at)
  local low, high = 1, #self.parts
  while low < high do
    local middle = (low + high) // 2
    if at <= self.parts[middle].last then high = middle else low = middle + 1 end
  end
  return self.parts[low]
end

-- Group positions by the part that holds them: {part, places in its source, where they stand in the
-- list}, in the order of the parts.
local function groups_of(self, positions)
  local groups, of = {}, {}
  for i, at in ipairs(positions) do
    local part = part_of(self, at)
    local group = of[part]
    if not group then
      group = { part = part, places = {}, where = {} }
      of[part], groups[#groups + 1] = group, group
    end
    local item = at - part.first + 1
    group.where[#group.where + 1] = i
    group.places[#group.places + 1] = part.f.base + (part.order and part.order[item] or item)
  end
  return groups
end

-- ---- batches -----------------------------------------------------------------------------------

-- Join the rows of the groups and put them in the order of the batch.
local function merge_tensors(values, order)
  for _, t in ipairs(values) do
    local shape, first = table.concat(t.shape, "x", 2), table.concat(values[1].shape, "x", 2)
    if t.dtype ~= values[1].dtype or shape ~= first then
      errors.raise("%s: items are %s [%s] and %s [%s], expected one shape and dtype", WHO,
        values[1].dtype, first, t.dtype, shape)
    end
  end
  return core.gather_rows(core.concat(values, 1), order)
end

local merge

local function merge_places(values, order)
  local places = {}
  for place = 1, #values[1] do
    local column = {}
    for k, value in ipairs(values) do column[k] = value[place] end
    places[place] = merge(column, order)
  end
  return several.mark(places)
end

-- Merge the values of all groups into the batch's value. `order[i]` is the row of item i among the
-- rows of the groups.
function merge(values, order)
  if values[1] == nil then return nil end
  if is_tensor(values[1]) then return merge_tensors(values, order) end
  if several.is_marked(values[1]) then return merge_places(values, order) end
  local rows, list = {}, {}
  for _, value in ipairs(values) do table.move(value, 1, #value, #rows + 1, rows) end
  for i, row in ipairs(order) do list[i] = rows[row] end
  return list
end

-- The kind of a batch's value; the parts must agree in it: tensors, lists of as many places, or
-- plain lists.
local function kind(value)
  if value == nil then return "nothing" end
  if is_tensor(value) then return "a tensor" end
  return several.is_marked(value) and ("%d values"):format(#value) or "a list"
end

local function check_kinds(values, n)
  for k = 2, n do
    if kind(values[k]) ~= kind(values[1]) then
      errors.raise("%s: batches of the data sets hold %s and %s, expected the same", WHO,
        kind(values[1]), kind(values[k]))
    end
  end
end

function Source:gather(positions, seed, stream)
  if self.join then return self:collate(nil, positions, seed, stream) end
  local groups, xs, ys, order, rows = groups_of(self, positions), {}, {}, {}, 0
  for k, group in ipairs(groups) do
    xs[k], ys[k] = group.part.f.source:gather(group.places, seed, stream)
    for i, where in ipairs(group.where) do order[where] = rows + i end
    rows = rows + #group.where
  end
  if #groups == 1 then return xs[1], ys[1] end
  check_kinds(xs, #groups)
  check_kinds(ys, #groups)
  return merge(xs, order), merge(ys, order)
end

function Source:items_at(positions, seed, stream, lent)
  local inputs, targets = {}, {}
  for _, group in ipairs(groups_of(self, positions)) do
    local x, y = made.items_of(group.part.f.source, group.places, seed, stream, lent)
    for i, where in ipairs(group.where) do inputs[where], targets[where] = x[i], y[i] end
  end
  return inputs, targets
end

-- Open the items so that threads can load them; used only if all parts are made in C.
local function open_items(self)
  local list = {}
  for i, part in ipairs(self.parts) do
    local source = part.f.source
    list[i] = { source.items or source:open_items(), part.order or false, part.f.base,
      part.f.count }
  end
  return core.items_joined(list)
end

local function threads_of(parts)
  local most = 0
  for _, part in ipairs(parts) do
    local source = part.f.source
    if not (source.items or source.open_items) then return nil end
    most = math.max(most, source.workers or 0)
  end
  return most
end

function Source:describe()
  return ("%d data sets, the first %s"):format(#self.parts, self.parts[1].f.source:describe())
end

-- ---- making one --------------------------------------------------------------------------------

-- The value of a field that is the same in all parts, or nil.
local function common(parts, field)
  local value = parts[1].f.source[field]
  for _, part in ipairs(parts) do
    if part.f.source[field] ~= value then return nil, true end
  end
  return value
end

-- The names of the classes if all parts have the same ones.
local function classes_of(parts)
  local texts, first = {}, parts[1].f.source.classes
  for _, part in ipairs(parts) do
    texts[table.concat(part.f.source.classes or {}, "\0")] = true
  end
  return next(texts, next(texts)) == nil and first or nil
end

local function check_list(list)
  if type(list) ~= "table" or class.fields(list) or #list == 0 then
    errors.raise("%s: the data sets are %s, expected a list of them: {a, b}", WHO,
      type(list) == "table" and not class.fields(list) and "an empty list" or errors.show(list))
  end
  local parts, last, gap = {}, 0, 0
  for i = 1, #list do
    local f = class.fields(list[i])
    if not f then
      errors.raise("%s: element %d is %s, expected a dataset", WHO, i, errors.show(list[i]))
    end
    parts[i] = { f = f, order = f.order, first = last + 1, last = last + f.count }
    last, gap = last + f.count, math.max(gap, f.source.gap)
  end
  return parts, last, gap
end

--- Join data sets into one, which is split, shuffled and sampled as a whole. Their items must fit
--- into one batch: tensors of one shape and dtype (or `pad` for lengths). If all parts are made in
--- C (images, tensors, bytes), threads load the whole as they would load a part. Random crops
--- follow the shuffle of the whole.
--- Errors: an empty list, or something that is not a dataset; when a batch is made, items that do
--- not fit together.
--- ```lua
--- local a = gp.data.tensors(gp.arange(1, 3), gp.zeros{3})
--- local b = gp.data.tensors(gp.arange(4, 5), gp.ones{2})
--- local both = gp.data.concat {a, b}
--- assert(#both == 5 and both:item(4) == 4)
--- ```
---@param list gpipe.Dataset[]
---@return gpipe.Dataset
return function(list)
  local parts, count, gap = check_list(list)
  local join, differ = common(parts, "join")
  if differ then
    errors.raise("%s: the data sets have different functions of d:collate, expected to collate "
      .. "what concat gives", WHO)
  end
  local threads = not join and threads_of(parts) or nil
  return dataset(setmetatable({ parts = parts, count = count, join = join, workers = threads,
    open_items = threads and open_items,
    gap = gap, classes = classes_of(parts) }, Source))
end
