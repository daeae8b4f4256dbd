-- lua/gpipe/schedule/build/heap.lua - a binary heap: a queue by priority.

local Heap = {}
Heap.__index = Heap

--- An empty heap.
---@param before fun(a: any, b: any): boolean
function Heap.new(before) return setmetatable({ before = before }, Heap) end

--- The first value; nil where the heap is empty.
function Heap:first() return self[1] end

--- Add a value.
function Heap:push(value)
  local i = #self + 1
  self[i] = value
  while i > 1 and self.before(value, self[i // 2]) do
    self[i], i = self[i // 2], i // 2
    self[i] = value
  end
end

--- Remove the first value and return it.
function Heap:pop()
  local first, last, count = self[1], table.remove(self), #self
  if count == 0 then return first end
  local i = 1
  while true do
    local child = 2 * i
    if child < count and self.before(self[child + 1], self[child]) then child = child + 1 end
    if child > count or not self.before(self[child], last) then break end
    self[i], i = self[child], child
  end
  self[i] = last
  return first
end

return Heap
