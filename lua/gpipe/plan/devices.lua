-- lua/gpipe/plan/devices.lua - the devices that a plan is made for: those of this machine, and
-- `sim:` devices, which are described instead of being there.
--
-- A device that says how fast it computes (flops, bandwidth) is modelled; one that does not is
-- measured, so it has to exist.

local capacity = require "gpipe.plan.capacity"
local core = require "gpipe.core"
local dry_mode = require "gpipe.dry_mode"
local errors = require "gpipe.errors"
local far = require "gpipe.ranks.devices"
local host = require "gpipe.plan.host"
local machine = require "gpipe.machine"
local options = require "gpipe.options"
local ranks = require "gpipe.ranks"
local real = require "gpipe.pipeline.plan.devices"
local share = require "gpipe.ranks.share"

local devices = {}

local rate = { type = "number", above = 0, below = math.huge }
local time = { type = "number", min = 0, below = math.huge, default = 0 }
local fraction = { type = "number", above = 0, max = 1 }

--- The rule of a link: seconds of latency, bytes per second.
devices.link_spec = { latency = time, bandwidth = { type = "number", above = 0,
  default = math.huge } }

local SPEC = {
  [1] = { type = "string", required = true },
  memory = { type = { "number", "string" } },
  flops = rate, bandwidth = rate, efficiency = fraction,
  link = { type = "table" }, network = { type = "table" },
  host = { type = "integer", min = 0, default = 0 },
  rank = { type = "integer", min = 0 }, links = { type = "table" },
  threads = { type = "integer", min = 1 },
  host_link = host.SPEC.host_link, host_memory = host.SPEC.host_memory,
}

-- Rates of devices that say only one of the two, or of `sim:` devices that say none: those of
-- pipe:costs{from = "model"}.
local FLOPS, BANDWIDTH = 1e11, 1e10

--- What people see of a peak rate in a whole layer, unless the device says otherwise.
devices.EFFICIENCY = 0.5

---@class gpipe.PlanDevice
---@field name string
---@field sim boolean described, not there
---@field own boolean it has its own memory
---@field memory integer bytes
---@field flops? number per second; nil: measured
---@field bandwidth? number bytes per second
---@field efficiency number
---@field link? {latency: number, bandwidth: number} to devices of the same host
---@field network? {latency: number, bandwidth: number} to other hosts
---@field host integer
---@field cores? integer of a real device's machine
---@field rank? integer of `gpipe-lua links`
---@field links? gpipe.PlanWay[][] measured: from and to a rank, from 1
---@field threads? integer
---@field host_bandwidth? number bytes per second to the host's memory, and back
---@field host_latency? number seconds
---@field host_memory? integer bytes that may wait there

-- ---- one device ---------------------------------------------------------------------------------

local function is_sim(name) return name:find "^sim:" ~= nil end

-- What a real device has, unless its description says it: a GPU what it has free, CPU devices the
-- machine's memory together.
local function memory_of(name, kind)
  if kind == "cuda" then
    local gpu = (core.gpus(true) or {})[(math.tointeger(name:match "%d+") or 0) + 1]
    return gpu and (gpu.free or gpu.memory)
  end
  return core.machine().memory
end

local function link_of(who, given)
  return given and options.check(who, given, devices.link_spec)
end

-- Check a description; real ones become {name, kind, threads} later.
local function describe(who, entry)
  if type(entry) == "string" then entry = { entry } end
  if type(entry) ~= "table" then
    errors.raise('%s is %s, expected a name such as "cpu:0", or {"sim:0", memory = "8GiB"}', who,
      errors.show(entry))
  end
  local d = options.check(who, entry, SPEC)
  d.name, d.sim = d[1], is_sim(d[1])
  d.memory = d.memory and capacity.bytes(who, d.memory)
  host.read(who, d, d)
  d.link, d.network = link_of(who .. ": link", d.link), link_of(who .. ": network", d.network)
  d.efficiency = d.efficiency or devices.EFFICIENCY
  if d.sim or d.flops or d.bandwidth then
    d.flops, d.bandwidth = d.flops or FLOPS, d.bandwidth or BANDWIDTH
  end
  if d.sim and not d.memory then
    errors.raise('%s: device "%s" has no memory, expected memory = "8GiB" or such (it is not there '
      .. "to be asked)", who, errors.name(d.name))
  end
  return d
end

-- ---- all of them --------------------------------------------------------------------------------

