-- gpipe/data/batches.lua - walks over items batch by batch, with the generic `for`.
--
-- `for x, y in b do` calls b(nil, control). A nil control begins a new walk, so a walk that was
-- left early can be started over. Each control value belongs to one walk, so two loops over the
-- same object do not disturb each other. A walk over items that are made in C has its own threads;
-- they end with the loop, with close, or when the walk is collected.

local core = require "gpipe.core"
local check_state = require "gpipe.data.state"
local errors = require "gpipe.errors"

---@class gpipe.Batches
local Batches = { __name = "gpipe.Batches" }
Batches.__index = Batches

---@class gpipe.BatchesSpec
---@field count integer items
---@field size integer items in a batch
---@field gather fun(first: integer, count: integer): any, any
---@field mark fun(): integer identifies the order of the items
---@field loader? fun(first: integer): any starts the threads that make batches from item `first` on

---@param spec gpipe.BatchesSpec
---@return gpipe.Batches
local function new(spec)
  return setmetatable({
    spec = spec, count = spec.count, size = spec.size,
    after = setmetatable({}, { __mode = "k" }), -- the walk that gave x, and its next item
    walk = nil, -- the walk that was begun last
    start = 1, -- first item of the next walk
    pulled = nil, -- the walk of calls without arguments
  }, Batches)
end

-- ---- walks -------------------------------------------------------------------------------------

local function stop(walk)
  if walk and walk.loader then
    core.loader_close(walk.loader)
    walk.loader = nil
  end
end

local function begin(self, first)
  local walk = { next = first }
  self.walk = walk
  return walk
end

local function make(self, walk, n)
  local spec = self.spec
  if not spec.loader then return spec.gather(walk.next, n) end
  walk.loader = walk.loader or spec.loader(walk.next)
  return core.loader_next(walk.loader)
end

local function step(self, walk)
  if walk.next > self.count then
    stop(walk)
    return nil
  end
  local n = math.min(self.size, self.count - walk.next + 1)
  local x, y = make(self, walk, n)
  if x == nil then return nil end -- closed
  walk.next = walk.next + n
  if type(x) == "table" or type(x) == "userdata" then
    self.after[x] = { walk = walk, next = walk.next }
  end
  return x, y
end

local function first_item(self)
  local first = self.start
  self.start = 1
  return first
end

-- Return a walk that continues after x. If the walk that gave x has moved on meanwhile, begin
-- another one at that place and leave it alone.
local function walk_after(self, x)
  local place = self.after[x]
  if not place then return nil end
  if place.walk.next == place.next then return place.walk end
  return begin(self, place.next)
end

--- The batch after x, or the first one if x is nil. A call without arguments gives the next batch
--- of a separate walk, which begins anew after its end.
---@return any x
---@return any y
function Batches.__call(self, ...)
  if select("#", ...) > 0 then
    local _, control = ...
    local walk = control ~= nil and walk_after(self, control)
    if control == nil then walk = begin(self, first_item(self)) end
    if walk then return step(self, walk) end
    return nil
  end
  self.pulled = self.pulled or begin(self, first_item(self))
  local x, y = step(self, self.pulled)
  if x == nil then self.pulled = nil end
  return x, y
end

-- ---- position ----------------------------------------------------------------------------------

--- The position of the walk that was begun last, as a table of numbers that can be saved. Batches
--- that were handed out count; those that threads have only prepared do not.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 10), gp.ones{10})
--- local it = d:shuffle(1):batches(4)
--- local a = it()
--- local again = d:shuffle(1):batches(4)
--- again:restore(it:state())
--- assert(gp.equal(it(), again()))
--- ```
---@return table
function Batches:state()
  local at = self.walk and self.walk.next or self.start
  if self.start > 1 then at = self.start end
  return { next = at, count = self.count, size = self.size, order = self.spec.mark() }
end

local STATE = {
  next = { type = "integer", min = 1, required = true },
  count = { type = "integer", required = true }, size = { type = "integer", required = true },
  order = { type = "integer", required = true },
}

--- Begin the next walk where a state was taken: the same batches follow, whatever the number of
--- workers then and now. If the state was taken at the end of an epoch, the next walk is empty.
--- Errors: the state belongs to other data, to another batch size or to another order of the items
--- (shuffle with a seed, so that the same order can be made again).
---@param state table of state()
---@return gpipe.Batches self
function Batches:restore(state)
  state = check_state("batches:restore", state, STATE)
  for _, name in ipairs { "count", "size" } do
    if state[name] ~= self[name] then
      errors.raise("batches:restore: the state has %s = %d, expected %d as here", name, state[name],
        self[name])
    end
  end
  if state.next > self.count + 1 then
    errors.raise("batches:restore: next is %d, expected at most %d", state.next, self.count + 1)
  end
  if state.order ~= self.spec.mark() then
    errors.raise("batches:restore: the state is of another order of the items, expected the same "
      .. "data shuffled with the same seed")
  end
  self:close()
  self.start, self.pulled = state.next, nil
  return self
end

--- End the threads of the walk that was begun last. A loop `for x, y in d:batches(n) do` does this
--- by itself when it is left.
function Batches:close()
  stop(self.walk)
  stop(self.pulled)
  self.pulled = nil
end

Batches.__close = Batches.close

function Batches.__len(self) return self.count > 0 and (self.count - 1) // self.size + 1 or 0 end

function Batches.__tostring(self)
  return ("Batches(%d of up to %d items)"):format(#self, self.size)
end

return { new = new }
