-- lua/gpipe/plan/measured.lua - the ways between the ranks of a job, from a file that
-- `gpipe-lua links` has measured, or measured just now, as plans take them.

local dry_mode = require "gpipe.dry_mode"
local errors = require "gpipe.errors"
local way = require "gpipe.plan.way"

local measured = {}

---@class gpipe.MeasuredWays
---@field ranks integer
---@field hosts integer[] the number of each rank's host, from 0
---@field square gpipe.PlanWay[][] from and to a rank, from 1
---@field slowest {latency: number, bandwidth: number} which stands for the network

-- The number of each rank's host, from 0.
local function number_hosts(names)
  local numbers, known, hosts = {}, {}, 0
  for r, name in ipairs(names) do
    if not known[name] then known[name], hosts = hosts, hosts + 1 end
    numbers[r] = known[name]
  end
  return numbers
end

-- What was measured, as plans take it.
local function ways_of(file)
  local square, slowest = {}, { latency = 0, bandwidth = math.huge }
  for r = 1, file.ranks do square[r] = {} end
  for _, one in ipairs(file.links) do
    square[one.from + 1][one.to + 1] = way.new(one.latency, one.bandwidth, one.times)
    slowest.latency = math.max(slowest.latency, one.latency)
    slowest.bandwidth = math.min(slowest.bandwidth, one.bandwidth)
  end
  return { ranks = file.ranks, hosts = number_hosts(file.hosts), square = square,
    slowest = slowest }
end

--- Read a file of `gpipe-lua links --save`. Errors: a file that is not there, or no such file.
---@param who string
---@param path string
---@return gpipe.MeasuredWays
function measured.read(who, path)
  local file, why = require("gpipe.ranks.links").read(path)
  if not file then errors.raise("%s: links: %s", who, why) end
  return ways_of(file)
end

-- Measure the job that runs this script, whose every rank is here.
local function measure(who)
  if dry_mode.job() then
    errors.raise('%s: links = "measure" sends messages, and a dry run has no ranks, expected a '
      .. "file of 'gpipe-lua links --save'", who)
  end
  return ways_of(require("gpipe.ranks.links").measure())
end

--- Give devices of ranks the ways between them. Errors: a device without a rank, or with one that
--- was not measured.
---@param who string
---@param list gpipe.PlanDevice[]
---@param path string a file, or "measure"
function measured.join(who, list, path)
  for _, d in ipairs(list) do
    if not d.rank then
      errors.raise('%s: links: device "%s" has no rank, expected devices of a job of ranks, such '
        .. 'as "0/cpu:0"', who, d.name)
    end
  end
  local ways = path == "measure" and measure(who) or measured.read(who, path)
  for _, d in ipairs(list) do
    if d.rank >= ways.ranks then
      errors.raise('%s: links: device "%s" is of rank %d, but %s has ranks 0 to %d', who,
        d.name, d.rank, path, ways.ranks - 1)
    end
    d.links = ways.square
  end
end

return measured
