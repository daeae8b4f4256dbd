-- lua/gpipe/profile/remade.lua - the measured times of what checkpoint = "selective" makes again.
--
-- With that policy values are made again within backward, by instructions that backward has not got
-- otherwise. Some gradients are computed by the op of forward (dropout is one), so instructions are
-- counted in a run with the policy and in one without: what there is more of in the first runs
-- again.

local median = require "gpipe.pipeline.median"
local runs = require "gpipe.profile.runs"

local remade = {}

local WARM_UP, STEPS = 2, 3

local BACKWARD = { I = true, W = true, B = true, R = true }

-- The instructions of backward by what they are: how many there are, and their time. Those of R are
-- all recomputation, so `without_r` leaves them out.
local function kinds_of(entries, without_r)
  local kinds = {}
  for _, e in ipairs(entries) do
    if BACKWARD[e.action] and not (without_r and e.action == "R") then
      local key = e.what .. " " .. e.op
      local kind = kinds[key] or { what = e.what, count = 0, seconds = 0.0 }
      kind.count, kind.seconds = kind.count + 1, kind.seconds + e.seconds
      kinds[key] = kind
    end
  end
  return kinds
end

-- The seconds of each layer that a step takes for what runs again.
local function again_of(entries, plain, layer_of, count)
  local sums = {}
  for i = 1, count do sums[i] = 0.0 end
  for key, kind in pairs(kinds_of(entries)) do
    local more = kind.count - (plain[key] and plain[key].count or 0)
    local layer = more > 0 and layer_of(kind.what)
    if layer then sums[layer] = sums[layer] + kind.seconds * more / kind.count end
  end
  return sums
end

--- Set selective.recompute of each layer.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer?}
---@param rows table[]
---@param layer_of fun(label: string): integer?
---@param entries table[] of a step of one micro-batch that makes nothing again within backward
function remade.measure(wanted, o, rows, layer_of, entries)
  local run <close> = runs.open(wanted, o.device, "selective")
  local lists, plain = {}, kinds_of(entries, true)
  for i = 1, #rows do lists[i] = {} end
  for _ = 1, WARM_UP do run:entries() end
  for _ = 1, math.min(STEPS, o.repeats or STEPS) do
    for i, seconds in ipairs(again_of(run:entries(), plain, layer_of, #rows)) do
      table.insert(lists[i], seconds)
    end
  end
  for i, row in ipairs(rows) do
    row.selective = row.selective or {}
    row.selective.recompute = median(lists[i])
  end
end

return remade
