-- tests/support/gpu.lua - what the specs of GPUs share: whether there are any, and ways to place stages on them.
--
-- On machines without a GPU the build runs these specs on the plugin's form for the host, which shows two.

local core = require "gpipe.core"

local gpu = {}

--- How many there are.
---@return integer
function gpu.count()
  local found = core.gpus()
  return found and #found or 0
end

--- A spec's `it` that says so where there are fewer GPUs than it needs (busted knows its words in specs only).
---@param it function
---@param pending function
---@return fun(sentence: string, f: fun(), least: integer?)
function gpu.on(it, pending)
  return function(sentence, f, least)
    it(sentence, function()
      if gpu.count() == 0 then pending("no CUDA device") return end
      if gpu.count() < (least or 1) then pending(("fewer than %d CUDA devices"):format(least)) return end
      f()
    end)
  end
end

-- Names by the number of a stage, from 0.
local placements = {
  same = function() return "cuda:0" end,                        -- several logical devices on one GPU
  parts = function(s) return ("cuda:0/%dof2"):format(s % 2) end, -- each on multiprocessors of its own
  two = function(s) return "cuda:" .. s % 2 end,                -- values cross with every stage
  mixed = function(s) return (s % 2 == 0 and "cpu:" or "cuda:") .. (s % 2 == 0 and s or 0) end,
}

--- Names of the placements that are on GPUs alone and that this machine has the GPUs for.
---@return string[]
function gpu.placements()
  return gpu.count() > 1 and { "same", "parts", "two" } or { "same", "parts" }
end

--- Devices for so many stages.
---@param placement "same"|"parts"|"two"|"mixed"
---@param stages integer
---@return string[]
function gpu.devices(placement, stages)
  local list = {}
  for s = 0, stages - 1 do list[s + 1] = placements[placement](s) end
  return list
end

--- Copies of a table of options, one per placement, with the devices that it puts them on.
---@param options table with `balance` or `stages`
---@return table[]
function gpu.placed(options)
  local list = {}
  for i, placement in ipairs(gpu.placements()) do
    local copy = {}
    for key, value in pairs(options) do copy[key] = value end
    copy.devices = gpu.devices(placement, #options.balance)
    list[i] = copy
  end
  return list
end

return gpu
