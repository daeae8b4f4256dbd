-- lua/gpipe/plan/host.lua - how a device reaches the host's memory, as scripts describe it: how
-- fast copies are, and how many bytes there values may wait in.
--
-- Without a rate "auto" sends nothing there; without a cap any number of bytes may wait.

local capacity = require "gpipe.plan.capacity"
local options = require "gpipe.options"
local sizes = require "gpipe.sizes"

local host = {}

--- The fields of a device that say it, for a checker of options.
host.SPEC = {
  host_link = { type = "table" },
  host_memory = { type = { "number", "string" } },
}

local LINK = {
  bandwidth = { type = "number", above = 0, below = math.huge, required = true },
  latency = { type = "number", min = 0, below = math.huge, default = 0 },
}

--- Check a way to the host's memory; nil stays nil.
---@param who string
---@param given table?
---@return {bandwidth: number, latency: number}?
function host.link(who, given)
  return given and options.check(who .. ": host_link", given, LINK)
end

--- Give a device a way that was measured, unless its description says one.
---@param device gpipe.PlanDevice
---@param link {bandwidth: number, latency: number}?
function host.measured(device, link)
  if not link or device.host_link then return end
  device.host_link, device.host_bandwidth, device.host_latency = link, link.bandwidth, link.latency
end

--- Read these fields of a checked description into plain numbers: host_bandwidth (bytes per second,
--- each way), host_latency (seconds of a copy), host_memory (bytes).
--- Errors: a rate that is no rate, a memory that is no size.
---@param who string
---@param given table
---@param to table receives the fields
function host.read(who, given, to)
  local link = host.link(who, given.host_link)
  if link then
    to.host_bandwidth, to.host_latency = link.bandwidth, link.latency
  end
  to.host_memory = given.host_memory and capacity.bytes(who .. ": host_memory", given.host_memory)
end

--- What to say where more would wait in the host's memory than a device may have there.
---@param who string
---@param device {name: string, host_memory: integer}
---@param bytes integer
---@return string
function host.short(who, device, bytes)
  return ("%s: device %s may have %s in the host's memory (option 'host_memory'), and what waits "
    .. "there of this plan needs %s: expected fewer layers to be offloaded, fewer micro-batches in "
    .. "flight, or more of that memory"):format(who, device.name, sizes.text(device.host_memory),
    sizes.text(bytes))
end

return host
