-- lua/gpipe/pipeline/profile/text.lua - a profile as text: a table for each device, and the time
-- between its rows.

local text = {}

-- The columns: heading, the cell of a row, and whether it is a word.
local COLUMNS = {
  { "phase", function(r) return r.phase end, true },
  { "op", function(r) return r.op end, true },
  { "dtype", function(r) return r.dtype or "" end, true },
  { "count", function(r) return ("%d"):format(r.count) end },
  { "us", function(r) return ("%.1f"):format(1e6 * r.seconds) end },
  { "each", function(r) return ("%.2f"):format(1e6 * r.each) end },
  { "share", function(r) return ("%.1f%%"):format(100 * r.share) end },
  { "MB", function(r) return ("%.4g"):format(r.bytes / 1e6) end },
  { "GB/s", function(r) return r.bandwidth and ("%.1f"):format(r.bandwidth / 1e9) or "" end },
  { "of copy", function(r)
    return r.bandwidth_share and ("%.0f%%"):format(100 * r.bandwidth_share) or ""
  end },
  { "GFLOP", function(r) return r.flop > 0 and ("%.4g"):format(r.flop / 1e9) or "" end },
  { "GFLOP/s", function(r)
    return r.flop > 0 and r.rate and ("%.1f"):format(r.rate / 1e9) or ""
  end },
  { "of product", function(r)
    return r.flop > 0 and r.rate_share and ("%.0f%%"):format(100 * r.rate_share) or ""
  end },
  { "path", function(r) return r.path or "" end, true },
}

-- The cells of all rows; columns that are empty in every row are left out.
local function cells_of(rows)
  local columns = {}
  for _, column in ipairs(COLUMNS) do
    local cells, width, filled = {}, #column[1], false
    for i, row in ipairs(rows) do
      cells[i] = column[2](row)
      width = math.max(width, #cells[i])
      filled = filled or cells[i] ~= ""
    end
    if filled then
      columns[#columns + 1] = { head = column[1], cells = cells, width = width, word = column[3] }
    end
  end
  return columns
end

local function line(columns, cell_of)
  local parts = {}
  for i, column in ipairs(columns) do
    local cell = cell_of(column)
    local space = (" "):rep(column.width - #cell)
    parts[i] = column.word and cell .. space or space .. cell
  end
  return "  " .. table.concat(parts, "  "):gsub("%s+$", "")
end

local function ms(seconds) return ("%.3f ms"):format(1e3 * seconds) end

-- "copies 4012.0 GB/s, products 712000.0 GFLOP/s in bf16"
local function ceilings_text(best)
  local parts = {}
  if best.copy then parts[1] = ("copies %.1f GB/s"):format(best.copy / 1e9) end
  local dtypes = {}
  for dtype in pairs(best.gemm) do dtypes[#dtypes + 1] = dtype end
  table.sort(dtypes)
  for _, dtype in ipairs(dtypes) do
    parts[#parts + 1] = ("products %.1f GFLOP/s in %s"):format(best.gemm[dtype] / 1e9, dtype)
  end
  return #parts > 0 and "; at best " .. table.concat(parts, ", ") or ""
end

-- The line about the time between the rows.
local function gaps_line(device)
  if not device.replayed then return nil end
  local share = device.replayed > 0 and 100 * math.abs(device.gaps) / device.replayed or 0
  if device.gaps < 0 then
    return ("  these actions took %s in the step before: %s (%.1f%%) less than their ops apart")
      :format(ms(device.replayed), ms(-device.gaps), share)
  end
  return ("  these actions took %s in the step before: %s (%.1f%%) of it in gaps between ops")
    :format(ms(device.replayed), ms(device.gaps), share)
end

local function add_device(lines, profile, d)
  local device, rows = profile.devices[d], {}
  for _, row in ipairs(profile.rows) do
    if row.place == d - 1 then rows[#rows + 1] = row end
  end
  local columns = cells_of(rows)
  lines[#lines + 1] = ("%s: %s in ops, %s in updates, %s in copies%s"):format(device.name,
    ms(device.kernels), ms(device.updates), ms(device.copies), ceilings_text(device.ceilings))
  if #rows > 0 then lines[#lines + 1] = line(columns, function(c) return c.head end) end
  for i = 1, #rows do
    lines[#lines + 1] = line(columns, function(c) return c.cells[i] end)
  end
  lines[#lines + 1] = gaps_line(device)
end

--- The whole text.
---@param profile table
---@return string
function text.of(profile)
  local lines = {}
  for d = 1, #profile.devices do add_device(lines, profile, d) end
  if profile.overhead > 0 then
    lines[#lines + 1] = ("%.2f us, what two events cost, are taken off each op")
      :format(1e6 * profile.overhead)
  end
  return table.concat(lines, "\n")
end

return text
