-- lua/gpipe/ranks/devices.lua - which rank drives which device of a pipeline.
--
-- "1/cpu:0" is the device cpu:0 of rank 1. Devices without a rank are dealt in order: the first
-- ones to rank 0, the next ones to rank 1, as evenly as possible.

local errors = require "gpipe.errors"
local gpus = require "gpipe.ranks.gpus"
local ranks = require "gpipe.ranks"

local devices = {}

local WHO = "gp.pipeline"

--- Split "1/cpu:0" into the rank and the device's name. A name without a rank has none: the slash
--- in "cuda:0/1of4" belongs to the device.
---@param name any
---@return integer? rank
---@return any name
function devices.split(name)
  if type(name) ~= "string" then return nil, name end
  local rank, rest = name:match "^(%d+)/(.+)$"
  if not rank then return nil, name end
  return math.tointeger(tonumber(rank)), rest
end

--- The rank of the i-th of n devices that name none.
---@param i integer from 1
---@param n integer
---@return integer
function devices.deal(i, n)
  local count = math.min(ranks.ranks(), n)
  return (i - 1) * count // n
end

local function check_rank(device)
  if device.rank >= ranks.ranks() then
    errors.raise("%s: device '%d/%s' is of rank %d, expected a rank below %d: gpipe-lua --ranks %d",
      WHO, device.rank, device.name, device.rank, ranks.ranks(), device.rank + 1)
  end
end

--- The devices of each machine, and the cores that they share there.
---@param list table[] with ranks
---@return {cores: integer, devices: table[]}[]
function devices.by_machine(list)
  local groups, of = {}, {}
  local hosts = ranks.hosts()
  for _, device in ipairs(list) do
    local host = hosts[device.rank + 1]
    local group = of[host.machine]
    if not group then
      group = { cores = host.cores, devices = {} }
      of[host.machine], groups[#groups + 1] = group, group
    end
    table.insert(group.devices, device)
  end
  return groups
end

--- Give each device its rank, and the name that people see. Over several ranks every rank has to
--- make the call.
---@param list table[] {name, rank?}
---@return table[] list
function devices.assign(list)
  local named = 0
  for _, device in ipairs(list) do
    if device.rank then named = named + 1 end
  end
  if named > 0 and named < #list then
    errors.raise("%s: %d of %d devices name a rank, expected all or none (\"1/cpu:0\")", WHO, named,
      #list)
  end
  for i, device in ipairs(list) do
    device.rank = device.rank or devices.deal(i, #list)
    check_rank(device)
    device.device = device.name
    if ranks.ranks() > 1 then device.name = ("%d/%s"):format(device.rank, device.name) end
  end
  if ranks.ranks() > 1 then gpus.settle(WHO, list) end
  return list
end

return devices
