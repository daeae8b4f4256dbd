-- lua/gpipe/plan/text.lua - a plan as text: the best one, what bounds it, a line for each of the
-- next ones, and why the others fell.

local columns = require "gpipe.draw.columns"
local cores = require "gpipe.plan.cores"
local counted = require "gpipe.counted"
local devices = require "gpipe.plan.devices"
local sizes = require "gpipe.sizes"

local text = { SHOWN = 8 } -- rows, and reasons

local SHOWN = text.SHOWN
local MOST_LIST = 16 -- devices, and stages of a balance

--- Seconds as people read them: "3.21 ms".
---@param seconds number
---@return string
function text.time(seconds)
  if seconds >= 1 then return ("%.3g s"):format(seconds) end
  if seconds >= 1e-3 then return ("%.3g ms"):format(seconds * 1e3) end
  return ("%.3g us"):format(seconds * 1e6)
end

--- Long times as people read them: "2.67 h".
---@param seconds number
---@return string
function text.duration(seconds)
  if seconds >= 2 * 86400 then return ("%.3g days"):format(seconds / 86400) end
  if seconds >= 7200 then return ("%.3g h"):format(seconds / 3600) end
  return seconds >= 120 and ("%.3g min"):format(seconds / 60) or text.time(seconds)
end

--- A list in few words: "7 x 2, 10", or its beginning.
---@param list integer[]
---@return string
function text.balance(list)
  local words, i = {}, 1
  while i <= #list do
    local j = i
    while list[j + 1] == list[i] do j = j + 1 end
    words[#words + 1] = j - i >= 3 and ("%d x %d"):format(j - i + 1, list[i]) or nil
    if j - i < 3 then
      for _ = i, j do words[#words + 1] = tostring(list[i]) end
    end
    i = j + 1
  end
  if #words > MOST_LIST then
    words = table.move(words, 1, MOST_LIST, 1, {})
    words[#words + 1] = "..."
  end
  return table.concat(words, ", ")
end

local function percent(share) return ("%.1f %%"):format(100 * share) end

-- The parts of the fullest device, largest first.
local function parts_text(row)
  local at = 1
  for d, bytes in ipairs(row.peak) do
    if bytes > row.peak[at] then at = d end
  end
  local names = {}
  for name, bytes in pairs(row.parts[at]) do
    if bytes >= 1 then names[#names + 1] = name end
  end
  table.sort(names, function(a, b)
    local x, y = row.parts[at][a], row.parts[at][b]
    if x ~= y then return x > y end
    return a < b
  end)
  for i, name in ipairs(names) do
    names[i] = ("%s %s"):format(name, sizes.text(math.floor(row.parts[at][name])))
  end
  return at, table.concat(names, ", ")
end

-- Whether a row has values wait in the host's memory.
local function is_away(row) return columns.largest(row.host) > 0 end

local function row_cells(row, away)
  return {
    row.label, tostring(row.devices), tostring(row.chunks), row.checkpoint, text.time(row.seconds),
    percent(row.bubble), percent(row.recompute / row.seconds),
    (row.exact and "" or "~") .. sizes.text(columns.largest(row.peak)),
    away and (is_away(row) and sizes.text(columns.largest(row.host)) or "") or nil,
  }
end

local function rows_text(plan)
  local lines = { { "schedule", "devices", "chunks", "checkpoint", "step", "bubble", "again",
    "peak" } }
  local away, estimated = false, false
  for i = 1, math.min(SHOWN, #plan.rows) do
    away, estimated = away or is_away(plan.rows[i]), estimated or not plan.rows[i].exact
  end
  if away then table.insert(lines[1], "on host") end
  for i = 1, math.min(SHOWN, #plan.rows) do
    lines[i + 1] = row_cells(plan.rows[i], away)
  end
  local table_text = columns.text(lines, "  ")
  if estimated then table_text = table_text .. "\n  (~: estimated, not planned byte for byte)" end
  if #plan.rows > SHOWN then
    table_text = table_text .. ("\n  ... and %d more that fit"):format(#plan.rows - SHOWN)
  end
  if plan.untried > 0 then
    table_text = table_text .. ("\n  (%d more combinations were not simulated: small copies of "
      .. "their schedules take longer; options 'schedules' and 'chunks' ask for some)")
      :format(plan.untried)
  end
  return table_text
end

local function names_text(names)
  local words = table.move(names, 1, math.min(#names, MOST_LIST), 1, {})
  if #names > MOST_LIST then words[#words + 1] = "..." end
  return table.concat(words, ", ")
end

-- The devices of the best row, each with its bytes.
local function each_text(plan, bytes)
  local row, words = plan.best, {}
  for d = 1, math.min(row.devices, MOST_LIST) do
    local device = plan.devices[d]
    words[d] = ("%s %s"):format(device.name, sizes.text(math.floor(bytes[d])))
  end
  if row.devices > MOST_LIST then words[#words + 1] = "..." end
  return table.concat(words, ", ")
end

-- Whether nothing is known of the way between two hosts of a job that the best plan uses.
local function is_network_free(plan)
  local first = plan.devices[1]
  for d = 2, plan.best.devices do
    local other = plan.devices[d]
    if first.rank and other.rank and first.host ~= other.host then
      local latency, bandwidth = devices.between(first, other, plan.link)
      if latency == 0 and bandwidth == math.huge then return true end
    end
  end
  return false
end

local function best_lines(plan)
  local best = plan.best
  local at, parts = parts_text(best)
  local full = plan.devices[at]
  local lines = {
    ("plan: %s, %s on %s, %s of %s, checkpoint %s"):format(best.label,
      counted(#best.balance, "stage"), counted(best.devices, "device"),
      counted(best.chunks, "micro-batch"), counted(best.rows, "row"), best.checkpoint),
    ("  step %s, lower bound %s (%.2f times); bubble %s; recomputation %s of the step"):format(
      text.time(best.seconds), text.time(plan.lower_bound), best.seconds / plan.lower_bound,
      percent(best.bubble), percent(best.recompute / best.seconds)),
    "  layers per stage: " .. text.balance(best.balance),
    ("  fullest device: %s, %s of %s (%s)"):format(full.name, sizes.text(math.floor(best.peak[at])),
      sizes.text(full.memory), parts),
    "  peaks: " .. each_text(plan, best.peak),
  }
  if is_away(best) then
    lines[#lines + 1] = "  in the host's memory: " .. each_text(plan, best.host)
  end
  local there, threads = cores.shared(plan.devices, best.devices)
  if there then
    lines[#lines + 1] = ("  %d threads share %d core%s: a step takes all work over the cores, if "
      .. "that is more than the schedule takes"):format(threads, there, there == 1 and "" or "s")
  end
  if is_network_free(plan) then
    lines[#lines + 1] = '  the way between hosts takes no time here: links = "measure" lets it'
  end
  if plan.alike then
    lines[#lines + 1] = "  the profile's times are taken for every device, though these are not of "
      .. "one sort"
  end
  if plan.without then
    lines[#lines + 1] = "  without " .. names_text(plan.without) .. ": the others alone are faster"
  end
  if plan.critical then lines[#lines + 1] = "  critical path: " .. plan.critical end
  if plan.replicated then lines[#lines + 1] = "  with replicas: " .. tostring(plan.replicated) end
  return lines
end

--- The whole plan.
---@param plan gpipe.Plan
---@return string
function text.of(plan)
  local lines = best_lines(plan)
  lines[#lines + 1] = rows_text(plan)
  if #plan.rejected > 0 then lines[#lines + 1] = "  not possible:" end
  for i, entry in ipairs(plan.rejected) do
    if i > SHOWN then
      lines[#lines + 1] = ("    ... and %d more"):format(#plan.rejected - SHOWN)
      break
    end
    lines[#lines + 1] = ("    %s: %s"):format(entry.what, entry.why)
  end
  return table.concat(lines, "\n")
end

return text
