-- tests/spec/ops/table/channels.lua - statistics of channels, and channels normalised by them;
-- rms_norm.

local assert = require "luassert"
local gp = require "gpipe"
local core = require "gpipe.core"
local array = require "tests.support.array"
local expect = require "tests.support.expect"
local inputs = require "tests.support.inputs"
local norms = require "tests.support.norms"

local x, ids = inputs.float, inputs.ids

-- The statistics of halves are f32.
local function wide(dtype) return dtype == "f64" and "f64" or "f32" end

-- ---- rms_norm --------------------------------------------------------------------------------

local rms_norm = {
  op = "rms_norm", covers = { "rms_norm_dx", "rms_norm_dw" }, tolerance = "norm", gradient = true,
  call = function(o, a, w) return core.rms_norm(a, w, o.eps or 1e-6) end,
  reference = function(o, a, w)
    return array.map(function(h, p) return h * p end,
      array.lines(a, norms.root_mean_square(o.eps or 1e-6)), w)
  end,
  cases = {
    { x { 3, 5 }, x { 5 } },
    { x { 3, 5 }, x { 5 }, o = { eps = 0.5 } },
    { x { 7 }, x { 7 } },
    { x { 2, 3, 4 }, x { 4 } },
    { x { 1, 1, low = 1 }, x { 1 } },
    { x { 33, 7 }, x { 7 } },
    { x { 2, 130 }, x { 130 } },
    { x { 0, 3 }, x { 3 } },
    { x { 3, 0 }, x { 0 } },
    { x { 3, 5, layout = "transposed" }, x { 5, layout = "spaced" } },
    { x { 3, 5, fixed = true }, x { 5 } },
    { x { 3, 5 }, x { 5, fixed = true } },
  },
  refuses = {
    { x { 3, 5 }, x { 4 }, error = "rms_norm: weight is 4, expected 5 (input is 3x5)" },
    { x {}, x { 1 }, error = "rms_norm: input is scalar, expected at least 1 dimension" },
    { ids { 3, 5, below = 2 }, x { 5 }, error = "rms_norm: input is i64, expected f32 or f64" },
  },
}

-- ---- statistics ------------------------------------------------------------------------------

local function stats(o, a)
  local shape = a.shape
  return core.channel_stats_join(core.channel_stats(a, { samples = o.samples or false }), {
    sets = o.samples and shape[1] or 1, groups = o.groups or 0,
    rows = (o.samples and 1 or shape[1]) * shape[3] * shape[4],
  })
end

local channel_stats = {
  op = "channel_stats_join", gradient = false, tolerance = "norm", call = stats,
  reference = norms.stats, result = { wide, wide },
  cases = {
    { x { 2, 3, 4, 5 } },
    { x { 1, 1, 1, 1 } },
    { x { 7, 33, 1, 1 } },
    { x { 2, 5, 9, 15 } },
    { x { 2, 6, 9, 15 }, o = { samples = true } },
    { x { 2, 6, 3, 3 }, o = { samples = true, groups = 2 } },
    { x { 3, 6, 3, 3 }, o = { groups = 1 } },
    { x { 2, 3, 8, 8, low = 999, high = 1001 } },
    { x { 2, 3, 4, 4, layout = "transposed" } },
    { x { 2, 3, 4, 4, layout = "expanded" } },
    { x { 0, 3, 4, 4 } },
    { x { 2, 0, 4, 4 } },
  },
  refuses = {
    { x { 2, 6, 3, 3 }, o = { groups = 4 },
      error = "channel_stats_join: 6 channels in 4 groups, expected as many in each" },
  },
}

-- ---- channel_norm ----------------------------------------------------------------------------

local function normalise(o, a, w, b, mean, variance)
  local attributes = { eps = o.eps or 1e-5, given = mean ~= nil }
  if mean then
    mean = mean:reshape(1, mean.shape[1]):to(wide(a.dtype))
    variance = variance:reshape(1, variance.shape[1]):to(wide(a.dtype))
  else
    mean, variance = stats(o, a)
  end
  return core.channel_norm(a, mean, variance, w, b, attributes)
