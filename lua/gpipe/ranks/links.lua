-- lua/gpipe/ranks/links.lua - how fast every rank reaches every other: measured, as a table for
-- people, and as a file for gp.cluster.
--
-- Messages go the way of a pipeline's values, through memory within a host and over the network
-- elsewhere, one pair of ranks after the other, so that pairs do not disturb each other.

local columns = require "gpipe.draw.columns"
local core = require "gpipe.core"
local json = require "gpipe.io.json"
local ranks = require "gpipe.ranks"
local share = require "gpipe.ranks.share"

local links = {}

local FORMAT = "gpipe-lua links 1"

-- Messages of 8 bytes one by one, for the latency; then bursts, for the bandwidth.
local PINGS = 200
local BURSTS = { { bytes = 1 << 20, burst = 32 }, { bytes = 16 << 20, burst = 4 } }
local ROUNDS = 5

-- Messages one by one, as a pipeline sends its values, for the mean that a plan counts with. There
-- are more of them the more their times differ: lost packets have to be among them. A job of many
-- ranks gives each pair less time, so that all of them take two minutes. A quarter of it goes to
-- more rounds, which say what messages take from threads that compute; without them it is what the
-- process itself works, which tells less.
local SIZES = { 8, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20 }
local MEAN = { rounds = 2000, precision = 0.02, seconds = 2.4, all = 120.0 }
local WORK = { share = 1 / 4, least = 0.1 } -- seconds

---@class gpipe.MeasuredLink
---@field from integer rank
---@field to integer rank
---@field latency number seconds: half of the shortest round trip of 8 bytes
---@field bandwidth number bytes per second: the most of all sizes
---@field rates number[] bytes per second, for messages of 1 MiB and of 16 MiB
---@field times number[][] {bytes, seconds, send, receive}: the mean time of a message, smallest
--- first, and what it takes from computing on the cores of both ends

---@class gpipe.Links
---@field ranks integer
---@field hosts string[] by rank, from 1
---@field links gpipe.MeasuredLink[]
local Links = { __name = "gpipe.Links" }

