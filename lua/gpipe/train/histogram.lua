-- lua/gpipe/train/histogram.lua - counts the elements of a tensor in TensorBoard's buckets.
--
-- The limits grow by a tenth from 1e-12 to 1e20 on both sides of zero, so that weights of any
-- magnitude show a shape. Source: tensorflow/core/lib/histogram/histogram.cc.

local core = require "gpipe.core"

local SLICE = 1 << 20 -- elements that are counted at once: their positions take memory

local FIRST, GROWTH, LAST = 1e-12, 1.1, 1e20

local side -- limits above zero
local limits -- all limits; the last bucket takes larger values

local function make_limits()
  side, limits = {}, {}
  local limit = FIRST
  while limit < LAST do
    side[#side + 1] = limit
    limit = limit * GROWTH
  end
  for i = #side, 1, -1 do limits[#limits + 1] = -side[i] end
  limits[#limits + 1] = 0
  table.move(side, 1, #side, #limits + 1, limits)
  limits[#limits + 1] = 1.7976931348623157e308
end

-- The buckets of finite elements, counted from 0: the logarithm gives the distance from zero.
local function places(x)
  local size = ((x:abs():mul_(1 / FIRST)):log():mul_(1 / math.log(GROWTH)) + 1):floor()
  size:clamp_(0, #side)
  return core.where(x:lt(0), #side - size, size + (#side + 1)):to "i64"
end

local function add_slice(h, x)
  local fits = x:isfinite()
  local good = core.where(fits, x, 0)
  local missing = x:numel() - fits:to("i64"):sum():item()
  h.count = h.count + x:numel() - missing
  h.sum = h.sum + good:sum():item()
  h.squares = h.squares + good:square():sum():item()
  h.min = math.min(h.min, core.where(fits, x, math.huge):min():item())
  h.max = math.max(h.max, core.where(fits, x, -math.huge):max():item())
  local counts = places(good):bincount { minlength = #limits, weights = fits:to "f64" }
  h.counts = h.counts and h.counts:add_(counts) or counts
end

-- Leave out empty buckets, except one before each run of others: a limit ends the bucket that
-- begins at the limit before it.
local function pack(h)
  local counts, kept_limits, kept = h.counts:totable(), {}, {}
  for i = 1, #limits do
    local after = counts[i + 1] or 0
    if counts[i] > 0 or after > 0 then
      kept_limits[#kept_limits + 1] = limits[i]
      kept[#kept + 1] = counts[i]
    end
  end
  return kept_limits, kept
end

--- Count the finite elements by bucket.
---@param tensor gpipe.Tensor
---@return {min: number, max: number, count: integer, sum: number, squares: number, limits:
--- number[], counts: number[]}? nil if no element is finite
return function(tensor)
  if not limits then make_limits() end
  local h = { count = 0, sum = 0, squares = 0, min = math.huge, max = -math.huge }
  local flat = tensor:detach():reshape { tensor:numel() }
  for first = 1, flat:numel(), SLICE do
    local part = flat:narrow(1, first, math.min(SLICE, flat:numel() - first + 1))
    if part.device ~= "cpu" then part = part:to "cpu" end
    add_slice(h, part:to "f64")
  end
  if h.count == 0 then return nil end
  h.limits, h.counts = pack(h)
  return h
end
