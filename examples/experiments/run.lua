-- examples/experiments/run.lua - the tables of the GPipe and torchgpipe papers, reproduced at the
-- size of the machine at hand.
--
--   gpipe-lua examples/experiments/run.lua                         all of them, small
--   gpipe-lua examples/experiments/run.lua --only unet-memory
--   gpipe-lua examples/experiments/run.lua --scale full            the published sizes
--
-- Every table has the published figures beside ours and says which of ours are measured, which
-- planned or simulated, and on what.
local folder = arg[0]:match "^(.*/)[^/]*$" or "./"
package.path = folder .. "tables/?.lua;" .. package.path
local gp = require "gpipe"
local flags = require "gpipe.flags"
local ablation, accuracy = require "ablation", require "accuracy"
local memory, speed = require "memory", require "speed"
local published = require "published"

local opt = flags.parse("Reproduce published experiments.", {
  { "--only NAME", nil, "one experiment: see README.md" },
  { "--scale SIZE", "small", "tiny, small or full (full wants GPUs)" },
  { "--rows N", 99, "rows of each table" },
  { "--seed N", 1, "seed of weights and data", min = 0 },
}, arg)

local SIZES = { tiny = 1, small = 2, full = 3 }
local size = SIZES[opt.scale]
if not size then
  io.stderr:write(("run.lua: --scale is '%s', expected tiny, small or full\n"):format(opt.scale))
  os.exit(2)
end
gp.seed(opt.seed)

-- Returns one of three values, by the size in --scale.
local function pick(tiny, small, full) return ({ tiny, small, full })[size] end

local function about(text, ...) return text:format(...) end

-- ---- speed --------------------------------------------------------------------------------------

local function images_and_classes(side, classes)
  return function(n) return gp.rand { n, 3, side, side }, gp.randint(0, classes, { n }) end
end

local function images_and_masks(side)
  return function(n) return gp.rand { n, 3, side, side }, gp.ones { n, 1, side, side } end
end

local SMALLER = { micro = pick(2, 2, nil), chunks = pick(2, 8, nil), rows = opt.rows }

local function resnet_speed()
  local side = pick(32, 64, 224)
  speed.run({
    title = "ResNet-101 speed", rows = published.resnet101, loss = speed.loss.classes,
    full = size == 3,
    model = function() return gp.models.resnet(101) end,
    batch = images_and_classes(side, 1000),
    about = about("%d x %d, %s", side, side, pick("2 a micro-batch", "2 a micro-batch",
      "published batches")),
  }, SMALLER)
end

local function amoebanet_speed()
  local filters = pick(16, 32, 256)
  speed.run({
    title = "AmoebaNet-D (18, 256) speed", rows = published.amoebanet, loss = speed.loss.classes,
    full = size == 3,
    model = function() return gp.models.amoebanetd { layers = 18, filters = filters } end,
    batch = images_and_classes(224, 1000),
    about = about("(18, %d), 224 x 224", filters),
  }, { micro = pick(1, 1, nil), chunks = SMALLER.chunks, rows = opt.rows })
end

local function unet_speed()
  local channels, side = pick(4, 16, 64), pick(64, 96, 192)
  speed.run({
    title = "U-Net (5, 64) speed", rows = published.unet, loss = speed.loss.mask,
    full = size == 3,
    model = function() return gp.models.unet { channels = channels } end,
    batch = images_and_masks(side), about = about("(5, %d), %d x %d", channels, side, side),
  }, SMALLER)
end

-- ---- memory -------------------------------------------------------------------------------------

local function amoebanet_memory()
  memory.run({
    title = "AmoebaNet-D (L, F) memory", rows = published.amoebanet_memory,
    loss = speed.loss.classes, size = 128, bytes = 12,
    peak = "activations and what else a step needs, beside the model",
    what = function(row) return ("(%d, %d)"):format(row.layers, row.filters) end,
    model = function(row)
      return gp.models.amoebanetd { layers = row.layers, filters = row.filters }
    end,
    batch = images_and_classes(224, 1000),
    about = about("the same layers with %d filters, batch %d", pick(16, 32, 64), pick(2, 4, 16)),
  }, {
    batch = pick(2, 4, 16), rows = opt.rows,
    shrink = function(row)
      return setmetatable({ filters = pick(16, 32, 64) }, { __index = row })
    end,
  })
end

local function unet_memory()
  local side = 192
  memory.run({
    title = "U-Net (B, C) memory", rows = published.unet_memory, loss = speed.loss.mask,
    size = 32, bytes = 8, whole = true, peak = "all of it, with parameters and gradients",
    what = function(row) return ("(%d, %d)"):format(row.convs, row.channels) end,
    model = function(row)
      return gp.models.unet { convs = row.convs, channels = row.channels }
    end,
    batch = images_and_masks(side),
    about = about("the same layers with %d channels, batch %d", pick(2, 4, 16), pick(1, 2, 8)),
  }, {
    batch = pick(1, 2, 8), rows = opt.rows,
    shrink = function(row)
      return setmetatable({ channels = pick(2, 4, 16) }, { __index = row })
    end,
  })
end

-- ---- all ----------------------------------------------------------------------------------------

local EXPERIMENTS = {
  { "resnet101-accuracy", function()
    accuracy.run(folder .. "../data/", {
      epochs = pick(1, 12, 90), seeds = pick(1, 3, 5), images = pick(128, nil, nil),
    })
  end },
  { "resnet101-speed", resnet_speed },
  { "amoebanet-speed", amoebanet_speed },
  { "amoebanet-memory", amoebanet_memory },
  { "unet-speed", unet_speed },
  { "unet-memory", unet_memory },
  { "unet-ablation", function()
    ablation.run {
      channels = pick(4, 16, 64), side = pick(64, 96, 192), batch = pick(8, 16, 128),
      steps = pick(1, 3, 5),
    }
  end },
}

local known, ran = {}, false
for i, experiment in ipairs(EXPERIMENTS) do
  known[i] = experiment[1]
  if not opt.only or opt.only == experiment[1] then
    experiment[2]()
    ran = true
  end
end
if not ran then
  io.stderr:write(("run.lua: --only is '%s', expected one of %s\n"):format(opt.only,
    table.concat(known, ", ")))
  os.exit(2)
end
