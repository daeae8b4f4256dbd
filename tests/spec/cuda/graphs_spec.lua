-- tests/spec/cuda/graphs_spec.lua - how many captured graphs a step launches, and that they give
-- the bits of tasks that are enqueued one by one.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local nn, optim = gp.nn, gp.optim

local on_gpu = gpu.spec(it)

local function pipeline(options)
  gp.seed(3)
  options.loss = options.loss or nn.MSELoss()
  return gp.pipeline(nn.Sequential { nn.Linear(4, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 4) },
    options)
end

local function batch(rows)
  gp.seed(5)
  return gp.randn { rows, 4 }, gp.randn { rows, 4 }
end

-- Returns "3/17 2/17": graphs and tasks of each device, after a step of so many rows.
local function counts(options, use, rows)
  local pipe <close> = pipeline(options)
  if use then pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }), use) end
  pipe:step(batch(rows or 8))
  local text = {}
  for d, device in ipairs(pipe:describe().devices) do
    text[d] = ("%d/%d"):format(device.graphs.count, device.graphs.tasks)
  end
  return table.concat(text, " ")
end

-- ---- how many ----------------------------------------------------------------------------------

describe("a step launches", function()
  local one = { "cuda:0" }

  on_gpu("one graph on one GPU, however many micro-batches there are", function()
    assert.are.equal("1/2", counts({ devices = one, chunks = 1 }))
    assert.are.equal("1/16", counts({ devices = one, chunks = 8 }))
    assert.are.equal("1/16", counts({ devices = one, chunks = 8, schedule = "gpipe",
      checkpoint = "never" }))
  end)

  on_gpu("the same with updates and clipping, which the host decides on", function()
    assert.are.equal("1/16", counts({ devices = one, chunks = 8 }, {}))
    assert.are.equal("1/16", counts({ devices = one, chunks = 8 }, { clip_norm = 1 }))
  end)

  on_gpu("one for each task that another device waits for, or that waits for one", function()
    local two = { devices = { "cuda:0", "cuda:0" }, chunks = 4 }
    assert.are.equal("6/8 4/8", counts(two)) -- F2, F3 after a B; the last stage runs F and B
  end)

  on_gpu("none on a CPU", function()
    assert.are.equal("0/0", counts { devices = { "cpu:0" }, chunks = 4 })
  end)

  on_gpu("more where the host has many rows to bring while the device works", function()
    local wide = { devices = one, chunks = 4, schedule = "1f1b" }
    assert.are.equal("1/8", counts(wide, nil, 4 * 1024))
    assert.are.equal("4/8", counts(wide, nil, 4 * 65536)) -- 2 MiB of rows in a micro-batch
  end)

  on_gpu("no fewer in a stream, whose addresses change", function()
    assert.are.equal("0/0 0/0", counts({ devices = { "cuda:0", "cuda:0" }, chunks = 4,
      schedule = "pipedream" }, {}))
  end)
end)

it("a description says how many graphs there are for how many tasks", function()
  if gpu.count() == 0 then pending "no CUDA device" return end
  local pipe <close> = pipeline { devices = { "cuda:0" }, chunks = 8 }
  assert.matches("device 0 (cuda:0): nothing planned yet", tostring(pipe:describe()), 1, true)
  pipe:step(batch(8))
  assert.matches("device 0 (cuda:0): 1 graph for 16 tasks", tostring(pipe:describe()), 1, true)
end)

-- ---- what they do ------------------------------------------------------------------------------

-- Trains for five steps, every other of which adds to the gradients of the one before, and returns
-- what there is to compare.
local function train(options, each)
  local pipe <close> = pipeline(options)
  local opt, seen = optim.SGD(pipe:parameters(), { lr = 0.05 }), {}
  local x, y = batch(7)
  for i = 1, 8 do
    each(pipe, function()
      seen[#seen + 1] = ("%a"):format(pipe:step(x, y, { accumulate = i % 2 == 0 }))
    end)
    if i % 2 == 0 then opt:step() end
    if i % 4 == 3 then seen[#seen + 1] = tostring(pipe:forward(x)) end
  end
  return table.concat(seen, " ")
end

describe("launched, captured and replayed steps give the same bits", function()
  for title, options in pairs {
    ["on one GPU"] = { devices = { "cuda:0" }, chunks = 3 },
    ["on one GPU, with recomputation"] = {
      devices = { "cuda:0" }, chunks = 3, checkpoint = "always", schedule = "gpipe",
    },
    ["on two stages"] = { devices = { "cuda:0", "cuda:0" }, chunks = 3 },
    ["in bf16"] = { devices = { "cuda:0" }, chunks = 3, precision = "bf16" },
  } do
    on_gpu(title, function()
      local graphs = train(options, function(_, step) step() end)
      local launched = train(options, function(pipe, step) pipe:profile(step, { eager = true }) end)
      assert.are.equal(launched, graphs)
    end)
  end
end)

on_gpu("a replayed graph says when each of its tasks ran", function()
  local pipe <close> = pipeline { devices = { "cuda:0" }, chunks = 4 }
  local x, y = batch(8)
  for _ = 1, 3 do pipe:step(x, y) end
  local before, names = 0, {}
  for _, event in ipairs(pipe:timeline()[1]) do
    assert.is_true(event.begin >= before and event.finish >= event.begin)
    before, names[#names + 1] = event.finish, event.op .. event.micro
  end
  assert.are.equal("F0 B0 F1 B1 F2 B2 F3 B3", table.concat(names, " "))
end)
