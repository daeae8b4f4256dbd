-- tests/support/ranks_accumulate.lua - a run that accumulates gradients over four mini-batches.
-- Arguments: its folder, and the step before which it fails, if any. Prints the weights' bits.

local gp = require "gpipe"
local nn = gp.nn
local folder, stop = arg[1], tonumber(arg[2])

gp.seed(3)
local model = nn.Sequential { nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 2) }
local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss(), balance = { 2, 2 }, chunks = 2 })
local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
local data = gp.data.tensors(gp.randn({ 64, 4 }, { seed = 1 }), gp.randn({ 64, 2 }, { seed = 2 }))
local accumulate, ema = gp.train.accumulate(pipe, 4), gp.train.ema(pipe, { decay = 0.9 })
local run <close> = gp.run("accumulated", {
  dir = folder, pipe = pipe, opt = opt, data = gp.data.epochs(data, { batch = 8, seed = 1 }),
  steps = 14, every = 3, quiet = true, state = { accumulate = accumulate, ema = ema },
})
for step, x, y in run:steps() do
  if step == stop then error "stopped here" end
  if accumulate(x, y) then
    opt:step()
    ema:update()
  end
  run:log(step, { count = accumulate.count })
end
run:finish()
local state, averages = pipe:state_dict(), ema:state_dict()
for _, name in ipairs { "1.weight", "1.bias", "4.weight", "4.bias" } do
  local a, b = state[name]:sum():item(), averages[name]:sum():item()
  if gp.rank() == 0 then print(name, ("%a %a"):format(a, b)) end
end
