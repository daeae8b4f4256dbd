-- examples/shared/classify.lua - the loop of the examples that tell images apart: epochs of steps,
-- a line of progress, then the share of right answers on images that were held out.
local progress = require "gpipe.progress"

local classify = {}

--- Train until `epochs` or `steps` are over.
---@param pipe gpipe.Pipeline with an optimizer that it uses
---@param data gpipe.Dataset
---@param opt table epochs, steps, batch, seed, quiet; workers: threads that prepare batches
---@param rate? fun(step: integer, total: integer) sets the learning rate
function classify.train(pipe, data, opt, rate)
  local total = math.min(opt.steps, opt.epochs * math.max(1, #data // opt.batch))
  local line = progress.new { steps = total, quiet = opt.quiet, unit = "images" }
  local step, images = 0, 0
  while step < total do
    local order = data:shuffle(opt.seed * 1000 + step)
    for x, y in order:batches(opt.batch, { drop_last = #data >= opt.batch }) do
      step, images = step + 1, images + x.shape[1]
      if rate then rate(step, total) end
      local loss = pipe:step(x, y)
      line:update(step, {
        loss = loss, rate = images / line:elapsed(), bubble = progress.bubble(pipe.stats),
      })
      if step == total then break end
    end
  end
  line:finish()
end

--- Percent of the images that the model tells right.
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

--- "44,92,124,110" as a list.
---@param text string
---@return integer[]
function classify.balance(text)
  local list = {}
  for word in text:gmatch "[^,]+" do list[#list + 1] = math.tointeger(tonumber(word)) or word end
  return list
end

--- What to do where there is no data: one line, then the end.
---@param where string
function classify.missing(where)
  io.stderr:write(("%s: no data: %s; or try --synthetic\n"):format(arg[0], where))
  os.exit(1, true)
end

return classify
