-- tests/spec/replicas/options_spec.lua - the options `replicas`, `sum_group` and `zero`: what they
-- accept, what they make, and what they say.

local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local function model()
  gp.seed(3)
  return nn.Sequential { nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 2) }
end

local function options(more)
  local all = { balance = { 2, 2 }, chunks = 4, loss = nn.MSELoss() }
  for key, value in pairs(more) do all[key] = value end
  return all
end

local X, Y = gp.randn({ 16, 4 }, { seed = 1 }), gp.randn({ 16, 2 }, { seed = 2 })

-- The error of gp.pipeline with these options.
local function refusal(more, change)
  local made = model()
  if change then change(made) end
  local good, message = pcall(function()
    local pipe <close> = gp.pipeline(made, options(more))
    pipe:step(X, Y)
  end)
  assert.is_false(good)
  return message
end

describe("replicas", function()
  it("need as many devices for each", function()
    assert.matches("3 devices for 2 replicas, expected as many for each: 2 or 4",
      refusal { devices = 3, replicas = 2 })
    assert.matches("3 devices for 4 replicas, expected as many for each: 4 or 4",
      refusal { devices = { "cpu:0", "cpu:1", "cpu:2" }, replicas = 4 })
  end)

  it("are at least one", function()
    assert.matches("'replicas' is 0, expected .* 1", refusal { replicas = 0 })
    assert.matches("'sum_group' is 0, expected .* 1", refusal { sum_group = 0 })
  end)

  it("need micro-batches that make a block of the tree", function()
    assert.matches("chunks = 6 in each of 2 replicas, expected 1 %(sum_group%) times a power of "
      .. "two: 4 or 8, or a sum_group that 6 is such a multiple of",
      refusal { replicas = 2, chunks = 6 })
    assert.matches("chunks = 5 in each of 2 replicas, expected 2 %(sum_group%) times a power of "
      .. "two: 4 or 8", refusal { replicas = 2, chunks = 5, sum_group = 2 })
    local pipe <close> = gp.pipeline(model(), options { replicas = 2, chunks = 6, sum_group = 3 })
    assert.truthy(pipe:step(X, Y) > 0)
  end)

  it("refuse schedules that update within a mini-batch, and those of several replicas", function()
    assert.matches("schedule 'pipedream' updates after every micro%-batch, and 2 replicas add up "
      .. "the gradients of a whole mini%-batch before its one update: expected an update after 4 "
      .. "micro%-batches of a replica %(chunks%), as in 'pipedream_2bw'",
      refusal { replicas = 2, schedule = "pipedream" })
    local built = gp.schedule.build("1f1b", { devices = 4, chunks = 4, replicas = 2 })
    assert.matches("the schedule is for 2 replicas, expected that of one",
      refusal { replicas = 2, schedule = built })
  end)

  it("refuse updates without a barrier that were not planned", function()
    local pipe <close> = gp.pipeline(model(), options { replicas = 2 })
    local opt = optim.SGD(pipe:parameters(), { lr = 0.1 })
    local good, message = pcall(pipe.use, pipe, opt, { barrier = false })
    assert.is_false(good)
    assert.matches("2 replicas that update without a barrier have values of their own: expected "
      .. "option 'barrier' = false of gp.pipeline", message, 1, true)
  end)

  it("keep moments with one owner: zero is 1 or absent", function()
    assert.matches("'zero' is 0, expected 1", refusal { replicas = 2, zero = 0 })
    local pipe <close> = gp.pipeline(model(), options { replicas = 2, zero = 1 })
    assert.truthy(pipe:step(X, Y) > 0)
  end)

  it("are seen in the printed pipeline", function()
    local pipe <close> = gp.pipeline(model(), options { replicas = 2 })
    assert.matches("chunks 4, schedule 1f1b, checkpoint .*, 2 replicas", tostring(pipe))
    assert.matches("stage 1 on cpu:1 %(%d+ threads?%), cpu:3 %(", tostring(pipe))
    assert.equal(2, pipe.replicas)
  end)
end)

