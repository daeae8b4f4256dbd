-- tests/gpu/small.lua [PRECISION [own]] - a few steps of everything at a small size, for tools that
-- slow a program a hundredfold.
--
-- scripts/gpu-check runs it under compute-sanitizer. Sizes are no multiples of anything, so that
-- the edges of kernels are reached; steps are launched, captured and replayed. In halves attention
-- is cuDNN's where that is there; with `own` it drops, which our own kernels do.
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