-- What messages take by their size: at the end that begins mean times and work for each, at the
-- other one work alone. The answer is a message of 8 bytes, of whose work each end has one half.
local function measure_times(from, to)
  local count, times, back, half = ranks.ranks(), {}, 0, 0
  local most = math.min(MEAN.seconds, MEAN.all / (count * (count - 1) * #SIZES))
  local busy = WORK.share * most >= WORK.least and WORK.share * most or 0
  for i, bytes in ipairs(SIZES) do
    local _, _, mean, work = core.link_probe(from, to, bytes, 1, MEAN.rounds, MEAN.precision,
      most - busy, busy)
    if i == 1 then back, half = mean / 2, work / 2 end
    local before = times[i - 1] or { 0, 0, 0 }
    times[i] = { bytes, math.max(mean - back, before[2]), math.max(work - half, before[3]) }
  end
  return times
end

local function measure_pair(from, to)
  local round = core.link_probe(from, to, 8, 1, PINGS)
  local one = { from = from, to = to, latency = round / 2, bandwidth = 0, rates = {} }
  one.times = measure_times(from, to) -- first: bursts change what TCP thinks of the way
  one.latency = math.min(one.latency, one.times[1][2])
  for i, size in ipairs(BURSTS) do
    local seconds = core.link_probe(from, to, size.bytes, size.burst, ROUNDS)
    -- rank `from` knows; the others get it below
    local moving = math.max(seconds - round / 2, 1e-9)
    one.rates[i] = seconds > 0 and size.bytes * size.burst / moving or 0
    one.bandwidth = math.max(one.bandwidth, one.rates[i])
  end
  return one
end

-- The links that the ranks have begun, with the work of the ends that received.
local function put_together(pieces)
  local made, received = {}, {}
  for r, piece in ipairs(pieces) do
    table.move(piece.begun, 1, #piece.begun, #made + 1, made)
    for _, one in ipairs(piece.ended) do received[one.from * #pieces + r] = one.times end
  end
  for _, one in ipairs(made) do
    for i, time in ipairs(one.times) do
      time[4] = received[one.from * #pieces + one.to + 1][i][3]
    end
  end
  return made
end

--- Measure every pair of ranks in both directions. Every rank has to call, and gets the same.
---@return gpipe.Links
function links.measure()
  local piece, count = { host = ranks.host(), begun = {}, ended = {} }, ranks.ranks()
  for from = 0, count - 1 do
    for to = 0, count - 1 do
      if from ~= to then
        local one = measure_pair(from, to)
        if from == ranks.rank() then piece.begun[#piece.begun + 1] = one end
        if to == ranks.rank() then piece.ended[#piece.ended + 1] = one end
      end
    end
  end
  local pieces, hosts = share.by_rank("links", function() return piece end), {}
  for r, one in ipairs(pieces) do hosts[r] = one.host end
  return setmetatable({ format = FORMAT, ranks = count, hosts = hosts,
    links = put_together(pieces) }, Links)
end

-- ---- text ---------------------------------------------------------------------------------------

local function rate_text(rate)
  return rate >= 1e9 and ("%.2f GB/s"):format(rate / 1e9) or ("%.1f MB/s"):format(rate / 1e6)
end

local function time_text(seconds)
  return seconds < 1e-3 and ("%.0f us"):format(1e6 * seconds) or ("%.2f ms"):format(1e3 * seconds)
end

--- The table: a line for each pair and direction.
function Links:__tostring()
  local rows = { { "from", "to", "latency", "1 MiB", "16 MiB", "mean of 64 KiB", "of 1 MiB",
    "hosts" } }
  for _, one in ipairs(self.links) do
    local a, b = self.hosts[one.from + 1], self.hosts[one.to + 1]
    rows[#rows + 1] = {
      ("rank %d"):format(one.from), ("rank %d"):format(one.to),
      ("%.1f us"):format(1e6 * one.latency), rate_text(one.rates[1]), rate_text(one.rates[2]),
      time_text(one.times[3][2]), time_text(one.times[5][2]),
      a == b and a or a .. " -> " .. b,
    }
  end
  return columns.text(rows)
end

-- ---- files --------------------------------------------------------------------------------------

--- Write what was measured. Errors: nil, message, code.
---@param measured gpipe.Links
---@param path string
---@return boolean? true
---@return string? message
---@return string? code
function links.save(measured, path)
  return core.file_write(path, core.plain_numbers(function()
    return json.encode {
      format = FORMAT, ranks = measured.ranks, hosts = measured.hosts, links = measured.links,
    } .. "\n"
  end))
end

local function is_rank(value, count)
  return math.type(value) == "integer" and value >= 0 and value < count
end

local function is_time(value)
  return type(value) == "number" and value >= 0 and value < math.huge
end

-- Files of earlier versions have no times, or no work.
local function are_times(times)
  if times == nil then return true end
  local good = type(times) == "table" and #times >= 2
  for i = 1, good and #times or 0 do
    local bytes, seconds, send, receive = table.unpack(type(times[i]) == "table" and times[i] or {})
    good = good and math.type(bytes) == "integer" and bytes > (i > 1 and times[i - 1][1] or 0)
      and is_time(seconds) and is_time(send or 0) and is_time(receive or 0)
  end
  return good
end

local function is_link(one, count)
  return type(one) == "table" and is_rank(one.from, count) and is_rank(one.to, count)
    and is_time(one.latency)
    and type(one.bandwidth) == "number" and one.bandwidth > 0 and one.bandwidth < math.huge
    and are_times(one.times)
end

-- What is wrong with the contents of a file, or nil.
local function fault_of(read)
  if type(read) ~= "table" or read.format ~= FORMAT then
    return ("it is no file of 'gpipe-lua links', expected format '%s'"):format(FORMAT)
  end
  local count = math.type(read.ranks) == "integer" and read.ranks or 0
  local whole = count > 0 and type(read.hosts) == "table" and #read.hosts == count
    and type(read.links) == "table" and #read.links == count * (count - 1)
  for i = 1, whole and #read.links or 0 do whole = whole and is_link(read.links[i], count) end
  return not whole and "its ranks, hosts and links do not fit together" or nil
end

--- Read a file that `save` has written. Errors: nil and the reason.
---@param path string
---@return gpipe.Links?
---@return string? message
function links.read(path)
  local read, message = json.read(path)
  if read == nil then return nil, message end
  local fault = fault_of(read)
  if fault then return nil, ("%s: %s"):format(path, fault) end
  return setmetatable(read, Links)
end

return links
