-- lua/gpipe/data/stream.lua - `gp.data.stream`: items that come one after the other; their number
-- is unknown until the end is reached.
--
-- A stream is a function that begins a pass and returns an iterator; map, filter, shard and shuffle
-- wrap it. A place in a stream is a number of items: to continue there, the items before it are
-- made again and dropped.

local check_state = require "gpipe.data.state"
local collate = require "gpipe.data.item.collate"
local errors = require "gpipe.errors"
local options = require "gpipe.options"

---@class gpipe.Stream
local Stream = { __name = "gpipe.Stream" }
Stream.__index = Stream

---@param open fun(): fun(): any, any begins a pass
local function new(open, buffer, key)
  return setmetatable({ open = open, buffer = buffer, key = key or "none" }, Stream)
end

local function check_function(who, f)
  if type(f) ~= "function" then
    errors.raise("%s: the first argument is %s, expected a function", who, errors.show(f))
  end
end

-- ---- wrapping ----------------------------------------------------------------------------------

--- Replace each item by what fn(x, y) returns.
--- ```lua
--- local s = gp.data.stream(function()
---   local i = 0
---   return function() i = i + 1 if i <= 5 then return i end end
--- end)
--- for x in s:map(function(v) return 10 * v end):batches(5) do assert(x[5] == 50) end
--- ```
---@param fn fun(x: any, y: any): any, any
---@return gpipe.Stream
function Stream:map(fn)
  check_function("stream:map", fn)
  return new(function()
    local following = self.open()
    return function()
      local x, y = following()
      if x == nil then return nil end
      return fn(x, y)
    end
  end, self.buffer, self.key)
end

--- The items for which fn(x, y) is true.
---@param fn fun(x: any, y: any): boolean
---@return gpipe.Stream
function Stream:filter(fn)
  check_function("stream:filter", fn)
  return new(function()
    local following = self.open()
    return function()
      local x, y
      repeat x, y = following() until x == nil or fn(x, y)
      return x, y
    end
  end, self.buffer, self.key)
end

--- Every n-th item from item i + 1 on: the share of one process.
---@param i integer from 0
---@param n integer
---@return gpipe.Stream
function Stream:shard(i, n)
  n = options.argument("stream:shard", "n", n, { type = "integer", min = 1, required = true })
  i = options.argument("stream:shard", "i", i, { type = "integer", min = 0, below = n,
    required = true })
  return new(function()
    local following, at = self.open(), -1
    return function()
      local x, y
      repeat
        x, y = following()
        at = at + 1
      until x == nil or at % n == i
      return x, y
    end
  end, self.buffer, self.key)
end