describe("sum_group", function()
  -- The bits of two steps, with the update by the script.
  local function bits(more)
    local pipe <close> = gp.pipeline(model(), options(more))
    local opt = optim.SGD(pipe:parameters(), { lr = 0.5, momentum = 0.9 })
    local words = {}
    for step = 1, 2 do
      words[#words + 1] = ("%.17g"):format(pipe:step(X, Y))
      for _, entry in ipairs(pipe:parameters()) do
        words[#words + 1] = entry.param.grad:contiguous():bytes()
      end
      if step == 1 then opt:step() end
    end
    return table.concat(words)
  end

  it("of all micro-batches is what a pipeline without it does", function()
    assert.truthy(bits { chunks = 8 } == bits { chunks = 8, sum_group = 8 })
    assert.truthy(bits { chunks = 8 } == bits { chunks = 8, sum_group = 100 })
  end)

  it("of one micro-batch is what replicas = 1 does, and adds in another order", function()
    assert.truthy(bits { chunks = 8, replicas = 1 } == bits { chunks = 8, sum_group = 1 })
    assert.truthy(bits { chunks = 8 } ~= bits { chunks = 8, sum_group = 1 })
  end)

  it("makes one class of bits of all replicas and micro-batches with the same product", function()
    for _, group in ipairs { 1, 2, 4 } do
      local one = bits { chunks = 8, sum_group = group }
      for _, cell in ipairs { { 2, 4 }, { 4, 2 }, { 8, 1 } } do
        if cell[2] % group == 0 then
          assert.truthy(one == bits { replicas = cell[1], chunks = cell[2], sum_group = group })
        end
      end
    end
  end)

  it("takes any number of micro-batches without replicas, and three replicas", function()
    assert.truthy(bits { chunks = 12, replicas = 1 } == bits { chunks = 4, replicas = 3 })
    assert.truthy(#bits { chunks = 7, replicas = 1 } > 0)
    assert.truthy(#bits { chunks = 7, sum_group = 2 } > 0)
  end)

  it("gives schedules with two copies of the weights the bits of the others", function()
    local one = bits { chunks = 8, sum_group = 1 }
    assert.truthy(one == bits { chunks = 8, sum_group = 1, schedule = "dualpipe" })
    assert.truthy(one == bits { chunks = 4, replicas = 2, schedule = "chimera" })
  end)

  -- The gradients after a step and after others that add to them, by rows of one batch.
  local function accumulated(more, steps)
    local pipe <close> = gp.pipeline(model(), options(more))
    local words = {}
    for step = 1, steps do pipe:step(X, Y, { accumulate = step > 1 }) end
    for _, entry in ipairs(pipe:parameters()) do
      words[#words + 1] = entry.param.grad:contiguous():bytes()
    end
    for _, device in ipairs(pipe:memory()) do assert.equal(device.planned, device.measured) end
    return table.concat(words)
  end

  it("adds to gradients of earlier steps, of all groups but one as before", function()
    assert.truthy(accumulated({ sum_group = 1 }, 3) ==
      accumulated({ sum_group = 1, balance = { 4 } }, 3))
    assert.truthy(accumulated({ sum_group = 4 }, 3) == accumulated({}, 3))
  end)

  it("adds the same sums to them for any number of replicas", function()
    for _, group in ipairs { 1, 2 } do
      local one = accumulated({ chunks = 8, sum_group = group }, 3)
      for _, cell in ipairs { { 2, 4 }, { 4, 2 }, { 8, 1 } } do
        if cell[2] % group == 0 then
          assert.truthy(one == accumulated({ chunks = cell[2], replicas = cell[1],
            sum_group = group }, 3))
        end
      end
    end
  end)

  it("makes two steps of half the micro-batches one tree", function()
    local function halves(more)
      local pipe <close> = gp.pipeline(model(), options(more))
      pipe:step(X:narrow(1, 1, 8), Y:narrow(1, 1, 8))
      pipe:step(X:narrow(1, 9, 8), Y:narrow(1, 9, 8), { accumulate = true })
      return pipe:parameters()[1].param.grad:contiguous()
    end
    local pipe <close> = gp.pipeline(model(), options { chunks = 8, sum_group = 1 })
    pipe:step(X, Y)
    -- the mean of a half is divided by half as many rows
    local whole = pipe:parameters()[1].param.grad * 2
    assert.equal(whole:contiguous():bytes(), halves({ chunks = 2, replicas = 2 }):bytes())
  end)
end)
