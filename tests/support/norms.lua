-- tests/support/norms.lua - normalises channels in plain Lua, as a reference for the ops.

local array = require "tests.support.array"

local norms = {}

-- Returns the keys of the set and the group of an element.
local function key_of(o, shape, i)
  local set, each = o.samples and i[1] or 1, shape[2] // (o.groups or shape[2])
  return set * 1000 + (i[2] - 1) // each
end

--- Return mean and variance of every set and group, by key.
local function stats_of(o, a)
  local count, mean, variance = {}, {}, {}
  local function each(f) array.build(a.shape, function(i, at) f(key_of(o, a.shape, i), a[at]) end) end
  each(function(k) count[k] = (count[k] or 0) + 1 end)
  each(function(k, v) mean[k] = (mean[k] or 0.0) + v / count[k] end)
  each(function(k, v) variance[k] = (variance[k] or 0.0) + (v - mean[k]) ^ 2 / count[k] end)
  return mean, variance
end

--- Return the statistics [S, G] as arrays.
function norms.stats(o, a)
  local mean, variance = stats_of(o, a)
  local groups, sets = o.groups or a.shape[2], o.samples and a.shape[1] or 1
  local function list(of)
    return array.build({ sets, groups }, function(i) return of[i[1] * 1000 + i[2] - 1] or 0.0 end)
  end
  return list(mean), list(variance)
end

--- Return (x - mean) / sqrt(variance + eps) w + b; mean and variance [1, C] may be given.
function norms.channels(o, a, w, b, given_mean, given_variance)
  local mean, variance = stats_of(o, a)
  return array.build(a.shape, function(i, at)
    local k, c = key_of(o, a.shape, i), i[2]
    local m, v = mean[k], variance[k]
    if given_mean then m, v = given_mean[c], given_variance[c] end
    local h = (a[at] - m) / math.sqrt(v + (o.eps or 1e-5))
    return h * (w and w[c] or 1) + (b and b[c] or 0)
  end)
end

--- Return a function of a row: x / sqrt(mean of squares + eps).
function norms.root_mean_square(eps)
  return function(row)
    local mean, out = 0.0, {}
    for _, v in ipairs(row) do mean = mean + v * v / #row end
    for i, v in ipairs(row) do out[i] = v / math.sqrt(mean + eps) end
    return out
  end
end

return norms