end

local channel_norm = {
  op = "channel_norm", covers = { "channel_stats", "channel_norm_sums", "channel_norm_dx" },
  tolerance = "norm", gradient = true, call = normalise, reference = norms.channels,
  cases = {
    { x { 2, 3, 4, 5 }, x { 3 }, x { 3 } },
    { x { 2, 3, 4, 5 } },
    { x { 2, 3, 4, 5 }, x { 3 } },
    { x { 7, 5, 1, 1 }, x { 5 }, x { 5 }, o = { eps = 0.1 } },
    { x { 1, 1, 1, 1 }, x { 1 }, x { 1 }, o = { eps = 0.1 } },
    { x { 2, 2, 9, 15 }, x { 2 }, x { 2 } },
    { x { 3, 70, 2, 1 }, x { 70 }, x { 70 }, o = { eps = 0.1 }, dtypes = "f32" },
    { x { 1, 33, 7, 7 }, x { 33 }, x { 33 }, dtypes = "f32" },
    { x { 2, 4, 3, 3 }, x { 4 }, x { 4 }, o = { samples = true } },
    { x { 2, 3, 9, 8 }, o = { samples = true } },
    { x { 2, 6, 3, 3 }, x { 6 }, x { 6 }, o = { samples = true, groups = 2 } },
    { x { 2, 4, 3, 3 }, x { 4 }, x { 4 }, o = { samples = true, groups = 1 } },
    { x { 2, 3, 4, 5 }, x { 3 }, x { 3 }, x { 3, fixed = true }, x { 3, low = 0.5, fixed = true } },
    { x { 2, 3, 4, 4, layout = "transposed" }, x { 3, layout = "spaced" }, x { 3 } },
    { x { 2, 3, 4, 4, layout = "narrowed" }, x { 3, layout = "narrowed" }, x { 3 } },
    { x { 2, 3, 4, 4, fixed = true }, x { 3 }, x { 3 } },
    { x { 2, 3, 4, 4 }, x { 3, fixed = true }, x { 3, fixed = true } },
    { x { 0, 3, 4, 4 }, x { 3 }, x { 3 } },
    { x { 2, 0, 4, 4 }, x { 0 }, x { 0 } },
  },
  refuses = {
    { x { 2, 3, 4, 4 }, x { 4 }, error = "channel_norm: weight is 4, expected 3" },
    { x { 2, 3, 4, 4 }, x { 3 }, x { 3 }, x { 2 }, x { 2 },
      error = "channel_norm: 3 channels in 2 groups, expected as many in each" },
    { x { 2, 3, 4, 4 }, x { 3 }, x { 3 }, x { 3 }, x { 1 },
      error = "channel_norm: variance is 1x1, expected 1x3" },
  },
}

-- ---- fused with a ReLU and a sum -------------------------------------------------------------

-- No script calls these ops: in a pipeline the neighbours become one op (runtime/graph/gates.c).

local function relu(a) return array.map(function(v) return math.max(v, 0) end, a) end

local channel_norm_relu = {
  op = "channel_norm_relu", covers = { "channel_norm_relu_sums", "channel_norm_relu_dx" },
  tolerance = "norm", gradient = true,
  call = function(o, ...) return normalise(o, ...):relu() end,
  reference = function(o, ...) return relu(norms.channels(o, ...)) end,
  cases = {
    { x { 2, 3, 4, 5 }, x { 3 }, x { 3 } },
    { x { 2, 3, 4, 5 } },
    { x { 2, 3, 4, 5 }, x { 3 } },
    { x { 7, 5, 1, 1 }, x { 5 }, x { 5 }, o = { eps = 0.1 } },
    { x { 2, 2, 9, 15 }, x { 2 }, x { 2 } },
    { x { 3, 70, 2, 1 }, x { 70 }, x { 70 }, o = { eps = 0.1 }, dtypes = "f32" },
    { x { 2, 4, 3, 3 }, x { 4 }, x { 4 }, o = { samples = true } },
    { x { 2, 6, 3, 3 }, x { 6 }, x { 6 }, o = { samples = true, groups = 2 } },
    { x { 2, 3, 4, 5 }, x { 3 }, x { 3 }, x { 3, fixed = true }, x { 3, low = 0.5, fixed = true } },
    { x { 2, 3, 4, 4, layout = "transposed" }, x { 3, layout = "spaced" }, x { 3 } },
    { x { 2, 3, 4, 4, fixed = true }, x { 3 }, x { 3 } },
    { x { 2, 3, 4, 4 }, x { 3, fixed = true }, x { 3, fixed = true } },
    { x { 0, 3, 4, 4 }, x { 3 }, x { 3 } },
  },
  refuses = { { x { 2, 3, 4, 4 }, x { 4 }, error = "channel_norm: weight is 4, expected 3" } },
}

