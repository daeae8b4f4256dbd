-- tests/spec/plan/memory_spec.lua - pipe:memory(): what is planned is what is allocated, to the
-- byte, and the plans of a pipeline share one work area.

local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local MODES = { "never", "selective", "except_last", "always", "auto" }
local SCHEDULES = { "gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "dualpipe", "pipedream" }
local WORK = { "saved", "recomputed", "carried", "transient" }

local function mlp()
  local list = {}
  for i = 1, 5 do
    list[i] = nn.Sequential { nn.LayerNorm(24), nn.Linear(24, 56), nn.GELU(), nn.Linear(56, 24) }
  end
  list[6] = nn.Linear(24, 10)
  return nn.Sequential(list)
end

local function gpt()
  return gp.models.gpt2 {
    layers = 3, width = 32, heads = 2, context = 12, vocabulary = 40, dropout = 0.1,
  }
end

local function images()
  return nn.Sequential {
    nn.Conv2d(3, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(),
    nn.Conv2d(8, 8, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(8 * 9, 10),
  }
end

gp.seed(1)
local ids = gp.randint(0, 40, { 9, 12 })
local CASES = {
  { "an MLP", mlp, gp.randn { 9, 24 }, gp.randint(0, 10, { 9 }) },
  { "a GPT with tied weights", gpt, ids, ids },
  { "convolutions with batch norm", images, gp.randn { 9, 3, 6, 6 }, gp.randint(0, 10, { 9 }) },
}

-- What no pipeline does: stages that are updated at different times cannot share a parameter, and
-- two copies of a stage no running statistics.
local LACKS = {
  ["a GPT with tied weights"] = "pipedream", ["convolutions with batch norm"] = "dualpipe",
}

local TWO = { { "cpu:0", threads = 1 }, { "cpu:1", threads = 1 } }

local function open(case, opts)
  gp.seed(3)
  opts.loss, opts.devices = nn.CrossEntropyLoss(), opts.devices or TWO
  opts.deferred_batch_norm = true
  return gp.pipeline(case[2](), opts)
end

local function sum_of(areas, names)
  local sum = 0
  for _, name in ipairs(names) do sum = sum + (areas[name] or 0) end
  return sum
end

-- Checks that every device holds what is planned, that the areas add up, and that the lower bound
-- leaves out waste alone.
local function check(pipe, what)
  for _, one in ipairs(pipe:memory()) do
    local sum = 0
    for _, bytes in pairs(one.areas) do sum = sum + bytes end
    assert.equal(one.measured, one.planned, what .. ": " .. one.name)
    assert.equal(sum, one.planned, what .. ": areas of " .. one.name)
    assert.equal(one.planned - (one.areas.waste or 0), one.lower_bound, what)
  end
end

-- Bytes of the work areas, by device.
local function work_of(pipe)
  local list = {}
  for d, one in ipairs(pipe:memory()) do list[d] = sum_of(one.areas, WORK) end
  return list
end

local function rows_of(tensor, count) return tensor:narrow(1, 1, count) end

describe("pipe:memory()", function()
  for _, case in ipairs(CASES) do
    for _, schedule in ipairs(SCHEDULES) do
      local check_it = LACKS[case[1]] ~= schedule and it or function() end
      check_it(("holds what it has planned: %s, %s"):format(case[1], schedule), function()
        for _, checkpoint in ipairs(MODES) do
          for _, precision in ipairs { "f32", "bf16" } do
            local pipe <close> = open(case, {
              chunks = 4, schedule = schedule, checkpoint = checkpoint, precision = precision,
            })
            local opt = optim.AdamW(pipe:parameters(), { lr = 1e-3 })
            if schedule == "pipedream" then pipe:use(opt) end
            for _ = 1, 2 do
              pipe:step(case[3], case[4])
              if schedule ~= "pipedream" then opt:step() end
            end
            pipe:flush()
            check(pipe, checkpoint .. ", " .. precision)
          end
        end
      end)
    end
  end

  it("counts the work area of several plans once, as large as the largest needs it", function()
    for _, case in ipairs(CASES) do
      local pipe <close> = open(case, { chunks = 2, checkpoint = "never" })
      check(pipe, "before a plan")
      pipe:evaluate(rows_of(case[3], 4), rows_of(case[4], 4))
      local small = work_of(pipe)
      check(pipe, "one plan")
      pipe:step(case[3], case[4])
      local large = work_of(pipe)
      check(pipe, "two plans")
      pipe:step(rows_of(case[3], 6), rows_of(case[4], 6))
      pipe:evaluate(case[3], case[4])
      pipe:eval()
      pipe:forward(case[3])
      assert.same(large, work_of(pipe))
      for d = 1, 2 do assert.is_true(small[d] < large[d]) end
      check(pipe, "five plans")
    end
  end)

  it("holds with a forward pass whose backward pass is called by the script", function()
    local case = CASES[1]
    local pipe <close> = open(case, { chunks = 3, checkpoint = "always" })
    local y = pipe:forward(case[3])
    check(pipe, "forward")
    pipe:backward(gp.ones(y.shape))
    check(pipe, "backward")
  end)

  it("names what a device holds, and shows it as a table", function()
    local case = CASES[2]
    local pipe <close> = open(case, { chunks = 2 })
    pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-3 }))
    pipe:step(case[3], case[4])
    local memory = pipe:memory()
    local areas = memory[1].areas
    assert.equal(areas.parameters, areas.gradients)
    assert.equal(2 * areas.parameters, areas.optimizer)
    local text = tostring(memory)
    for _, word in ipairs { "cpu:0", "cpu:1", "saved", "planned", "measured", "lower bound" } do
      assert.is_truthy(text:find(word, 1, true), word)
    end
    assert.is_nil(text:find("cap", 1, true))
  end)

  it("has a row for every area of every device", function()
    local summed = false
    for _, options in ipairs { { sum_group = 1 }, { schedule = "dualpipe" }, { replicas = 2 } } do
      options.chunks = 4
      local case = CASES[1]
      local pipe <close> = open(case, options)
      pipe:step(case[3], case[4])
      local memory = pipe:memory()
      local text = tostring(memory)
      for _, device in ipairs(memory) do
        for name in pairs(device.areas) do
          assert.is_truthy(("\n" .. text):find("\n" .. name .. "  ", 1, true), name)
        end
      end
      summed = summed or memory[1].areas["partial sums"] ~= nil
    end
    assert.is_true(summed)
  end)
end)
