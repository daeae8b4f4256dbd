-- lua/gpipe/pipeline/object.lua - the read-only object that a script holds: the methods and facts
-- of a pipeline.
--
-- If a field could be written, `pipe.chunks = 4` would be ignored silently, because a pipeline is
-- fixed when it is made. So a script holds an empty table in front of the one that the methods work
-- on. It reads through to that table, and every write is an error that says what to do instead.

local call = require "gpipe.ranks.call"
local errors = require "gpipe.errors"

local object = {}

local INNER = {} -- private key of the table that the methods work on

-- Fields that may be nil: reading them is not an error.
local MAYBE = {
  loss = true, pending = true, kept = true, trained = true, spread = true,
  hypers = true, free = true, warned = true, sum_group = true, barrier = true,
}

-- The fields that gp.pipeline decides: the options, and what follows from them.
local OPTIONS = {
  balance = true, devices = true, chunks = true, schedule = true, checkpoint = true, loss = true,
  sample = true, precision = true, loss_scale = true, finite = true, fuse = true, seed = true,
  watchdog = true, deferred_batch_norm = true, sync_batch_norm = true, replicas = true,
  sum_group = true, zero = true, barrier = true,
}

-- Names that belong to something else, and what to write there.
local ELSEWHERE = {
  lr = "opt.lr = x sets the learning rate of an optimizer",
  training = "pipe:train() and pipe:eval() set the mode",
  model = "gp.pipeline(model, ...) makes a pipeline of another model",
  stats = "it is made anew for every step",
  optimizer = "an optimizer stands beside the pipeline: opt = optim.Adam(pipe:parameters(), {lr = "
    .. "0.01}), then opt:step() after pipe:step(x, y)",
}

local function inner_of(pipe, name)
  local inner = type(pipe) == "table" and rawget(pipe, INNER)
  if not inner then
    errors.raise("%s: the first argument is %s, expected a pipeline: pipe:%s(...)", name,
      errors.show(pipe), name)
  end
  return inner
end

-- If a method returns the inner table, return the public object instead, so that calls can be
-- chained.
local function outward(pipe, inner, first, ...)
  if first == inner then return pipe, ... end
  return first, ...
end

-- Arguments that a method does not have would be ignored silently.
local function refuse_more(name, most, ...)
  for i = most + 1, select("#", ...) do
    local more = select(i, ...)
    if more ~= nil then
      errors.raise("%s: argument %d is %s, but pipe:%s takes %s", name, i, errors.show(more), name,
        most == 0 and "none" or "at most " .. most)
    end
  end
end

local function wrap(name, method)
  local told = "pipe:" .. name
  local facts = debug.getinfo(method, "u")
  local most = facts.isvararg and math.huge or facts.nparams - 1 -- the pipeline is the first one
  return function(pipe, ...)
    local inner = inner_of(pipe, name)
    if select("#", ...) > most then refuse_more(name, most, ...) end
    local _ <close> = inner.spread and call.enter(told) or nil
    return outward(pipe, inner, method(inner, ...))
  end
end

local function names_of(...)
  local names = {}
  for _, list in ipairs { ... } do
    for name in pairs(list) do names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local function refuse_write(key)
  local name = errors.show(key)
  if type(key) == "string" then name = ("'%s'"):format(key) end
  if OPTIONS[key] then
    errors.raise("pipeline: %s cannot be set, it is decided when the pipeline is made: close it "
      .. "and make another, gp.pipeline(model, {%s = ...})", name, key)
  end
  errors.raise("pipeline: %s cannot be set: %s", name, ELSEWHERE[key]
    or "a pipeline has no fields of the script's (a variable or a table beside it would do)")
end

-- Look up a field: first methods, then fields that are computed when they are read, then facts.
local function reader(public, computed)
  return function(pipe, key)
    local inner = rawget(pipe, INNER)
    if public[key] then return public[key] end
    if computed[key] then return computed[key](inner) end
    local value = nil
    if key ~= "core" then value = inner[key] end -- scripts must not call the runtime's object
    if value ~= nil or MAYBE[key] or OPTIONS[key] or type(key) ~= "string" then return value end
    local near = errors.suggest(key, names_of(public, computed, OPTIONS))
    local way = ELSEWHERE[key] or require("gpipe.elsewhere")[key]
    errors.raise("pipeline: there is no '%s'%s", key,
      near and (" (did you mean '%s'?)"):format(near) or way and (" (%s)"):format(way) or "")
  end
end

--- Return a function that wraps a table of fields as a pipeline.
---@param methods table<string, function> each gets the table of fields
---@param computed table<string, fun(inner: table): any> fields that are computed at every read
---@param text fun(inner: table): string
---@return fun(inner: table): gpipe.Pipeline
function object.class(methods, computed, text)
  local public = {}
  for name, method in pairs(methods) do public[name] = wrap(name, method) end
  local meta = { __name = "gpipe.Pipeline", __close = public.close, methods = public }
  meta.__index = reader(public, computed)
  function meta.fields(pipe) -- for completion
    local inner, found = rawget(pipe, INNER), {}
    for name in pairs(OPTIONS) do found[name] = inner[name] end
    for name, make in pairs(computed) do found[name] = make(inner) end
    return found
  end
  function meta.__newindex(_, key) refuse_write(key) end
  function meta.__tostring(pipe) return text(rawget(pipe, INNER)) end
  local inside = { __index = methods }
  return function(inner) return setmetatable({ [INNER] = setmetatable(inner, inside) }, meta) end
end

--- The table of fields behind a pipeline, for tests and measurements of its internals.
---@param pipe gpipe.Pipeline
---@return table
function object.inside(pipe) return inner_of(pipe, "inside") end

return object
