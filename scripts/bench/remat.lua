-- scripts/bench/remat.lua - what recomputation costs: a step with less memory against one that
-- keeps everything, in turns.
--
-- "60 %" is mode auto with a cap that leaves 0.6 of the work area of never, which holds what
-- micro-batches keep and temporaries; then 40 % and 25 %. Beside them the other modes, with what
-- they take.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure = require "figure"
local flags = require "gpipe.flags"
local nn = gp.nn

local opt = flags.parse("Time recomputation.", {
  { "--turns N", 7, "timed steps of each" }, { "--chunks N", 1, "micro-batches" },
}, arg)

local function gpt()
  return gp.models.gpt2 {
    layers = 6, width = 256, heads = 8, context = 128, vocabulary = 256, dropout = 0.1,
  }, gp.randint(0, 256, { 8, 128 }), gp.randint(0, 256, { 8, 128 })
end

local function resnet()
  return gp.models.resnet(50, { classes = 100 }), gp.randn { 8, 3, 96, 96 },
    gp.randint(0, 100, { 8 })
end

local function open(make, checkpoint, cap)
  gp.seed(1)
  local model, x, y = make()
  local pipe = gp.pipeline(model, {
    devices = { { "cpu:0", threads = 1, memory = cap } }, chunks = opt.chunks,
    checkpoint = checkpoint,
    loss = nn.CrossEntropyLoss(), deferred_batch_norm = true, schedule = "gpipe",
  })
  pipe:step(x, y)
  return { pipe = pipe, x = x, y = y, times = {} }
end

local function work_of(one)
  local areas, sum = one.pipe:memory()[1].areas, 0
  for _, name in ipairs { "saved", "recomputed", "carried", "transient", "waste" } do
    sum = sum + (areas[name] or 0)
  end
  return sum
end

local function close(one) one.pipe:close() end

-- Steps of both in turns; returns the ratio of their medians.
local function against(never, one)
  never.times, one.times = {}, {}
  for turn = 0, opt.turns do
    for _, each in ipairs { never, one } do
      local seconds = figure.seconds(function() each.pipe:step(each.x, each.y) end)
      if turn > 0 then each.times[turn] = seconds end
    end
  end
  return figure.median(never.times) / figure.median(one.times)
end

local function report(name, make)
  local never = open(make, "never")
  local work, planned = work_of(never), never.pipe:memory()[1].planned
  figure.print(name .. ".never.memory", work / 2 ^ 20, "MiB")
  local function row(what, one, bound)
    figure.print(("%s.%s.memory"):format(name, what), 100 * work_of(one) / work, "%")
    figure.print(("%s.%s.speed"):format(name, what), 100 * against(never, one), "%",
      bound and ">=", bound)
    close(one)
  end
  for _, mode in ipairs { "selective", "always" } do row(mode, open(make, mode)) end
  for _, share in ipairs { 60, 40, 25 } do
    local cap = planned - work + work * share // 100
    local good, one = pcall(open, make, "auto", cap)
    if good then
      row("auto" .. share, one, share == 60 and 95 or nil)
    else
      figure.skip(("%s.auto%d"):format(name, share), tostring(one))
    end
  end
  close(never)
end

report("remat.gpt", gpt)
report("remat.resnet50", resnet)