-- Draw numbers by splitmix64, so that an order depends only on the seed. Source: Steele, Lea and
-- Flood 2014.
local function draws(state)
  return function(count)
    state = state + 0x9E3779B97F4A7C15
    local z = (state ~ (state >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ~ (z >> 27)) * 0x94D049BB133111EB
    return ((z ~ (z >> 31)) >> 1) % count + 1
  end
end

-- Draw from a buffer of items; the next item takes the place of the drawn one.
local function shuffled(following, size, draw)
  local waiting, over = {}, false
  local function fill()
    local x, y = following()
    if x == nil then over = true else waiting[#waiting + 1] = { x, y } end
  end
  return function()
    while not over and #waiting < size do fill() end
    if #waiting == 0 then return nil end
    local at = draw(#waiting)
    local item = waiting[at]
    waiting[at] = waiting[#waiting]
    waiting[#waiting] = nil
    return item[1], item[2]
  end
end

--- The items in another order: each is drawn from a buffer of `buffer` items (option of
--- gp.data.stream). The order is a function of seed and epoch.
---@param seed integer
---@param epoch? integer default 0
---@return gpipe.Stream
function Stream:shuffle(seed, epoch)
  seed = options.argument("stream:shuffle", "seed", seed, { type = "integer", required = true })
  epoch = options.argument("stream:shuffle", "epoch", epoch, { type = "integer", min = 0,
    default = 0 })
  return new(function()
    return shuffled(self.open(), self.buffer, draws(seed * 0x9E3779B97F4A7C15 ~ epoch << 32))
  end, self.buffer, ("%s, shuffled by %d, %d"):format(self.key, seed, epoch))
end

-- ---- batches -----------------------------------------------------------------------------------

---@class gpipe.StreamBatches
local Batches = { __name = "gpipe.StreamBatches", unknown = true }
Batches.__index = Batches

local function begin(self)
  self.following, self.given = self.stream.open(), 0
  for _ = 1, self.start do -- made again, and dropped
    if self.following() == nil then break end
    self.given = self.given + 1
  end
  self.start = 0
end

local function step(self)
  local inputs, targets = {}, {}
  while #inputs < self.size do
    local x, y = self.following()
    if x == nil then break end
    inputs[#inputs + 1], targets[#targets + 1] = x, y
  end
  if #inputs == 0 or self.drop_last and #inputs < self.size then
    self.following = nil
    return nil
  end
  self.given = self.given + #inputs
  return collate.join(inputs, self.pad), collate.join(targets, self.pad)
end

--- The next batch; a loop begins a new pass. A call without arguments gives the next batch, and
--- begins a new pass after the end of the last one.
function Batches.__call(self, ...)
  local begins = select("#", ...) > 0 and select(2, ...) == nil
  if begins or not self.following then begin(self) end
  return step(self)
end

--- The position, as a table that can be saved.
---@return {items: integer, size: integer, key: string}
function Batches:state()
  local items = self.following and self.given or self.start
  return { items = items, size = self.size, key = self.stream.key }
end

local STATE = {
  items = { type = "integer", min = 0, required = true },
  size = { type = "integer", required = true }, key = { type = "string", required = true },
}

--- Begin the next pass where a state was taken. The items before it are made again and dropped.
--- Errors: the state belongs to another order or to another batch size.
---@param state table of state()
---@return gpipe.StreamBatches self
function Batches:restore(state)
  state = check_state("batches:restore", state, STATE)
  if state.size ~= self.size or state.key ~= self.stream.key then
    errors.raise("batches:restore: the state is of batches of %d (%s), expected %d (%s) as here",
      state.size, state.key, self.size, self.stream.key)
  end
  self.start, self.following = state.items, nil
  return self
end

function Batches:close() self.following = nil end
Batches.__close = Batches.close

function Batches:__tostring()
  return ("Batches(of up to %d items of a stream)"):format(self.size)
end

local BATCHES = {
  drop_last = { type = "boolean", default = false },
  pad = { type = "number" },
}

--- Walk over the items n at a time: `for x, y in s:batches(32) do`. They are made on the script's
--- thread and put together as those of `gp.data.from`. The object has `state()` and `restore()`.
---@param n integer
---@param opts? {drop_last?: boolean, pad?: number}
---@return gpipe.StreamBatches
function Stream:batches(n, opts)
  n = options.argument("batches", "n", n, { type = "integer", min = 1, required = true })
  opts = options.check("batches", opts, BATCHES)
  local b = setmetatable({
    stream = self, size = n, drop_last = opts.drop_last, pad = opts.pad, start = 0, given = 0,
  }, Batches)
  return b, nil, nil, b
end

function Stream:__tostring() return ("Stream(%s)"):format(self.key) end

-- ---- making one --------------------------------------------------------------------------------

-- Do not call an iterator again after its end, as `for` does not: a coroutine would raise.
local function once_over(following)
  local over = false
  return function()
    if over then return nil end
    local x, y = following()
    over = x == nil
    return x, y
  end
end

--- Items whose number is not known in advance: lines of a file that is larger than memory, the
--- output of another program, items that are generated. `make()` begins a pass and returns a
--- function that returns input and target of the next item, and nil at the end. It must give the
--- same items in every pass, so that training can continue after a stop.
---
--- A stream has `map`, `filter`, `shard`, `shuffle` (within a buffer of `buffer` items) and
--- `batches`, as a dataset has; gp.data.epochs walks over it epoch after epoch.
--- ```lua
--- local path = os.tmpname()
--- assert(io.open(path, "w")):write("1 2\n3 4\n5 6\n"):close()
--- local s = gp.data.stream(function()
---   local lines = io.lines(path, "n", "n")
---   return function() return lines() end
--- end, {buffer = 100})
--- for x, y in s:shuffle(1):batches(2) do assert(y[1] == x[1] + 1) end
--- os.remove(path)
--- ```
---@param make fun(): fun(): any, any
---@param opts? {buffer?: integer} items in the buffer that shuffle draws from; default 1024
---@return gpipe.Stream
return function(make, opts)
  check_function("gp.data.stream", make)
  opts = options.check("gp.data.stream", opts,
    { buffer = { type = "integer", min = 1, default = 1024 } })
  return new(function()
    local following = make()
    if type(following) ~= "function" then
      errors.raise("gp.data.stream: a pass began with %s, expected a function that gives items",
        errors.show(following))
    end
    return once_over(following)
  end, opts.buffer)
end