-- In halves the normalised value is rounded before the sum, as by single ops, so a value near zero
-- may lie on the other side of the kink than in f64: there the bits of single ops are what counts
-- (spec/cuda/batch_norm_spec).
local channel_norm_add_relu = {
  op = "channel_norm_add_relu", covers = { "channel_norm_gate_sums" }, tolerance = "norm",
  gradient = true, dtypes = { "f32", "f64" },
  call = function(o, a, addend, w, b) return (normalise(o, a, w, b) + addend):relu() end,
  reference = function(o, a, addend, w, b)
    return relu(array.map(function(p, q) return p + q end, norms.channels(o, a, w, b), addend))
  end,
  cases = {
    { x { 2, 3, 4, 5 }, x { 2, 3, 4, 5 }, x { 3 }, x { 3 } },
    { x { 2, 3, 4, 5 }, x { 2, 3, 4, 5 } },
    { x { 2, 3, 4, 5 }, x { 1, 3, 1, 1 }, x { 3 }, x { 3 } },
    { x { 7, 5, 1, 1 }, x { 7, 5, 1, 1 }, x { 5 }, x { 5 }, o = { eps = 0.1 } },
    { x { 2, 2, 9, 15 }, x { 2, 2, 9, 15 }, x { 2 }, x { 2 } },
    { x { 3, 70, 2, 1 }, x { 3, 70, 2, 1 }, x { 70 }, x { 70 }, o = { eps = 0.1 }, dtypes = "f32" },
    { x { 2, 6, 3, 3 }, x { 2, 6, 3, 3 }, x { 6 }, x { 6 }, o = { samples = true, groups = 2 } },
    { x { 2, 3, 4, 4, layout = "transposed" }, x { 2, 3, 4, 4, layout = "narrowed" }, x { 3 },
      x { 3 } },
    { x { 2, 3, 4, 4 }, x { 2, 3, 4, 4, fixed = true }, x { 3, fixed = true }, x { 3 } },
    { x { 2, 3, 4, 4, fixed = true }, x { 2, 3, 4, 4 }, x { 3 }, x { 3 } },
  },
  refuses = {
    { x { 2, 3, 4, 4 }, x { 2, 3, 4, 5 }, error = "add: shapes 2x3x4x4 and 2x3x4x5 do not broadcast" },
  },
}

-- ---- running statistics ----------------------------------------------------------------------

-- What single ops leave: the chain that the two ops replace, with the same roundings.
local function chain(o, mean, variance, before)
  local batches = before.batches + 1
  local share = o.momentum or 1 / batches:to(mean.dtype)
  return { before.mean + (mean - before.mean) * share,
    before.variance + (variance - before.variance) * share, batches }
end

local function same(wanted, got, what)
  for k, name in ipairs { "mean", "variance", "batches" } do
    assert.is_true(gp.equal(wanted[k], got[k]), what .. ": " .. name)
  end
end

local function options(o, rows)
  return { rows = rows, momentum = o.momentum or 0, cumulative = not o.momentum }
end

-- Calls check(what, o, channels, dtype) for momenta, widths and types.
local function for_each_move(check)
  for _, dtype in ipairs { "f32", "f64" } do
    for _, momentum in ipairs { 0.1, 0.75, 1, false } do
      for _, channels in ipairs { 1, 3, 33, 600 } do
        check(("%s, momentum %s, %d channels"):format(dtype, momentum, channels),
          { momentum = momentum }, channels, dtype)
      end
    end
  end
