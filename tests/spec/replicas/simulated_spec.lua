-- tests/spec/replicas/simulated_spec.lua - replicas of a stream as they are simulated: they run what
-- a pipeline's plan runs, and wait for each other where it does.

local gp = require "gpipe"
local nn = gp.nn

local CHUNKS, BATCHES = 4, 5

-- The plan's rows for so many replicas of two stages, and the schedule that stands for them.
local function both(replicas)
  local layers = {}
  for i = 1, 4 do layers[i] = nn.Linear(6, 6) end
  local rows = replicas * CHUNKS
  local dry = gp.dry_run(nn.Sequential(layers), { replicas = replicas, balance = { 2, 2 },
    chunks = CHUNKS, devices = 2 * replicas, checkpoint = "never", loss = nn.MSELoss(),
    schedule = { "pipedream_2bw", batches = BATCHES },
    sample = { gp.zeros { rows, 6 }, gp.zeros { rows, 6 } } })
  local s = gp.schedule.build("pipedream_2bw", { devices = 2 * replicas, chunks = CHUNKS,
    replicas = replicas, batches = BATCHES })
  return dry:rows(), s:lower { comms = false, update = "none" }
end

local SIMULATED = { F = true, B = true, U = true, REDUCE_GRAD = true }

-- The actions of a row: {stage, op, number}; those of the plan carry versions.
local function actions_of(row)
  local list = {}
  for text in row:gmatch "[^,]+" do
    local stage, op, micro, version = text:match "^(%d+)([%a_]+)(%d*)@?(%d*)$"
    list[#list + 1] = { stage = stage, op = op, micro = micro, version = tonumber(version) }
  end
  return list
end

local function names_of(list)
  local names = {}
  for _, action in ipairs(list) do
    if SIMULATED[action.op] then names[#names + 1] = action.stage .. action.op .. action.micro end
  end
  return table.concat(names, ",")
end

-- The time of an action of a simulated device.
local function find(timeline, op, micro)
  for _, action in ipairs(timeline) do
    if action.op == op and (micro == nil or action.micro == micro) then return action end
  end
end

-- The reductions of a device in order.
local function reductions(timeline)
  local list = {}
  for _, action in ipairs(timeline) do
    if action.op == "REDUCE_GRAD" then list[#list + 1] = action end
  end
  return list
end

describe("simulated replicas of a stream", function()
  for _, replicas in ipairs { 2, 4 } do
    it(("run the actions of a plan of %d replicas, in its order"):format(replicas), function()
      local planned, s = both(replicas)
      for d, row in ipairs(s:rows()) do
        assert.equal(names_of(actions_of(planned[d])), names_of(actions_of(row)))
      end
    end)
  end

  it("take over new values where the plan has UNSHARD", function()
    local planned, s = both(2)
    local ran = s:simulate { F = 1, B = 2, values = 1000 }
    local found = 0
    for d, row in ipairs(planned) do
      local actions, own, other = actions_of(row), ran:timeline(d - 1), ran:timeline((d + 1) % 4)
      for i, action in ipairs(actions) do
        if action.op == "UNSHARD" and action.version > 0 then
          local k = i + 1
          while not SIMULATED[actions[k].op] do k = k + 1 end
          local micro = tonumber(actions[k].micro)
          local first = micro and find(own, actions[k].op, micro)
            or reductions(own)[action.version + 1]
          -- version v was made by update v - 1
          local ready = find(other, "U", action.version - 1).finish + 1000
          -- stage 0 updates later than stage 1, and runs this micro-batch when it has the new
          -- version, so what stage 1 reads of it may come behind the values
          if d % 2 == 0 and micro then
            ready = math.max(ready, find(ran:timeline(d - 2), "F", micro).finish)
          end
          assert.equal(ready, first.begin)
          found = found + 1
        end
      end
    end
    assert.equal(4 * (BATCHES - 1), found)
  end)

  -- The last backward pass of mini-batch k, from 0, in a replica, from 0.
  local function last_backward(timeline, replica, k)
    return find(timeline, "B", (2 * k + replica) * CHUNKS + CHUNKS - 1).finish
  end

  it("wait in every reduction for the last backward pass of the others in its batch", function()
    local _, s = both(2)
    local sums = { 7, 11 } -- longer than a forward pass
    local ran = s:simulate { F = 1, B = { 2, 3 }, sums = sums }
    for d = 0, 3 do
      local other, list = ran:timeline((d + 2) % 4), reductions(ran:timeline(d))
      assert.equal(BATCHES, #list)
      for k, action in ipairs(list) do
        local last = last_backward(other, 1 - d // 2, k - 1)
        assert.equal(last + sums[d % 2 + 1], action.begin)
      end
    end
  end)

  it("begin a reduction behind the next forward pass where gradients come sooner", function()
    local _, s = both(2)
    local sums = { 0.25, 0.5 }
    local ran = s:simulate { F = 1, B = { 2, 3 }, sums = sums }
    for d = 0, 3 do
      local own = ran:timeline(d)
      for k, action in ipairs(reductions(own)) do
        local last = last_backward(own, d // 2, k - 1)
        -- the replicas are alike; nothing follows the last mini-batch
        assert.equal(last + (k < BATCHES and 1 or sums[d % 2 + 1]), action.begin)
      end
    end
  end)

  it("send gradients where the plan does, ahead of that forward pass", function()
    for _, row in ipairs((both(2))) do
      local sends, forwards = 0, 0
      row = row:gsub("%dSEND_B%d+,", "") -- goes to the stage before, right behind B
      for between in row:gmatch "%dB%d+@%d+,%dSEND@%d+,(.-)%dREDUCE_GRAD@" do
        sends = sends + 1
        forwards = forwards + select(2, between:gsub("%dF%d+@", ""))
        assert.is_nil(between:find "%d[BU]%d+@")
      end
      assert.equal(BATCHES, sends)
      assert.equal(BATCHES - 1, forwards)
    end
  end)

  it("wait for the slowest of the others, wherever it is", function()
    local _, s = both(4)
    for slow = 0, 3 do
      local ran = s:simulate { F = 1, B = 2, sums = 3, slow = { [2 * slow] = 5 } }
      local last = find(ran:timeline(2 * slow), "B", slow * CHUNKS + CHUNKS - 1).finish
      for r = 0, 3 do
        local begin = reductions(ran:timeline(2 * r))[1].begin
        -- the gradients of the others are there when the slow one has its own, so it waits for
        -- nothing, and reduces behind its next forward pass, which takes it 5
        assert.equal(r == slow and last + 5 or last + 3, begin)
      end
    end
  end)

  it("send gradients behind the values before them", function()
    -- one stage: a mini-batch takes 12, its values take 20 to leave, so its gradients wait for them
    local s = gp.schedule.build("pipedream_2bw", { devices = 2, chunks = 4, replicas = 2,
      batches = 6 }):lower { comms = false, update = "none" }
    local ran = s:simulate { F = 1, B = 2, sums = 5, values = 20, exchange = 3 }
    local list, own = reductions(ran:timeline(0)), ran:timeline(1)
    assert.equal(12 + 5 + 3, list[1].begin)
    for k = 2, #list do
      local update = find(own, "U", k - 2).finish
      assert.equal(update + 20 + 5 + 3, list[k].begin)
    end
    local wide = s:simulate { F = 1, B = 2, sums = 5, values = 7, exchange = 3 }
    -- The values have left when gradients are there. The forward pass behind a mini-batch goes by
    -- while its gradients are under way, so all mini-batches but the first have 1 less to compute.
    assert.equal(12 + 5 + 3 + 5 * (11 + 5 + 3), wide.makespan)
  end)

  it("lie on the critical path where all wait for one", function()
    local _, s = both(2)
    local ran = s:simulate { F = 1, B = 2, sums = 50 }
    local seen = 0
    for _, action in ipairs(ran.critical) do
      if action.op == "REDUCE_GRAD" then
        seen = seen + 1
        assert.equal("value", action.after)
      end
    end
    assert.is_true(seen > 1)
  end)

  it("have noise as others", function()
    local _, s = both(2)
    local quiet = s:simulate({ F = 1, B = 2, sums = 1 }).makespan
    local list = s:makespans { F = 1, B = 2, sums = 1, jitter = { action = 0.3, travel = 0.3 },
      count = 50 }
    local sum = 0
    for _, seconds in ipairs(list) do sum = sum + seconds end
    assert.is_true(sum / #list > quiet)
  end)
end)