-- Let the real devices share the cores as in a pipeline: their names (with a rank, if there are
-- several), kinds, threads, hosts and the cores of these.
local function resolve(who, list)
  local named, at = {}, {}
  for i, d in ipairs(list) do
    if not d.sim then
      named[#named + 1], at[#at + 1] = d.threads and { d.name, threads = d.threads } or d.name, i
    end
  end
  if #named == 0 then return end
  local made, of = real.resolve(named, nil, who), {}
  for k, one in ipairs(made) do
    local d = list[at[k]]
    d.name, d.device, d.rank = one.name, one.device, one.rank
    d.kind, d.threads, of[one] = one.kind, one.threads, d
  end
  for number, group in ipairs(far.by_machine(made)) do
    for _, one in ipairs(group.devices) do
      local d = of[one]
      d.cores = group.cores
      if ranks.ranks() > 1 then d.host = number - 1 end
    end
  end
end

-- What the real devices have, by the rank that sees them.
local function ask_memory(list)
  local real_ones = {}
  for i, d in ipairs(list) do
    if not (d.sim or d.memory) then real_ones[#real_ones + 1] = i end
  end
  if #real_ones == 0 then return end
  local told = share.by_rank("memory of devices", function()
    local own, asked = {}, {} -- files of the system say it: each device is asked once
    for _, i in ipairs(real_ones) do
      local d = list[i]
      if dry_mode.job() or d.rank == ranks.rank() then
        local name = d.kind == "cuda" and d.device or d.kind
        asked[name] = asked[name] or memory_of(d.device, d.kind)
        own[i] = asked[name]
      end
    end
    return own
  end)
  for _, i in ipairs(real_ones) do list[i].memory = told[list[i].rank + 1][i] end
end

-- Ask each real device what memory it has; CPU devices of a host share its memory.
local function settle(who, list)
  local sharing = {}
  resolve(who, list)
  for _, d in ipairs(list) do d.given_memory = d.memory end
  ask_memory(list)
  for _, d in ipairs(list) do
    d.own = d.sim or d.kind == "cuda"
    if not d.own and not d.given_memory then sharing[d.host] = (sharing[d.host] or 0) + 1 end
  end
  for _, d in ipairs(list) do
    if not d.own and not d.given_memory then d.memory = d.memory // sharing[d.host] end
  end
  return list
end

-- The option as a list of descriptions; without it the GPUs, else a CPU device for each core.
local function list_of(given)
  if given == nil then given = machine.configured() end
  if given == nil then
    local gpus = machine.gpus()
    given = #gpus > 0 and gpus or core.machine().cores
  end
  return type(given) == "number" and real.spread(given) or given
end

--- Read the option `devices`: a number of devices of this machine, or a list of names and
--- descriptions.
--- Errors: a device that is not there; a memory or a rate that is no number; no device.
---@param who string
---@param given any
---@return gpipe.PlanDevice[]
function devices.read(who, given)
  local list, described = list_of(given), {}
  for i, entry in ipairs(list) do
    described[i] = describe(("%s: devices[%d]"):format(who, i), entry)
  end
  if #described == 0 then
    errors.raise('%s: devices is empty, expected at least one, such as "cpu:0"', who)
  end
  return settle(who, described)
end

--- The device with rates of its own: those that it has, else rates of the cost model for each of
--- its threads. A plan for it measures nothing.
---@param d gpipe.PlanDevice
---@return table description, as option `devices` takes it
function devices.modelled(d)
  local threads = d.kind == "cpu" and d.threads or 1
  return {
    d.name, memory = d.memory, flops = d.flops or FLOPS * threads, host = d.host,
    bandwidth = d.bandwidth or BANDWIDTH, efficiency = d.flops and d.efficiency or 1,
    link = d.link, network = d.network, threads = d.threads, rank = d.rank, links = d.links,
    host_link = d.host_link, host_memory = d.host_memory,
  }
end

--- The devices of an option, all of them with rates.
function devices.all_modelled(who, given)
  local list = {}
  for d, one in ipairs(devices.read(who, given)) do list[d] = devices.modelled(one) end
  return list
end

--- A key that is equal for devices of the same sort; real ones of two hosts may be of one sort, and
--- still not be as fast.
---@param d gpipe.PlanDevice
---@return string
function devices.sort(d)
  if d.flops then
    return ("model %.17g %.17g %.17g %s"):format(d.flops, d.bandwidth, d.efficiency, d.own)
  end
  return ("%s %d"):format(d.kind == "cpu" and "cpu" or d.device or d.name, d.threads or 1)
end

--- A key that is equal for devices on which layers take the same time.
---@param d gpipe.PlanDevice
---@return string
function devices.class(d)
  return d.flops and devices.sort(d) or ("%s %d"):format(devices.sort(d), d.host)
end

--- The latency and bandwidth between two devices.
---@param a gpipe.PlanDevice
---@param b gpipe.PlanDevice
---@param all? {latency: number, bandwidth: number} the same for every two devices
---@return number latency
---@return number bandwidth
---@return number[][]? times {bytes, seconds} of messages, where they were measured
function devices.between(a, b, all)
  if a == b then return 0, math.huge end
  if all then return all.latency, all.bandwidth end
  if a.links and b.rank and a.rank ~= b.rank then
    local way = a.links[a.rank + 1][b.rank + 1]
    return way.latency, way.bandwidth, way.times
  end
  local which = a.host == b.host and "link" or "network"
  local first, second = a[which] or a.link, b[which] or b.link
  local latency = math.max(first and first.latency or 0, second and second.latency or 0)
  return latency, math.min(first and first.bandwidth or math.huge,
    second and second.bandwidth or math.huge)
end

return devices
