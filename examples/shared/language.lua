-- examples/shared/language.lua - the loop of the examples that learn texts: steps, a line every few
-- of them, and the loss on held-out text.
local classify = require "classify"
local gp = require "gpipe"
local progress = require "gpipe.progress"

local language = {}

--- Train for opt.steps steps, epoch after epoch, in a run that --run-dir keeps.
---@param name string of the run
---@param pipe gpipe.Pipeline that uses the optimizer
---@param optimizer gpipe.Optimizer
---@param data gpipe.Dataset
---@param opt table the flags: steps, batch, seed, log (steps between two lines), quiet
---@param rate? fun(step: integer): number the learning rate
function language.train(name, pipe, optimizer, data, opt, rate)
  local started, ids = progress.now(), 0
  local run <close> = gp.run(name, {
    flags = opt, pipe = pipe, opt = optimizer, steps = opt.steps, quiet = true, unit = "ids",
    data = gp.data.epochs(data, { batch = opt.batch, seed = opt.seed }),
  })
  for step, x, y in run:steps() do
    if rate then optimizer.lr = rate(step) end
    local loss = pipe:step(x, y)
    ids = ids + x:numel()
    run:log(step, { loss = loss, lr = optimizer.lr }, x:numel())
    if not opt.quiet and (step % opt.log == 0 or step == opt.steps) then
      print(("step %4d of %d  loss %.3f  %s ids/s  bubble %.0f %%"):format(step, opt.steps, loss,
        progress.short(ids / (progress.now() - started)), progress.bubble(pipe.stats)))
    end
  end
  run:finish()
end

--- Return the mean loss in nats over at most `batches` held-out batches.
---@return number
function language.loss(pipe, data, batch, batches)
  local sum, count = 0, 0
  for x, y in data:batches(batch) do
    sum, count = sum + pipe:evaluate(x, y), count + 1
    if count == batches then break end
  end
  return sum / count
end

--- Print a text that begins with `ids` and that the model continues, without control characters.
---@param pipe gpipe.Pipeline
---@param ids gpipe.Tensor of the beginning, i64 [T]
---@param opts table of gp.models.generate
---@param decode fun(ids: gpipe.Tensor): string
function language.sample(pipe, ids, opts, decode)
  local text = decode(gp.models.generate(pipe, ids, opts)):gsub("[^%g%s\128-\255]", "?")
  print("---- a sample\n" .. text .. "\n----")
end

--- Make a pseudo-random text of simple sentences, to train without a data set.
---@param count integer sentences
---@return string[]
function language.sentences(count)
  local who = { "The fox", "A small boat", "The old teacher", "My neighbour", "Every engine" }
  local does = { "crosses", "follows", "remembers", "paints", "waits for" }
  local what = { "the river", "a narrow road", "the blue house", "two of the children",
    "the train" }
  local when = { "at night", "in May", "after the rain", "without a word", "on Mondays" }
  local list, state = {}, 1
  local function pick(words)
    state = state * 1103515245 + 12345 & 0x7fffffff
    return words[(state >> 16) % #words + 1]
  end
  for i = 1, count do
    list[i] = ("%s %s %s %s."):format(pick(who), pick(does), pick(what), pick(when))
  end
  return list
end

--- Write a text to a temporary file. The caller removes it after reading.
---@param text string
---@return string path
function language.temporary(text)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
  return path
end

-- The helpers for command lines and missing data are those of the image examples.
language.balance, language.missing = classify.balance, classify.missing

return language
