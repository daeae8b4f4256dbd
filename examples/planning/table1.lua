-- examples/planning/table1.lua - GPipe's Table 1 as a planning result: the largest AmoebaNet-D and
-- Transformer that fit 1, 2, 4, 8 ... 128 devices, beside the paper's.
--
--   gpipe-lua examples/planning/table1.lua
--   gpipe-lua examples/planning/table1.lua --exact    the runtime plans the bytes, too: two minutes
--   gpipe-lua examples/planning/table1.lua --help
--
-- Nothing runs and no parameter is drawn: the devices are described (8 GiB and 16 GiB), and a model
-- with 84 billion parameters is planned on a laptop. Layers in the middle of these models are all
-- alike, so a short model is profiled, and its profile made longer. The largest models are those
-- that leave a tenth of the memory by the estimate; --exact says which of them do fit.
-- Source: Huang et al. 2019, "GPipe", table 1; for torchgpipe its benchmarks (docs of v0.0.7).
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Plan the models of GPipe's Table 1.", {
  { "--exact", false, "plan the largest AmoebaNets with the runtime's own passes" },
  { "--gib N", 8, "memory of a device for AmoebaNet-D, in GiB" },
}, arg)

local GIB = 2.0 ^ 30
local SPARE = 0.9 -- of the memory, for the largest models: profiles say bytes to a few per cent

local function devices(count, gib)
  local list = {}
  for i = 1, count do
    list[i] = { "sim:" .. i - 1, memory = gib * GIB, flops = 1e13, bandwidth = 3e11,
      link = { latency = 1e-5, bandwidth = 1e10 } }
  end
  return list
end

-- ---- longer profiles ----------------------------------------------------------------------------

