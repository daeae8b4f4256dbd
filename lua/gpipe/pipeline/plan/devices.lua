-- lua/gpipe/pipeline/plan/devices.lua - the devices of a pipeline: names, threads, defaults.
--
-- A device is a name, or {name, threads = n, memory = "8GiB", host_link = {bandwidth = 25e9}}. CPU
-- devices share the cores evenly by default. A name given twice makes two devices. A number asks
-- for that many of the available devices.

local capacity = require "gpipe.plan.capacity"
local core = require "gpipe.core"
local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local host = require "gpipe.plan.host"
local machine = require "gpipe.machine"
local options = require "gpipe.options"
local far = require "gpipe.ranks.devices"
local gpus = require "gpipe.ranks.gpus"
local ranks = require "gpipe.ranks"

local devices = {}

local WHO = "gp.pipeline"

local MOST_THREADS = 64 -- of a device, see gpipe/device.h

-- "cpu:0" or "1/cpu:0", the device of another process. Over several ranks a GPU is looked for when
-- its rank is known.
local function check_name(who, name)
  local rank
  rank, name = far.split(name)
  if type(name) ~= "string" then
    errors.raise("%s: a device is %s, expected a name such as \"cpu:0\"", who, errors.show(name))
  end
  local device, why = core.device(name)
  if device and ranks.ranks() == 1 then
    local good
    good, why = core.device_check(name)
    device = good and device
  end
  if not device then errors.raise("%s: device '%s' cannot be used: %s", who, name, why) end
  device.rank = rank
  return device
end

-- "cpu:0" or {"cpu:0", threads = 2, memory = "8GiB"} -> {name, kind, memory, threads, cap}; the
-- last two may be nil. memory: which one it works in; cap: how much of it it may take. In
-- addition come the fields of host.read.
local function parse(who, entry)
  if type(entry) ~= "table" then return check_name(who, entry) end
  local o = options.check(who .. ": a device", entry, {
    [1] = { type = "string", required = true },
    threads = { type = "integer", min = 1, max = MOST_THREADS },
    memory = { type = { "number", "string" } },
    host_link = host.SPEC.host_link, host_memory = host.SPEC.host_memory,
  })
  local device = check_name(who, o[1])
  device.threads = o.threads
  device.cap = o.memory and capacity.bytes(who .. ": device " .. o[1], o.memory)
  host.read(who .. ": device " .. o[1], o, device)
  return device
end

local function is_gpu(device) return device.kind == "cuda" end

-- Give devices without a number of threads an even share of their machine's cores, at least one. A
-- GPU is driven by one thread, which waits most of the time.
local function share_cores(list, cores)
  local open = 0
  for _, d in ipairs(list) do
    if is_gpu(d) then d.threads = 1 end
  end
  for _, d in ipairs(list) do
    if not d.threads then open = open + 1 elseif not is_gpu(d) then cores = cores - d.threads end
  end
  local given = 0
  for _, d in ipairs(list) do
    if not d.threads then
      local extra = given < cores % open and 1 or 0
      d.threads = math.max(1, math.min(MOST_THREADS, cores // open + extra))
      given = given + 1
    end
  end
end

-- The GPUs of this process; over several ranks those of each rank, and a CPU device for a rank
-- without. Empty if there is none. Over several ranks every rank has to make the call.
local function all_gpus()
  if ranks.ranks() == 1 then return machine.gpus() end
  return gpus.deal(gpus.by_rank()) or {}
end

--- The number of devices that a pipeline has if nothing says how many.
---@return integer
function devices.most()
  local count = #all_gpus()
  return count > 0 and count or ranks.ranks()
end

--- List this many devices: those of the command line, else the GPUs. If there are too few,
--- neighbouring stages share one. If there are none, the list has CPU devices. GPUs of several
--- ranks are taken evenly from all of them.
---@param wanted integer
---@return (string|table)[]
function devices.spread(wanted)
  local named = machine.configured()
  local all, list = named and #named > 0 and named or all_gpus(), {}
  local count = ranks.ranks() > 1 and not named and #all or math.min(#all, wanted)
  for i = 1, wanted do list[i] = all[(i - 1) * count // wanted + 1] or "cpu:" .. i - 1 end
  return list
end

--- The devices of a pipeline that needs this many (nil: not known yet).
---@param given? table option `devices`, or the devices of the command line
---@param wanted? integer
---@param who? string for errors; gp.pipeline
---@return {name: string, kind: string, memory: string, threads: integer}[]
function devices.resolve(given, wanted, who)
  who = who or WHO
  local list = {}
  if given then
    if #given == 0 then errors.raise("%s: devices is empty, expected at least one", who) end
    for i, entry in ipairs(given) do list[i] = parse(who, entry) end
    if wanted and #list < wanted then
      errors.raise("%s: %s where the schedule wants %d: add devices or shorten balance (a device "
        .. "may be named twice)", who, counted(#list, "device"), wanted)
    end
    for i = #list, (wanted or #list) + 1, -1 do list[i] = nil end
  else
    for i, entry in ipairs(devices.spread(wanted or 1)) do list[i] = parse(who, entry) end
  end
  far.assign(list)
  for _, group in ipairs(far.by_machine(list)) do share_cores(group.devices, group.cores) end
  return list
end

return devices
