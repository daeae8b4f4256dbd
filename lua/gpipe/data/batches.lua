-- gpipe/data/batches.lua - walking over items some at a time, with the generic `for`.
--
-- `for x, y in b do` calls b(nil, control): a nil control begins anew, so a walk that was left
-- early can be begun again. Where the next batch begins is remembered per control value, so two
-- loops over the same object do not disturb one another.

---@class gpipe.Batches
local Batches = { __name = "gpipe.Batches" }
Batches.__index = Batches

---@param count integer items
---@param size integer items in a batch
---@param gather fun(first: integer, count: integer): gpipe.Tensor, gpipe.Tensor
---@return gpipe.Batches
local function new(count, size, gather)
  return setmetatable({
    count = count, size = size, gather = gather,
    after = setmetatable({}, { __mode = "k" }), -- [x] = first item of the batch that follows x
    last = nil, -- x of the batch that a call without arguments returned
  }, Batches)
end

local function batch_at(self, first)
  if not first or first > self.count then return nil end
  local n = math.min(self.size, self.count - first + 1)
  local x, y = self.gather(first, n)
  self.after[x] = first + n
  return x, y
end

--- The batch after x; the first one where x is nil. Without arguments: the next one of a walk of
--- its own, which begins anew after its end.
---@return gpipe.Tensor? x
---@return gpipe.Tensor? y
function Batches.__call(self, ...)
  if select("#", ...) > 0 then
    local _, control = ...
    return batch_at(self, control == nil and 1 or self.after[control])
  end
  local x, y = batch_at(self, self.last and self.after[self.last] or 1)
  self.last = x
  return x, y
end

function Batches.__len(self) return (self.count + self.size - 1) // self.size end

function Batches.__tostring(self)
  return ("Batches(%d of up to %d items)"):format(#self, self.size)
end

return { new = new }
