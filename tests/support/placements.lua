-- tests/support/placements.lua - ways to place the stages of a pipeline on GPUs.
--
-- On machines without a GPU the build runs these specs on the plugin compiled for the host, which
-- claims two.

local gpu = require "tests.support.gpu"

local placements = {}

-- Names a stage's device by the stage's number, from 0.
local name_of = {
  -- several logical devices on one GPU
  same = function() return "cuda:0" end,
  -- each on multiprocessors of its own
  parts = function(s) return ("cuda:0/%dof2"):format(s % 2) end,
  two = function(s) return "cuda:" .. s % 2 end,                -- every edge crosses between GPUs
  cpu = function(s) return "cpu:" .. s end,
  mixed = function(s) return (s % 2 == 0 and "cpu:" or "cuda:") .. (s % 2 == 0 and s or 0) end,
}

--- Return the names of the placements on GPUs alone for which this machine has the GPUs.
---@return string[]
function placements.names()
  return gpu.count() > 1 and { "same", "parts", "two" } or { "same", "parts" }
end

--- Return the same names in lists of one size of GPU: whole ones, parts. Libraries choose by the
--- number of multiprocessors, so bits are promised within a list.
---@return string[][]
function placements.sizes()
  return { gpu.count() > 1 and { "same", "two" } or { "same" }, { "parts" } }
end

--- Return the devices for so many stages.
---@param placement "same"|"parts"|"two"|"mixed"|"cpu"
---@param stages integer
---@return string[]
function placements.devices(placement, stages)
  local list = {}
  for s = 0, stages - 1 do list[s + 1] = name_of[placement](s) end
  return list
end

--- Return copies of a table of options, one per placement, each with its devices.
---@param names string[]
---@param options table with `balance`
---@return table[]
function placements.each(names, options)
  local list = {}
  for i, placement in ipairs(names) do
    local copy = {}
    for key, value in pairs(options) do copy[key] = value end
    copy.devices = placements.devices(placement, #options.balance)
    list[i] = copy
  end
  return list
end

return placements
