-- lua/gpipe/plan/cluster.lua - `gp.cluster`: the devices of a machine that is not there, host after
-- host.

local capacity = require "gpipe.plan.capacity"
local devices = require "gpipe.plan.devices"
local errors = require "gpipe.errors"
local host = require "gpipe.plan.host"
local measured = require "gpipe.plan.measured"
local options = require "gpipe.options"

local WHO = "gp.cluster"

local MOST = 1 << 16 -- devices

local count = { type = "integer", min = 1, max = MOST, default = 1 }
local rate = { type = "number", above = 0, below = math.huge, required = true }

local SPEC = {
  hosts = { type = "integer", min = 1, max = MOST }, devices = count,
  links = { type = "string" },
  memory = { type = { "number", "string" }, required = true },
  flops = rate, bandwidth = rate,
  efficiency = { type = "number", above = 0, max = 1 },
  link = { type = "table", default = { latency = 5e-6, bandwidth = 100e9 } },
  network = { type = "table" },
  host_link = host.SPEC.host_link, host_memory = host.SPEC.host_memory,
}

local NETWORK = { latency = 20e-6, bandwidth = 12.5e9 }

-- ---- places -------------------------------------------------------------------------------------

-- The places of devices in a job that was measured: {host, rank, links, network}.
local function measured_places(path, given)
  local ways = measured.read(WHO, path)
  if given.hosts or given.network then
    errors.raise("%s: hosts or network beside links, expected links alone (%s has %d ranks)", WHO,
      path, ways.ranks)
  end
  local places = {}
  for r, number in ipairs(ways.hosts) do
    places[r] = { host = number, rank = r - 1, links = ways.square, network = ways.slowest }
  end
  return places
end

-- The places of devices in a cluster that is described.
local function described_places(o)
  local places = {}
  for number = 0, (o.hosts or 1) - 1 do
    places[number + 1] = { host = number, network = o.network or NETWORK }
  end
  return places
end

-- Check now what gp.plan would otherwise refuse as a mistake in a device of the list.
local function check_links(o)
  for _, name in ipairs { "link", "network" } do
    if o[name] then options.check(WHO .. ": " .. name, o[name], devices.link_spec) end
  end
  host.read(WHO, o, {})
end

--- Describe a cluster: `hosts` machines with `devices` devices each, named "sim:host/device" from
--- "sim:0/0" on. The list goes into option `devices` of gp.plan.
---
--- memory: of a device, bytes or "80GiB". flops and bandwidth: its peak rates, in FLOP and bytes
--- per second. efficiency: what part of them layers reach (0.5). link: between devices of a host
--- ({latency = 5e-6, bandwidth = 100e9}), network: between hosts ({latency = 20e-6, bandwidth =
--- 12.5e9}); seconds, and bytes per second. host_link: of a device to its host's memory, and
--- host_memory: what may wait there, as in gp.pipeline. links: a file of `gpipe-lua links --save`,
--- in place of hosts and network: each rank has so many devices, "sim:rank/device", and the ways
--- between them are those that were measured.
--- Errors: a memory that is no size, a rate that is not above zero, a link that is none, more than
--- 65,536 devices.
--- ```lua
--- local list = gp.cluster {hosts = 2, devices = 4, memory = "80GiB", flops = 312e12,
---   bandwidth = 2e12}
--- assert(#list == 8 and list[5][1] == "sim:1/0")
--- ```
---@param opts table
---@return table[]
return function(opts)
  local o = options.check(WHO, opts, SPEC)
  local places = o.links and measured_places(o.links, o) or described_places(o)
  check_links(o)
  options.argument(WHO, "hosts * devices", #places * o.devices, { type = "integer", max = MOST })
  local memory, list = capacity.bytes(WHO, o.memory), {}
  for p, place in ipairs(places) do
    for device = 0, o.devices - 1 do
      list[#list + 1] = {
        ("sim:%d/%d"):format(p - 1, device), memory = memory, flops = o.flops,
        bandwidth = o.bandwidth, efficiency = o.efficiency, link = o.link, network = place.network,
        host = place.host, rank = place.rank, links = place.links, host_link = o.host_link,
        host_memory = o.host_memory,
      }
    end
  end
  return list
end
