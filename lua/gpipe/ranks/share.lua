-- lua/gpipe/ranks/share.lua - what each rank knows of its own devices, brought to all ranks.
--
-- All ranks get the same list, or raise the same error: one that fails tells the others.

local dry_mode = require "gpipe.dry_mode"
local encode = require "gpipe.ranks.encode"
local errors = require "gpipe.errors"
local ranks = require "gpipe.ranks"

local share = {}

-- What this rank makes, or its failure, as it is sent.
local function attempt(make)
  local good, value = pcall(make)
  if not good and type(value) ~= "string" then error(value, 0) end -- an interrupt
  return { good, value }
end

-- What a rank has sent; its failure is raised here, too.
local function value_of(what, rank, piece)
  if not piece[1] then errors.raise("%s: rank %d: %s", what, rank, piece[2]) end
  return piece[2]
end

-- Collect what each rank makes with `make`; a failure of one is raised on all. The ranks of an
-- imagined job make the same.
local function collect(what, make)
  local list = {}
  if dry_mode.job() then
    local value = make()
    for r = 1, ranks.ranks() do list[r] = value end
    return list
  end
  for r, piece in ipairs(ranks.collect(what, attempt(make))) do
    list[r] = value_of(what, r - 1, piece)
  end
  return list
end

--- A value of each rank, by rank from 1.
---@param what string the name of the call, shorter than 32 bytes
---@param make fun(): any
---@return any[]
function share.by_rank(what, make)
  if ranks.ranks() == 1 then return { make() } end
  return collect(what, make)
end

--- Let every rank do something. Where it fails on some, all raise the first one's error; where it
--- fails on all, each raises its own.
---@param what string the name of the call, shorter than 32 bytes
---@param act fun()
function share.together(what, act)
  local own, failed, first = attempt(act), 0, nil
  for r, piece in ipairs(ranks.collect(what, { own[1], not own[1] and own[2] or nil })) do
    if not piece[1] then
      failed, first = failed + 1, first or { r - 1, piece[2] }
    end
  end
  if failed == ranks.ranks() then error(own[2], 0) end
  if first then errors.raise("%s: rank %d: %s", what, first[1], first[2]) end
end

--- What one rank makes, on all ranks.
---@param rank integer
---@param what string the name of the call, shorter than 32 bytes
---@param make fun(): any
---@return any
function share.from(rank, what, make)
  return share.by_rank(what, function()
    if ranks.rank() == rank then return make() end
  end)[rank + 1]
end

--- What one rank makes, on some ranks: the others take part in the call, and get nil.
---@param rank integer
---@param wanted table<integer, boolean> the ranks that get it
---@param what string the name of the call, shorter than 32 bytes
---@param make fun(): any not nil
---@return any
function share.to(rank, wanted, what, make)
  local piece, to = {}, nil
  if ranks.rank() == rank then
    piece, to = attempt(make), {}
    for r = 1, ranks.ranks() do to[r] = not piece[1] or wanted[r - 1] or false end
  end
  local text = ranks.gather(what, encode.write(what, piece), to)[rank + 1]
  if text == "" then return nil end
  return value_of(what, rank, encode.read(text))
end

--- A value for each device of a pipeline: `make` gives it on the rank that the device belongs to.
---@param pipe table its fields
---@param what string the name of the call, shorter than 32 bytes
---@param make fun(d: integer): any d: the device, from 1
---@return any[]
function share.by_device(pipe, what, make)
  local list = {}
  if not pipe.spread then
    for d = 1, #pipe.devices do list[d] = make(d) end
    return list
  end
  local own = ranks.rank()
  local all = collect(what, function()
    local made = {}
    for d, device in ipairs(pipe.devices) do
      if device.rank == own then made[d] = make(d) end
    end
    return made
  end)
  for d, device in ipairs(pipe.devices) do list[d] = all[device.rank + 1][d] end
  return list
end

--- Let rank 0 do something, and return on all ranks what came of it: true, or nil, message, code.
---@param pipe table
---@param what string
---@param act fun(): any, string?, string?
---@return boolean? good
---@return string? message
---@return string? code
function share.on_first(pipe, what, act)
  if not pipe.spread then return act() end
  local all = collect(what, function()
    if ranks.rank() > 0 then return {} end
    local good, message, code = act()
    return { good = good and true or false, message = message, code = code }
  end)
  if all[1].good then return true end
  return nil, all[1].message, all[1].code
end

return share
