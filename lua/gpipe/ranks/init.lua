-- lua/gpipe/ranks/init.lua - `gp.rank`, `gp.ranks` and what all ranks of a job do together.
--
-- A job is N processes that run the same script: `gpipe-lua --ranks N script.lua`. Without one
-- there is one rank, 0, and every function here does what it says for that one.

local call = require "gpipe.ranks.call"
local core = require "gpipe.core"
local dry_mode = require "gpipe.dry_mode"
local encode = require "gpipe.ranks.encode"
local errors = require "gpipe.errors"
local limit = require "gpipe.ranks.limit"
local options = require "gpipe.options"

local ranks = {}

local info -- of this process, read once
local imagined -- of the job that a dry run stands for; this process is its rank 0
local alone -- {rank, count, ...} while this rank works by itself

local function own()
  info = info or core.rank_info()
  if alone then return alone end
  local per_host, hosts = dry_mode.job()
  if not per_host then return info end
  imagined = imagined
    or { rank = 0, count = per_host * hosts, one_host = hosts == 1, host = info.host }
  return imagined
end

-- What every rank of an imagined job says: the same as this one.
local function copies(text)
  local texts = {}
  for r = 1, own().count do texts[r] = text end
  return texts
end

--- The number of this process in its job, from 0.
--- ```lua
--- if gp.rank() == 0 then print "only once" end
--- ```
---@return integer
function ranks.rank() return own().rank end

--- How many processes the job has; 1 without a job.
--- ```lua
--- assert(gp.rank() < gp.ranks())
--- ```
---@return integer
function ranks.ranks() return own().count end

--- The name of this machine.
--- ```lua
--- assert(type(gp.host()) == "string")
--- ```
---@return string
function ranks.host() return own().host end

local connected = false

-- Say once what was refused while the ranks connected.
local function report()
  connected = true
  local remark = core.rank_remark()
  if remark ~= "" then io.stderr:write("gpipe: " .. remark .. "\n") end
end

--- Collect texts by rank, from 1. Every rank has to make the same call.
---@param what string the name of the call, shorter than 32 bytes
---@param text string
---@param to? boolean[] by rank from 1: which of them get this one's text; the others get ""
---@return string[]
function ranks.gather(what, text, to)
  if own().count == 1 or dry_mode.job() then return copies(text) end
  limit.begin()
  local _ <close> = call.enter(what)
  local texts = to and core.rank_hand(what, text, to) or core.rank_gather(what, text)
  if not connected then report() end
  return texts
end

--- Collect values by rank, from 1. Every rank has to make the same call.
---@param what string the name of the call, shorter than 32 bytes
---@param value any a tensor, or a plain value
---@return any[]
function ranks.collect(what, value)
  local values = {}
  for r, text in ipairs(ranks.gather(what, encode.write(what, value))) do
    values[r] = encode.read(text)
  end
  return values
end

local hosts -- of all ranks, asked once

--- Names this machine: two of a cluster may have the same host name.
---@return string
function ranks.machine()
  local file <close> = io.open "/proc/sys/kernel/random/boot_id"
  return ranks.host() .. "/" .. (file and file:read "l" or "")
end

