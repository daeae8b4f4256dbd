-- gpipe/data/set/functions.lua - methods of data sets that take a function of the script; it runs
-- on the script's thread.

local class = require "gpipe.data.set.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local map = require "gpipe.data.item.map"
local options = require "gpipe.options"

local methods = class.methods

--- Replace each item by what fn returns for it: `fn(x, y)` returns the new input and target, which
--- may be tensors, numbers or anything else. fn runs on the script's thread each time an item is
--- used, even if batches has workers. What it returns is put together as the batch: tensors of one
--- shape are stacked, whole numbers become i64, other numbers f32. Lists of tensors and numbers,
--- `{a, b}`, are put together place by place: they are several inputs, x = {A, B}. Anything else
--- becomes a list.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 4), gp.ones{4}):map(function(x, y) return 2 * x, y end)
--- assert(d:item(3) == 6)
--- ```
---@param fn fun(x: any, y: any): any, any
---@return gpipe.Dataset
function methods:map(fn)
  local f = class.fields(self)
  fn = options.argument("map", "fn", fn, { type = "callable", required = true })
  return class.new(map.mapped(f.source, fn), f.base, f.count, f.order, f.key)
end

--- The items for which `fn(x, y)` is true. All items are visited once, when this is called.
--- Errors: no item is left.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 4), gp.ones{4}):filter(function(x) return x > 2 end)
--- assert(#d == 2 and d:item(1) == 3)
--- ```
---@param fn fun(x: any, y: any): any
---@return gpipe.Dataset
function methods:filter(fn)
  local f = class.fields(self)
  fn = options.argument("filter", "fn", fn, { type = "callable", required = true })
  local kept = {}
  for i, x, y in class.each_item(f) do
    if fn(x, y) then kept[#kept + 1] = i end
  end
  if #kept == 0 then errors.raise("filter: none of %d items is left, expected one", f.count) end
  return class.pick(f, core.tensor(kept, "i64"))
end

--- Let `fn(items)` put batches together instead of stacking: items is a list of {x, y}, and what fn
--- returns, x and y of the batch, is passed on as it is. The items themselves do not change:
--- `d:item(i)`, `map` and `filter` see them as before. fn runs on the script's thread.
--- Errors: fn is not a function; when a batch is made, fn returns nil.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 4), gp.ones{4}):collate(function(items)
---   local sum = 0
---   for _, item in ipairs(items) do sum = sum + item[1] end
---   return gp.tensor {sum}, #items
--- end)
--- for x, n in d:batches(4) do assert(x[1] == 10 and n == 4) end
--- ```
---@param fn fun(items: any[][]): any, any
---@return gpipe.Dataset
function methods:collate(fn)
  local f = class.fields(self)
  fn = options.argument("collate", "fn", fn, { type = "callable", required = true })
  return class.new(map.collated(f.source, fn), f.base, f.count, f.order, f.key)
end
