-- lua/gpipe/plan/cluster.lua - `gp.cluster`: the devices of a machine that is not there, host after
-- host.

local capacity = require "gpipe.plan.capacity"
local options = require "gpipe.options"

local WHO = "gp.cluster"

local MOST = 1 << 16 -- devices

local count = { type = "integer", min = 1, max = MOST, default = 1 }
local rate = { type = "number", above = 0, below = math.huge, required = true }

local SPEC = {
  hosts = count, devices = count,
  memory = { type = { "number", "string" }, required = true },
  flops = rate, bandwidth = rate,
  efficiency = { type = "number", above = 0, max = 1 },
  link = { type = "table", default = { latency = 5e-6, bandwidth = 100e9 } },
  network = { type = "table", default = { latency = 20e-6, bandwidth = 12.5e9 } },
}

--- Describe a cluster: `hosts` machines with `devices` devices each, named "sim:host/device" from
--- "sim:0/0" on. The list goes into option `devices` of gp.plan.
---
--- memory: of a device, bytes or "80GiB". flops and bandwidth: its peak rates, in FLOP and bytes
--- per second. efficiency: what part of them layers reach (0.5). link: between devices of a host
--- ({latency = 5e-6, bandwidth = 100e9}), network: between hosts ({latency = 20e-6, bandwidth =
--- 12.5e9}); seconds, and bytes per second.
--- Errors: a memory that is no size, a rate that is not above zero, more than 65,536 devices.
--- ```lua
--- local list = gp.cluster {hosts = 2, devices = 4, memory = "80GiB", flops = 312e12,
---   bandwidth = 2e12}
--- assert(#list == 8 and list[5][1] == "sim:1/0")
--- ```
---@param opts table
---@return table[]
return function(opts)
  local o = options.check(WHO, opts, SPEC)
  options.argument(WHO, "hosts * devices", o.hosts * o.devices, { type = "integer", max = MOST })
  local memory, list = capacity.bytes(WHO, o.memory), {}
  for host = 0, o.hosts - 1 do
    for device = 0, o.devices - 1 do
      list[#list + 1] = {
        ("sim:%d/%d"):format(host, device), memory = memory, flops = o.flops,
        bandwidth = o.bandwidth, efficiency = o.efficiency, link = o.link, network = o.network,
        host = host,
      }
    end
  end
  return list
end