end

-- Tensors of [1, C] or [C] between 0 and 1.
local function drawn(dtype, seed, ...)
  return gp.rand({ ... }, { dtype = dtype, seed = seed })
end

local move_stats = {
  op = "move_stats", gradient = false, tolerance = "exact", cases = {},
  also = {
    { "has the bits of the single ops that it replaces, in the buffers' own memory", function()
      for_each_move(function(what, o, channels, dtype)
        local mean, variance = drawn(dtype, 1, 1, channels), drawn(dtype, 2, 1, channels)
        for rows = 1, 3 do
          local slots = { drawn(dtype, 3, channels), drawn(dtype, 4, channels),
            gp.tensor(6, { dtype = "i64" }) }
          local wanted = chain(o, mean:reshape(channels),
            variance:reshape(channels) * (rows / math.max(rows - 1, 1)),
            { mean = slots[1]:clone(), variance = slots[2]:clone(), batches = slots[3]:clone() })
          core.move_stats(slots[1], slots[2], slots[3], mean, variance, options(o, rows))
          same(wanted, slots, what)
        end
      end)
    end },
    { "refuses shapes that do not fit", function()
      local c, i = gp.zeros { 3 }, gp.tensor(0, { dtype = "i64" })
      expect.fails_with("move_stats: running variance is 2, expected 3", core.move_stats, c,
        gp.zeros { 2 }, i, gp.zeros { 1, 3 }, gp.zeros { 1, 3 })
      expect.fails_with("move_stats: mean is 3, expected 1x3", core.move_stats, c, c, i, c,
        gp.zeros { 1, 3 })
      expect.fails_with("move_stats: momentum is 2, expected 0 to 1", core.move_stats, c, c, i,
        gp.zeros { 1, 3 }, gp.zeros { 1, 3 }, { momentum = 2 })
    end },
  },
}

-- Outside of a pipeline every batch is the first of its mini-batch. What the others do is tested in
-- pipelines (spec/pipeline/batch_norm_spec).
local merge_stats = {
  op = "merge_stats", gradient = false, tolerance = "exact", cases = {},
  also = {
    { "has the bits of the single ops that it replaces where a mini-batch begins", function()
      for_each_move(function(what, o, channels, dtype)
        local mean, variance = drawn(dtype, 1, 1, channels), drawn(dtype, 2, 1, channels)
        for rows = 1, 3 do
          local slots = { drawn(dtype, 3, channels), drawn(dtype, 4, channels),
            gp.tensor(6, { dtype = "i64" }), drawn(dtype, 5, 5, channels) }
          local spread = (variance:to "f64" * rows):to(dtype):reshape(channels)
          local before = { mean = slots[1]:clone(), variance = slots[2]:clone(),
            batches = slots[3]:clone() }
          local wanted = chain(o, mean:reshape(channels), spread / math.max(rows - 1, 1), before)
          core.merge_stats(slots[1], slots[2], slots[3], slots[4], mean, variance,
            options(o, rows))
          same(wanted, slots, what)
          local pending = gp.stack({ gp.full({ channels }, rows, { dtype = dtype }),
            mean:reshape(channels), spread, before.mean, before.variance }, 1)
          assert.is_true(gp.equal(pending, slots[4]), what .. ": pending")
        end
      end)
    end },
    { "refuses shapes that do not fit", function()
      local c, row, i = gp.zeros { 3 }, gp.zeros { 1, 3 }, gp.tensor(0, { dtype = "i64" })
      expect.fails_with("merge_stats: pending is 4x3, expected 5x3", core.merge_stats, c, c, i,
        gp.zeros { 4, 3 }, row, row)
      expect.fails_with("merge_stats: mean is 1x2, expected 1x3", core.merge_stats, c, c, i,
        gp.zeros { 5, 3 }, gp.zeros { 1, 2 }, row)
    end },
  },
}

-- ---- replicas --------------------------------------------------------------------------------

