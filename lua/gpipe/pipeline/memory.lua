-- lua/gpipe/pipeline/memory.lua - what to do if a device has too little memory for a plan.
--
-- Plans of other shapes and garbage hold memory too, so they are freed first. If that does not
-- help, the error says which number of micro-batches or which checkpoint mode would fit; both are
-- tried without allocating.

local caps = require "gpipe.pipeline.plan.caps"
local core = require "gpipe.core"
local ranks = require "gpipe.ranks"
local share = require "gpipe.ranks.share"
local sizes = require "gpipe.sizes"

local memory = {}

local TRIES = 8 -- doublings of the number of micro-batches
-- Fits where another mode does, and takes less time than those that make expensive values again.
local AUTO = 'checkpoint = "auto" (as much as there is room for)'

-- The modes that keep less than this one, in descending order of what they keep. What "auto" keeps
-- follows from the memory that there is; "offload" keeps all, but elsewhere.
local function thriftier(mode)
  local modes, found = {}, false
  for _, name in ipairs(core.checkpoints) do -- in the order of what they keep
    if found and name ~= "auto" and name ~= "offload" then modes[#modes + 1] = name end
    found = found or name == mode
  end
  return modes
end

-- The modes that stand for one where plans are only measured: "auto" fits where one of these does.
local function stand_ins(mode)
  return mode == "auto" and { "selective", "always" } or { mode }
end

-- What a device holds and has left, from the rank that drives it.
local function state_of(pipe, d)
  local held, device = pipe.core:held(d - 1), pipe.devices[d]
  local left = device.cap and device.cap - held.measured or pipe.core:free_bytes(d)
    or core.machine().available
  -- the memory that it takes from: with a cap it is its own
  local name = device.cap and "device " .. d
    or device.place or pipe.spread and ranks.machine() .. " " .. device.memory or device.memory
  return { name = name, free = left, shared = held.shared }
end

-- The free memory of each GPU, and of the machine for its CPU devices. Parts of a GPU, and devices
-- named twice, share its memory. `of` names the memory of each device.
local function free_bytes(pipe)
  local free, shared, of = {}, {}, {}
  for d, one in ipairs(share.by_device(pipe, "free", function(d) return state_of(pipe, d) end)) do
    of[d], free[one.name] = one.name, one.free
    shared[one.name] = (shared[one.name] or 0) + one.shared -- a new plan has the use of it, too
  end
  for name, bytes in pairs(shared) do free[name] = free[name] + bytes end
  return { bytes = free, of = of }
end

-- The largest share of a device's memory that is needed, and whether all devices fit; nil if no
-- such plan is possible.
local function try(pipe, free, specify, chunks, mode)
  local good, wanted = pcall(function()
    local spec = specify(chunks)
    spec.checkpoint = mode
    return caps.needs(pipe, spec)
  end)
  if not good then return nil end
  local sums, largest, fits = {}, 0, true
  for d, need in ipairs(wanted) do
    local name, bytes = free.of[d], need.bytes + need.grown
    sums[name] = (sums[name] or 0) + bytes
    largest = math.max(largest, sums[name])
    fits = fits and (not free.bytes[name] or sums[name] <= free.bytes[name])
  end
  return largest, fits
end

local function setting(chunks, mode)
  local parts = {}
  if chunks then parts[#parts + 1] = "chunks = " .. chunks end
  if mode then parts[#parts + 1] = ("checkpoint = %q"):format(mode) end
  return table.concat(parts, " with ")
end

local function least_of(a, b)
  if not a or not b then return a or b end
  return math.min(a, b)
end

-- The smallest number of micro-batches that fits with one of the modes, the largest share of a
-- device's memory then and the mode; or nil and the share of the smallest plan that does not fit.
local function more_chunks(pipe, free, specify, rows, modes)
  local chunks, least = pipe.chunks, nil
  for _ = 1, TRIES do
    if chunks >= rows then break end
    chunks = math.min(2 * chunks, rows)
    for _, mode in ipairs(modes) do
      local largest, fits = try(pipe, free, specify, chunks, mode)
      if fits then return chunks, largest, mode end
      least = least_of(least, largest)
    end
  end
  return nil, least
end

--- The settings that would fit, as the end of an error text.
---@param pipe table
---@param specify fun(chunks: integer): table the specification of the plan for this number of
--- micro-batches
---@param rows integer rows of the mini-batch
---@param training boolean whether checkpoint modes matter
---@return string
function memory.advise(pipe, specify, rows, training)
  local free, found = free_bytes(pipe), {}
  local own, least = stand_ins(pipe.checkpoint), nil
  for _, mode in ipairs(own) do
    least = least_of(least, (try(pipe, free, specify, pipe.chunks, mode)))
  end
  local function note(largest, fits, chunks, mode)
    if fits then
      found[#found + 1] = ("%s (%s)"):format(setting(chunks, mode), sizes.text(largest))
    end
    least = least_of(least, largest)
    return fits
  end
  local modes = training and thriftier(pipe.checkpoint) or {}
  for _, mode in ipairs(modes) do
    local largest, fits = try(pipe, free, specify, pipe.chunks, mode)
    if note(largest, fits, nil, mode) then
      if mode ~= "selective" then found[#found + 1] = AUTO end
      break
    end
  end
  local chunks, largest = more_chunks(pipe, free, specify, rows, own)
  note(largest, chunks ~= nil, chunks)
  if #found == 0 and #modes > 0 then
    local mode
    chunks, largest, mode = more_chunks(pipe, free, specify, rows, stand_ins "auto")
    note(largest, chunks ~= nil, chunks, mode)
  end
  if #found > 0 then return "; would fit: " .. table.concat(found, ", or ") end
  return ("; no setting of chunks and checkpoint would fit (%s at least): fewer rows, or more "
    .. "devices"):format(
    sizes.text(least or 0))
end

return memory