-- The hosts of an imagined job are like this one.
local function imagined_hosts()
  local list, per_host = {}, dry_mode.job()
  local cores = core.machine().cores -- read from files of the system
  for r = 1, own().count do
    list[r] = { machine = tostring((r - 1) // per_host), cores = cores }
  end
  return list
end

--- On which machine each rank is, and how many cores it may use there. Where the launcher does not
--- say that all are on one, every rank has to make the first call.
---@return {machine: string, cores: integer}[] by rank, from 1
function ranks.hosts()
  if alone then return { { machine = "", cores = core.machine().cores } } end
  if dry_mode.job() then return imagined_hosts() end
  if hosts then return hosts end
  hosts = {}
  local cores, texts = core.machine().cores, nil
  if not own().one_host then
    texts = ranks.gather("hosts", ("i8"):pack(cores) .. ranks.machine())
  end
  for r = 1, own().count do
    local text = texts and texts[r]
    hosts[r] = { machine = text and text:sub(9) or "",
      cores = text and ("i8"):unpack(text) or cores }
  end
  return hosts
end

--- Let this rank do something by itself: what it makes, such as a pipeline, is none of the job's.
---@param work fun(): ...
---@return any ... what it returns
function ranks.alone(work)
  local before = alone
  alone = { rank = 0, count = 1, one_host = true, host = own().host }
  local _ <close> = setmetatable({}, { __close = function() alone = before end })
  return work()
end

--- Wait until every rank has come here.
---
--- Errors: a rank that has ended, is gone, is in another call, or does not come in time.
--- ```lua
--- if gp.rank() == 0 then prepared = "what only one rank has to do" end
--- gp.barrier(3600)
--- ```
---@param seconds? number|boolean how long the script of a rank may stay away; false: for ever; by
--- default as long as the watchdog waits: option `watchdog` of the last pipeline that has one, else
--- GPIPE_WATCHDOG, else 300
function ranks.barrier(seconds)
  options.argument("gp.barrier", "seconds", seconds, limit.rule)
  local own_limit = seconds ~= nil and limit.seconds("gp.barrier", seconds)
  local _ <close> = own_limit and limit.within(own_limit) or nil
  ranks.gather("gp.barrier", "")
end

--- Collect a value from every rank: a tensor, or a plain value.
---
--- Every rank has to make the call, in the same order as other such calls.
--- Errors: values that cannot be sent, such as functions; a rank that has ended or is gone.
--- ```lua
--- local hosts = gp.all_gather(gp.host())
--- assert(#hosts == gp.ranks())
--- ```
---@param value any
---@return any[] values element r + 1 is that of rank r
function ranks.all_gather(value) return ranks.collect("gp.all_gather", value) end

--- Return the value that one rank has given; what the others give is not looked at.
--- ```lua
--- local seed = gp.broadcast(gp.rank() == 0 and 7 or nil, 0)
--- assert(seed == 7)
--- ```
---@param value any
---@param from integer a rank
---@return any
function ranks.broadcast(value, from)
  options.argument("gp.broadcast", "from", from,
    { type = "integer", required = true, min = 0, max = own().count - 1 })
  local gives = own().rank == from or dry_mode.job()
  local given = gives and encode.write("gp.broadcast", value) or ""
  local texts = ranks.gather("gp.broadcast", ("%d %s"):format(from, given))
  local first = tonumber(texts[1]:match "^%d+")
  for r, text in ipairs(texts) do
    local other = tonumber(text:match "^%d+")
    if other ~= first then
      errors.raise("gp.broadcast: rank 0 wants the value of rank %d, rank %d that of rank %d, "
        .. "expected the same on all ranks", first, r - 1, other)
    end
  end
  return encode.read(texts[from + 1]:sub(#tostring(from) + 2))
end

--- The same for a call of our own, under its name.
---@param what string the name of the call, shorter than 32 bytes
---@param value any
---@param from integer a rank
---@return any
function ranks.tell(what, value, from)
  local gives = own().rank == from or dry_mode.job()
  local text = gives and encode.write(what, value) or ""
  return encode.read(ranks.gather(what, text)[from + 1])
end

-- The first line in which two texts differ, of each; a text that has ended gives "nothing".
local function first_difference(a, b)
  local lines, at = {}, 0
  for line in (b .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  for line in (a .. "\n"):gmatch "(.-)\n" do
    at = at + 1
    if line ~= lines[at] then return line, lines[at] or "nothing" end
  end
  return "nothing", lines[at + 1] or "nothing"
end

--- Raise on all ranks if they do not say the same.
---@param who string
---@param text string lines "what: value"
function ranks.agree(who, text)
  local texts = ranks.gather(who, text)
  for r = 2, #texts do
    if texts[r] ~= texts[1] then
      local a, b = first_difference(texts[1], texts[r])
      errors.raise("%s: the ranks differ: rank 0 has %s, rank %d has %s: expected the same script "
        .. "with the same arguments on all ranks", who, a, r - 1, b)
    end
  end
end

return ranks
