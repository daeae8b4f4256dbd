-- tests/gpu/small.lua - a few steps of everything at a small size, for tools that slow a program a
-- hundredfold.
--
-- scripts/gpu-check runs it under compute-sanitizer. Sizes are no multiples of anything, so that
-- the edges of kernels are reached; steps are launched, captured and replayed.
package.path = "./?.lua;" .. package.path
local gp = require "gpipe"
local models = require "tests.support.models"
local x, y = models.ids(7, 37), models.ids(7, 37)

for _, devices in ipairs { { "cuda:0" }, { "cuda:0", "cuda:0" } } do
  local pipe <close> = gp.pipeline(models.gpt()(), {
    balance = #devices == 1 and { 7 } or { 3, 4 }, devices = devices, chunks = 3,
    checkpoint = "except_last",
    loss = gp.nn.CrossEntropyLoss(),
  })
  pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }), { clip_norm = 1 })
  for _ = 1, 3 do print(table.concat(devices, " "), pipe:step(x, y)) end
  print("evaluated", pipe:evaluate(x, y))
end