-- A profile in which each of some layers stands `times` times.
local function lengthened(profile, repeats)
  local layers = {}
  for i, layer in ipairs(profile.layers) do
    for _ = 1, repeats[i] or 1 do
      local copy = {}
      for key, value in pairs(layer) do copy[key] = value end
      copy.name = nil
      layers[#layers + 1] = copy
    end
  end
  return gp.profile { layers = layers, rows = profile.rows, input_bytes = profile.input_bytes }
end

local function parameters_of(profile)
  local bytes = 0
  for _, layer in ipairs(profile.layers) do bytes = bytes + layer.parameter_bytes end
  return bytes // 4
end

-- The largest n from `least` on, in steps, for which fits(n) is true: n, and what fits returned.
local function largest(least, step, fits)
  local good, result = 0, nil
  local n = least
  while true do
    local one = fits(n)
    if not one then break end
    good, result, n = n, one, 2 * n
  end
  local bad = n
  while bad - good > step do
    local middle = (good + bad) // 2 // step * step
    if middle <= good then break end
    local one = fits(middle)
    if one then good, result = middle, one else bad = middle end
  end
  return good, result
end

-- ---- AmoebaNet-D --------------------------------------------------------------------------------

local function images(rows) return gp.zeros({ 1, 3, 224, 224 }):expand { rows, 3, 224, 224 } end

-- Stem 3, then 3 + 1 + 3 + 1 + 3 cells and a classifier: the third normal cell of each group is
-- followed by others like it.
local short = {}

local function amoebanet(layers, filters)
  if not short[filters] then
    local model = gp.models.amoebanetd { classes = 1000, layers = 9, filters = filters }
    short[filters] = gp.profile(model, { images(1), gp.zeros({ 1 }, { dtype = "i64" }) },
      { device = devices(1, opt.gib)[1], loss = nn.CrossEntropyLoss() })
  end
  local times = layers // 3 - 2
  return lengthened(short[filters], { [6] = times, [10] = times, [14] = times })
end

-- Batch 128 and RMSProp, as there: 12 bytes for each parameter.
local function plan_amoebanet(profile, count, how, share)
  return gp.plan(profile, nil, {
    devices = devices(count, opt.gib * (share or 1)), batch = 128, chunks = how.chunks or 128,
    schedules = how.schedules or { "gpipe" }, checkpoint = how.checkpoint or "always",
    optimizer = "RMSprop",
  })
end

local function total(plan, ...)
  local sum = 0
  for d = 1, plan.best.devices do
    for _, name in ipairs { ... } do sum = sum + plan.best.parts[d][name] end
  end
  return sum / GIB
end

local function amoebanet_row(label, count, layers, filters, theirs, how)
  local paper = amoebanet(layers, filters)
  local own = plan_amoebanet(paper, count, how)
  local most, plan = largest(9, 3, function(n)
    return plan_amoebanet(amoebanet(n, filters), count, how, SPARE)
  end)
  print(("%-12s (%d,%d) %7s %7s   %13d  %-4s  (%d,%d) %9.0fM  %7.2f %7.2f"):format(label, layers,
    filters, theirs[1], theirs[2], parameters_of(paper), own and "fits" or "no", most, filters,
    parameters_of(amoebanet(most, filters)) / 1e6, total(plan, "parameters", "gradients",
      "optimizer"), total(plan, "saved", "edges", "workspace", "batch")))
  return most
end

-- The same with the model itself: the bytes are those of the runtime's plan.
local function check(count, layers, filters)
  local model = gp.models.amoebanetd { classes = 1000, layers = layers, filters = filters }
  local plan, why = gp.plan(model, { images(1), gp.zeros({ 1 }, { dtype = "i64" }) }, {
    devices = devices(count, opt.gib), batch = 128, chunks = 128, schedules = { "gpipe" },
    checkpoint = "always", optimizer = "RMSprop", loss = nn.CrossEntropyLoss(),
    profile = amoebanet(layers, filters),
  })
  print(plan and ("  exact: (%d,%d) on %d devices takes %.2f GiB on the fullest"):format(layers,
    filters, count, math.max(table.unpack(plan.best.peak)) / GIB) or "  exact: " .. why)
end

print(("AmoebaNet-D (L,D), 224 x 224, batch 128, %d GiB devices, RMSProp; memory of ours in GiB")
  :format(opt.gib))
print(("%-12s %-8s %7s %7s   %13s  %-4s  %-8s %10s  %7s %7s"):format("", "paper", "paper",
  "torchg.", "exactly", "here", "largest", "", "weights", "values"))
local accumulated = { schedules = { "1f1b" }, checkpoint = "never" }
amoebanet_row("Naive-1", 1, 18, 208, { "82M", "81.5M" }, accumulated)
for _, row in ipairs {
  { "Pipeline-1", 1, 18, 416, { "318M", "319M" } },
  { "Pipeline-2", 2, 18, 544, { "542M", "542.7M" } },
  { "Pipeline-4", 4, 36, 544, { "1.05B", "1.06B" } },
  { "Pipeline-8", 8, 72, 512, { "1.8B", "1.84B" } },
} do
  local most = amoebanet_row(row[1], row[2], row[3], row[4], row[5], {})
  if opt.exact then
    check(row[2], row[3], row[4])
    check(row[2], most, row[4])
  end
end
print "Naive-1 adds up gradients of micro-batches of one row, without recomputation. In one pass of"
local one_pass, why = plan_amoebanet(amoebanet(18, 208), 1,
  { chunks = 1, schedules = { "naive" }, checkpoint = "never" })
print(("128 rows: %s\n"):format(one_pass and "(18,208) fits" or why))

-- ---- Transformer --------------------------------------------------------------------------------

-- Vocabulary 32,000, 1,024 tokens, width 2,048, 8,192 in between, 32 heads.
local ids = gp.zeros({ 1, 1024 }, { dtype = "i64" })
local three = gp.profile(gp.models.transformer_lm {
  vocabulary = 32000, layers = 3, width = 2048, ff = 8192, heads = 32, context = 1024, dropout = 0,
}, { ids, ids }, { device = devices(1, 16)[1], loss = nn.CrossEntropyLoss() })

local function transformer(layers) return lengthened(three, { [3] = layers - 2 }) end

local function plan_transformer(layers, count, how, share)
  return gp.plan(transformer(layers), nil, {
    devices = devices(count, 16 * (share or 1)), batch = 32, chunks = how.chunks or 32,
    schedules = { how.schedule or "gpipe" }, checkpoint = how.checkpoint or "always",
    optimizer = "RMSprop",
  })
end

print "Transformer-L, 16 GiB devices, batch 32; memory of ours in GiB"
print(("%-12s %6s %8s   %13s  %-4s  %7s %9s  %7s %7s"):format("", "paper", "paper", "exactly",
  "here", "largest", "", "weights", "values"))
for _, row in ipairs {
  { "Naive-1", 1, 3, "282.2M", { schedule = "1f1b", checkpoint = "never" } },
  { "Pipeline-1", 1, 13, "785.8M", {} }, { "Pipeline-8", 8, 103, "5.3B", {} },
  { "Pipeline-32", 32, 415, "21.0B", {} }, { "Pipeline-128", 128, 1663, "83.9B", {} },
} do
  local label, count, layers, theirs, how = table.unpack(row)
  local own = plan_transformer(layers, count, how)
  local most, plan = largest(math.max(count, 3), 1, function(n)
    return plan_transformer(n, count, how, SPARE)
  end)
  print(("%-12s %6d %8s   %13d  %-4s  %7d %8.1fB  %7.1f %7.1f"):format(label, layers, theirs,
    parameters_of(transformer(layers)), own and "fits" or "no", most,
    parameters_of(transformer(most)) / 1e9, total(plan, "parameters", "gradients", "optimizer"),
    total(plan, "saved", "edges", "workspace", "batch")))
end
