-- examples/shared/classify.lua - the loop of the examples that tell images apart: epochs of steps,
-- a line of progress, then the share of right answers on images that were held out.
local gp = require "gpipe"

local classify = {}

--- Train until `epochs` or `steps` are over, in a run that --run-dir keeps.
---@param pipe gpipe.Pipeline that uses the optimizer
---@param optimizer gpipe.Optimizer
---@param data gpipe.Dataset
---@param opt table name, flags, epochs, steps, batch, seed; workers: threads that prepare batches
---@param rate? fun(step: integer, total: integer): number the learning rate
function classify.train(pipe, optimizer, data, opt, rate)
  local epochs = gp.data.epochs(data, {
    batch = opt.batch, seed = opt.seed, epochs = opt.epochs, workers = opt.workers,
    drop_last = #data >= opt.batch,
  })
  local total = math.min(opt.steps, epochs:steps())
  local run <close> = gp.run(opt.name, {
    flags = opt.flags, pipe = pipe, opt = optimizer, data = epochs, steps = total, unit = "images",
  })
  for step, x, y in run:steps() do
    if rate then optimizer.lr = rate(step, total) end
    local loss = pipe:step(x, y)
    run:log(step, { loss = loss, lr = optimizer.lr })
  end
  run:finish()
end

--- Return the percentage of images that the model classifies right.
---@param pipe gpipe.Pipeline
---@param data gpipe.Dataset
---@param batch integer
---@return number
function classify.accuracy(pipe, data, batch)
  pipe:eval()
  local right = 0
  for x, y in data:batches(batch) do
    local class = pipe:forward(x):argmax(2) - 1 -- positions count from 1, classes from 0
    right = right + class:eq(y):sum():item()
  end
  pipe:train()
  return 100 * right / #data
end

--- Parse a list of numbers such as "44,92,124,110".
---@param text string
---@return integer[]
function classify.balance(text)
  local list = {}
  for word in text:gmatch "[^,]+" do list[#list + 1] = math.tointeger(tonumber(word)) or word end
  return list
end

--- Print one line that says what is missing, and end the script.
---@param where string
function classify.missing(where)
  io.stderr:write(("%s: no data: %s; or try --synthetic\n"):format(arg[0], where))
  os.exit(1, true)
end

return classify
