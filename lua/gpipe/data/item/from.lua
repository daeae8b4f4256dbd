-- gpipe/data/item/from.lua - a dataset of the script's own items: a list of them, or a function
-- that makes item i on the script's thread.

local dataset = require "gpipe.data.dataset"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local made = require "gpipe.data.item.made"
local options = require "gpipe.options"
local several = require "gpipe.data.item.several"

local from = {}

local Source = made.class()

-- Copy a value, so that a function of the script may write to it.
local function own(value)
  if is_tensor(value) then return value:clone() end
  if not several.is(value) then return value end
  local copy = {}
  for place, element in ipairs(value) do copy[place] = own(element) end
  return copy
end

function Source:items_at(positions, _, _, lent)
  local inputs, targets = {}, {}
  for i, at in ipairs(positions) do
    local x, y = self.fetch(at)
    if x == nil then
      errors.raise("data.from: item %d is nil, expected an input (and its target)", at)
    end
    if not lent then x, y = own(x), own(y) end
    inputs[i], targets[i] = x, y
  end
  return inputs, targets
end

function Source.describe() return "Lua" end

--- A dataset of the script's own items. A list holds `{x, y}` for each item. A function `fn(i)`
--- returns input and target of item i, from 1 to `count`; it is called each time the item is used,
--- on the script's thread. Batches are put together as those of `d:map`. An item with several
--- inputs is `{{a, b}, y}`, and its batch's x is {A, B}.
--- Errors: wrong options raise.
--- ```lua
--- local list = gp.data.from{{gp.tensor{1, 2}, 0}, {gp.tensor{3, 4}, 1}}
--- local made = gp.data.from(function(i) return gp.full({3}, i), i % 2 end, {count = 10})
--- for x, y in made:shuffle(1):batches(5) do assert(x.shape[2] == 3 and y.dtype == "i64") end
--- ```
---@param source table|fun(i: integer): any, any
---@param opts? {count: integer} items that the function can make
---@return gpipe.Dataset
function from.open(source, opts)
  source = options.argument("data.from", "source", source, {
    type = { "function", "table" }, required = true,
  })
  opts = options.check("data.from", opts, { count = { type = "integer", min = 1 } })
  local list = type(source) == "table"
  local count = opts.count or (list and #source)
  if not count or count < 1 or (list and count > #source) then
    errors.raise("data.from: %s, expected %s", list and ("%d items"):format(#source)
      or "option 'count' is missing", list and "at least one" or "the number of items")
  end
  local fetch = source
  if list then
    fetch = function(i)
      local item = source[i]
      if type(item) ~= "table" then return item end
      return item[1], item[2]
    end
  end
  return dataset(setmetatable({ fetch = fetch, count = count }, Source))
end

return from
