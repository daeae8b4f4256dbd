-- lua/gpipe/profile/text.lua - a profile as text: a line for each layer, the sums last.

local columns = require "gpipe.draw.columns"
local counted = require "gpipe.counted"
local sizes = require "gpipe.sizes"

local text = {}

-- Heading, field, and what the field is divided by.
local COLUMNS = {
  { "F us", "forward", 1e-6 }, { "I us", "input", 1e-6 }, { "W us", "weight", 1e-6 },
  { "R us", "recompute", 1e-6 }, { "output", "output_bytes", 1024 },
  { "saved", "saved_bytes", 1024 }, { "params", "parameter_bytes", 1024 },
  { "work", "workspace_bytes", 1024 }, { "MFLOP", "flop", 1e6 },
}

local function number(value)
  if value >= 1e3 or value == math.floor(value) then return ("%.0f"):format(value) end
  return ("%.3g"):format(value)
end

local function cells_of(name, row)
  local cells = { name }
  for i, column in ipairs(COLUMNS) do
    local value = row[column[2]]
    cells[i + 1] = value and number(value / column[3]) or ""
  end
  return cells
end

-- The sums, and of the workspace the largest; a sum of outputs means nothing.
local function total_of(layers)
  local total = {}
  for _, column in ipairs(COLUMNS) do
    local key = column[2]
    for _, layer in ipairs(layers) do
      local sum = total[key] or 0
      total[key] = key == "workspace_bytes" and math.max(sum, layer[key]) or sum + layer[key]
    end
  end
  total.output_bytes = nil
  return total
end

local function title_of(profile)
  local on = profile.device and (" on %s"):format(profile.device) or ""
  local threads = profile.threads and (" (%s)"):format(counted(profile.threads, "thread")) or ""
  return ("profile of %s%s%s, a micro-batch of %s (input %s), sizes in KiB"):format(
    counted(#profile.layers, "layer"), on, threads, counted(profile.rows, "row"),
    sizes.text(profile.input_bytes))
end

--- A line for each layer; F forward, I gradient of the input, W of the weights, R recomputation.
function text.of(profile)
  local rows = { { "layer" } }
  for i, column in ipairs(COLUMNS) do rows[1][i + 1] = column[1] end
  for i, layer in ipairs(profile.layers) do
    local name = layer.layer and ("%s (%s)"):format(layer.name, layer.layer) or layer.name
    rows[i + 1] = cells_of(name, layer)
  end
  rows[#rows + 1] = cells_of("total", total_of(profile.layers))
  local link = profile.host_link
  local copies = link and ("\n  copies to the host's memory and back: %.3g GB/s, and %.3g us each")
    :format(1e-9 * link.bandwidth, 1e6 * link.latency) or ""
  return title_of(profile) .. "\n" .. columns.text(rows, "  ") .. copies
end

return text
