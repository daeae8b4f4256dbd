-- examples/experiments/tables/published.lua - what torchgpipe and GPipe published, row by row.
--
-- torchgpipe: kakaobrain/torchgpipe v0.0.7, docs/benchmarks.rst and benchmarks/*/README.md; 8 Tesla
-- P40, PyTorch 1.3, float32. GPipe: Huang et al. 2019 (arXiv 1811.06965), as torchgpipe quotes it;
-- other hardware. `rate` is in samples per second, `huang` a speed-up, memory in GiB over all
-- devices.

local published = {}

-- ---- speed --------------------------------------------------------------------------------------

published.resnet101 = {
  { run = "baseline", batch = 118, balance = { 370 }, checkpoint = "never", rate = 95.862,
    huang = 1 },
  { run = "pipeline-1", batch = 220, chunks = 2, balance = { 370 }, rate = 81.796, huang = 0.800 },
  { run = "pipeline-2", batch = 25000, chunks = 1667, balance = { 135, 235 }, rate = 135.539,
    huang = 1.418 },
  { run = "pipeline-4", batch = 5632, chunks = 256, balance = { 44, 92, 124, 110 }, rate = 265.958,
    huang = 2.182 },
  { run = "pipeline-8", batch = 5400, chunks = 150, balance = { 26, 22, 33, 44, 44, 66, 66, 69 },
    rate = 411.662, huang = 2.891 },
}

published.amoebanet = {
  { run = "n2m1", batch = 96, balance = { 7, 17 }, checkpoint = "always", rate = 26.733,
    huang = 1 },
  { run = "n2m4", batch = 256, chunks = 4, balance = { 9, 15 }, rate = 41.133, huang = 1.07 },
  { run = "n2m32", batch = 1280, chunks = 32, balance = { 9, 15 }, rate = 47.386, huang = 1.21 },
  { run = "n4m1", batch = 160, balance = { 3, 4, 5, 12 }, checkpoint = "always", rate = 26.827,
    huang = 1.13 },
  { run = "n4m4", batch = 360, chunks = 4, balance = { 3, 6, 7, 8 }, rate = 44.543, huang = 1.26 },
  { run = "n4m32", batch = 1152, chunks = 32, balance = { 3, 6, 7, 8 }, rate = 72.412,
    huang = 1.84 },
  { run = "n8m1", batch = 196, balance = { 2, 2, 2, 2, 2, 3, 4, 7 }, checkpoint = "always",
    rate = 24.918, huang = 1.38 },
  { run = "n8m4", batch = 480, chunks = 4, balance = { 2, 2, 2, 3, 3, 4, 4, 4 }, rate = 70.065,
    huang = 1.72 },
  { run = "n8m32", batch = 1280, chunks = 32, balance = { 2, 2, 2, 3, 3, 4, 4, 4 }, rate = 132.413,
    huang = 3.48 },
}

published.unet = {
  { run = "baseline", batch = 40, balance = { 241 }, checkpoint = "never", rate = 28.500 },
  { run = "pipeline-1", batch = 80, chunks = 2, balance = { 241 }, rate = 24.456 },
  { run = "pipeline-2", batch = 512, chunks = 32, balance = { 104, 137 }, rate = 35.502 },
  { run = "pipeline-4", batch = 512, chunks = 16, balance = { 30, 66, 84, 61 }, rate = 67.042 },
  { run = "pipeline-8", batch = 640, chunks = 40, balance = { 16, 27, 31, 44, 22, 57, 27, 17 },
    rate = 88.497 },
}

-- ---- memory -------------------------------------------------------------------------------------

-- AmoebaNet-D of `layers` cells and `filters`; model: parameters, gradients and RMSprop's averages;
-- peak: the memory beside the model, nil where the run ran out of memory.
published.amoebanet_memory = {
  { run = "baseline", layers = 18, filters = 208, balance = { 24 }, chunks = 1,
    checkpoint = "never", model = 0.91, huang = 6.26 },
  { run = "pipeline-1", layers = 18, filters = 416, balance = { 24 }, model = 3.57, peak = 0.91,
    huang = 3.46 },
  { run = "pipeline-2", layers = 18, filters = 544, balance = { 16, 8 }, model = 6.07, peak = 3.39,
    huang = 8.11 },
  { run = "pipeline-4", layers = 36, filters = 544, balance = { 16, 12, 7, 7 }, model = 11.80,
    peak = 6.91, huang = 15.21 },
  { run = "pipeline-8", layers = 72, filters = 512, balance = { 23, 16, 11, 6, 6, 5, 5, 6 },
    model = 20.62, peak = 10.83, huang = 26.24 },
}

-- U-Net with `convs` units in a cell and `channels`; peak: all of the memory.
published.unet_memory = {
  { run = "baseline", convs = 6, channels = 72, balance = { 285 }, chunks = 1,
    checkpoint = "never", peak = 20.3 },
  { run = "pipeline-1", convs = 11, channels = 128, balance = { 505 }, peak = 20.5 },
  { run = "pipeline-2", convs = 24, channels = 128, balance = { 526, 551 }, peak = 43.4 },
  { run = "pipeline-4", convs = 24, channels = 160, balance = { 472, 54, 36, 515 }, peak = 79.1 },
  { run = "pipeline-8", convs = 48, channels = 160,
    balance = { 800, 140, 62, 36, 36, 36, 36, 987 }, peak = 154.1 },
}

-- ---- accuracy and the parts of the timeline -----------------------------------------------------

-- ResNet-101 on ImageNet: top-1 error in percent, mean of five runs.
published.accuracy = {
  { run = "dataparallel-256", batch = 256, chunks = 1, error = 22.02 },
  { run = "pipeline-256", batch = 256, chunks = 4, error = 21.99 },
  { run = "pipeline-1k", batch = 1024, chunks = 64, error = 22.24 },
  { run = "pipeline-4k", batch = 4096, chunks = 64, error = 22.13 },
}

-- U-Net (5, 64) over four devices, batch 128, 8 micro-batches.
published.ablation = {
  { run = "none", rate = 30.662, memory = 52.2 },
  { run = "ordering", rate = 41.306, memory = 19.1 },
  { run = "ordering, streams", rate = 55.191, memory = 30.0 },
  { run = "ordering, streams, portals", rate = 58.477, memory = 23.5 },
}

return published
