-- lua/gpipe/ranks/post_mortem.lua - the post-mortems of all ranks as one: each device's line from
-- the rank that drives it.
--
-- The runtime writes one text per rank (runtime/engine/watch/report.c): a head, a line for each
-- device, and the first missing message. Ranks that have the watchdog's error gather them; one that
-- does not come is left out.

local core = require "gpipe.core"
local limit = require "gpipe.ranks.limit"
local ranks = require "gpipe.ranks"

local post_mortem = {}

local PATIENCE = 5 -- seconds for the others; they have given up at the same time

-- {head, devices = {[number] = line}, rest = {line, ...}}
local function parse(text)
  local parts = { devices = {}, rest = {} }
  for line in text:gmatch "[^\n]+" do
    local device = line:match "^  device (%d+) "
    if device then
      parts.devices[math.tointeger(tonumber(device))] = line
    elseif not parts.head then
      parts.head = line
    else
      parts.rest[#parts.rest + 1] = line
    end
  end
  return parts
end

local function is_away(line) return line:find(": on another rank", 1, true) ~= nil end

--- Put the texts of the ranks together.
---@param texts string[] by rank from 1; "": it has none
---@return string
function post_mortem.merge(texts)
  local head, devices, rest, most, seen = nil, {}, {}, -1, {}
  for r, text in ipairs(texts) do
    local parts = parse(text)
    head = head or parts.head
    for d, line in pairs(parts.devices) do
      most = math.max(most, d)
      if not devices[d] or is_away(devices[d]) then
        devices[d] = is_away(line) and line or ("  rank %d, %s"):format(r - 1, line:sub(3))
      end
    end
    for _, line in ipairs(parts.rest) do
      if not seen[line] then seen[line], rest[#rest + 1] = true, line end
    end
  end
  local lines = { head }
  for d = 0, most do lines[#lines + 1] = devices[d] end
  table.move(rest, 1, #rest, #lines + 1, lines)
  return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
end

local known = {} -- this rank's last text -> all ranks' together

--- The post-mortems of all ranks, where this rank has `own`. Without the others it is that alone.
---@param own string
---@return string
function post_mortem.gather(own)
  if ranks.ranks() == 1 then return own end
  local _ <close> = limit.within(0)
  local good, texts = pcall(core.rank_gather, "post_mortem", own, PATIENCE)
  local all = good and post_mortem.merge(texts) or own
  known = { [own] = all }
  return all
end

--- What was gathered for a text of this rank, else the text.
---@param own string?
---@return string?
function post_mortem.of(own) return own and known[own] or own end

return post_mortem
