-- tests/gpu/small.lua [PRECISION [own]] - a few steps of everything at a small size, for tools that
-- slow a program a hundredfold.
--
-- scripts/gpu-check runs it under compute-sanitizer. Sizes are no multiples of anything, so that
-- kernels reach their edges; steps are launched, captured and replayed. In halves cuDNN computes
-- attention where it is installed; with `own` attention has dropout, which our own kernels compute.
-- cuDNN computes convolutions too, except with GPIPE_CONVOLUTION=own.
package.path = "./?.lua;" .. package.path
local gp = require "gpipe"
local models = require "tests.support.models"
local x, y = models.ids(7, 37), models.ids(7, 37)
local precision, own = arg[1] or "f32", arg[2] == "own"
local drops = precision == "f32" or own

for _, devices in ipairs { { "cuda:0" }, { "cuda:0", "cuda:0" } } do
  local pipe <close> = gp.pipeline(models.gpt(nil, { dropout = drops and 0.1 or 0 })(), {
    balance = #devices == 1 and { 7 } or { 3, 4 }, devices = devices, chunks = 3,
    checkpoint = "except_last", precision = precision,
    loss = gp.nn.CrossEntropyLoss(),
  })
  pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }), { clip_norm = 1 })
  for _ = 1, 3 do print(precision, table.concat(devices, " "), pipe:step(x, y)) end
  print("evaluated", pipe:evaluate(x, y))
end

-- Images have 3 channels, 9 x 7; convolutions are with and without bias, strided, grouped, padded
-- at the end, transposed.
local nn = gp.nn
local pipe <close> = gp.pipeline(nn.Sequential {
  nn.Conv2d(3, 10, 3, { padding = 1 }), nn.BatchNorm2d(10), nn.ReLU(),
  nn.Conv2d(10, 6, 3, { stride = 2, groups = 2, padding = { 1, 2, 1, 2 }, bias = false }),
  nn.ConvTranspose2d(6, 5, 2, { stride = 2 }), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
  nn.Flatten(), nn.Linear(5, 3),
}, { devices = { "cuda:0" }, chunks = 3, precision = precision, loss = nn.MSELoss() })
local images, wanted = gp.randn({ 7, 3, 9, 7 }, { seed = 1 }), gp.ones { 7, 3 }
for _ = 1, 3 do print(precision, "images", pipe:step(images, wanted)) end