-- Outside of a pipeline there is one replica.
local replica_gather = {
  op = "replica_gather", gradient = false, tolerance = "exact", result = { "like", "like", "i64" },
  call = function(o, a, b)
    return core.replica_gather(a, b, { rows = 7, replicas = o.replicas or 1 })
  end,
  reference = function(_, a, b)
    local n = #a
    return array.build({ 1, n + #b }, function(i)
      return i[2] <= n and a[i[2]] or b[i[2] - n]
    end), array.build({ 1 }, function() return 7 end), array.scalar(1)
  end,
  cases = {
    { x { 1, 3 }, x { 1, 3 } },
    { x { 2, 1, 5 }, x { 4 } },
    { x { 1, 0 }, x { 1, 0 } },
  },
  refuses = {
    { x { 1, 3 }, x { 1, 3 }, o = { replicas = 0 },
      error = "replica_gather: 0 replicas of 7 rows, expected at least 1 of 0 or more" },
  },
}

-- The mean and both variances of replicas, from sums over all positions.
local function joined(all, rows, positions)
  local c, made = all.shape[2] // 2, { {}, {}, {} }
  for j = 1, c do
    local count, sum, spread = 0, 0, 0
    for r = 0, #rows - 1 do
      count = count + rows[r + 1] * positions
      sum = sum + rows[r + 1] * positions * all[2 * r * c + j]
    end
    local mean = count > 0 and sum / count or 0
    for r = 0, #rows - 1 do
      local d = all[2 * r * c + j] - mean
      spread = spread + rows[r + 1] * positions * (all[(2 * r + 1) * c + j] + d * d)
    end
    made[1][j], made[2][j] = mean, count > 0 and spread / count or 0
    made[3][j] = spread / math.max(count - 1, 1)
  end
  return made, c
end

local replica_stats = {
  op = "replica_stats", gradient = false, tolerance = "norm", result = { "like", "like", "like" },
  call = function(_, all, rows) return core.replica_stats(all, rows, 4) end,
  reference = function(_, all, rows)
    local made, c = joined(all, rows, 4)
    local list = {}
    for k = 1, 3 do list[k] = array.build({ 1, c }, function(i) return made[k][i[2]] end) end
    return table.unpack(list)
  end,
  cases = {
    { x { 1, 6, low = 0.5, high = 2 }, x { 1, low = 1, high = 3 } },
    { x { 2, 6, low = 0.5, high = 2 }, x { 2, low = 1, high = 3 } },
    { x { 7, 66, low = 0.5, high = 2 }, x { 7, low = 1, high = 3 } },
    { x { 3, 0 }, x { 3 } },
  },
  refuses = {
    { x { 2, 5 }, x { 2 }, error = "replica_stats: all is 2x5, expected at least 1 replica, two "
      .. "values a channel" },
    { x { 2, 6 }, x { 3 }, error = "replica_stats: rows is 3, expected 2 (all is 2x6)" },
  },
}

local replica_sums = {
  op = "replica_sums", gradient = false, tolerance = "norm",
  call = function(_, all, rows) return core.replica_sums(all, rows, 2) end,
  reference = function(_, all, rows)
    local total, c = 0, all.shape[2] // 2
    for r = 1, #rows do total = total + rows[r] end
    return array.build({ 2, 1, c }, function(i)
      local sum = 0
      for r = 0, #rows - 1 do sum = sum + all[(2 * r + i[1] - 1) * c + i[3]] end
      return sum * 2 / total
    end)
  end,
  cases = {
    { x { 1, 6 }, x { 1, low = 1, high = 3 } },
    { x { 3, 6 }, x { 3, low = 1, high = 3 } },
    { x { 8, 70 }, x { 8, low = 1, high = 3 } },
  },
  refuses = {
    { x { 2, 6 }, x { 3 }, error = "replica_sums: rows is 3, expected 2 (all is 2x6)" },
  },
}

return {
  rms_norm, channel_stats, channel_norm, channel_norm_relu, channel_norm_add_relu, move_stats,
  merge_stats,
  replica_gather, replica_stats, replica_sums,
}
