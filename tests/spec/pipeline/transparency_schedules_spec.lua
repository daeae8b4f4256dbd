-- tests/spec/pipeline/transparency_schedules_spec.lua - no synchronous schedule changes a bit
-- compared with one stage.
--
-- It tests DESIGN section 8, D4. Schedules with two copies of the weights add gradients in another
-- order: their bits are the same for every number of stages, and close to those of one stage.
-- scripts/test --full runs the whole grid; otherwise a sample runs that has every value of each
-- axis.
local gp = require "gpipe"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"
local CASES, COPIES, UPDATES = synchronous.CASES, synchronous.COPIES, synchronous.UPDATES

local NAMES = gp.schedule.names() -- other specs may define more
local CLOSE = 1e-6 -- relative: sums of f32 in another order
local STAGES, MICROS = { 2, 3, 4, 8 }, { 1, 2, 3, 5, 8, 16 }
local MODES = { "except_last", "never", "always", "selective" }

-- ---- the grid ----------------------------------------------------------------------------------

-- Returns the run of one stage under naive, by number of micro-batches.
local references = {}
local function reference(made, m)
  references[m] = references[m]
    or synchronous.run(made, { chunks = m, schedule = "naive", checkpoint = "never" })
  return references[m]
end

-- What two copies give on two stages, by schedule and number of micro-batches.
local copied = {}

local function check(made, case, stages, m, checkpoint, how)
  local run = synchronous.run(made, {
    balance = synchronous.cut(made.layers, stages), chunks = m, checkpoint = checkpoint,
    schedule = synchronous.schedule(case),
  }, UPDATES[how])
  local wanted = reference(made, m)
  if COPIES[case[1]] and m > 1 then
    assert.is_true(synchronous.distance(run, wanted) <= CLOSE)
    local key = case[1] .. m
    copied[key] = copied[key] or run
    wanted = copied[key]
  end
  local what = training.difference(wanted, run)
  if what then
    error(("%d stages, %d micro-batches, %s, %s: %s"):format(stages, m, checkpoint, how, what))
  end
end

-- Lists the updates that a schedule allows.
local function updates_of(case)
  return COPIES[case[1]] and { "step", "use" } or { "step", "use", "free" }
end

-- Lists every place of the grid where the schedule is defined.
local function places(case)
  local list = {}
  for _, stages in ipairs(STAGES) do
    for _, m in ipairs(MICROS) do
      if synchronous.is_defined(case, stages, m) then list[#list + 1] = { stages, m } end
    end
  end
  return list
end

describe("parameters after 10 steps are those of one stage", function()
  local made = synchronous.regression()
  for _, case in ipairs(CASES) do
    it(synchronous.title(case), function()
      local turn, updates = 0, updates_of(case)
      for _, place in ipairs(places(case)) do
        turn = turn + 1
        local how = updates[turn % #updates + 1]
        check(made, case, place[1], place[2], MODES[turn // #updates % 3 + 1], how)
      end
      assert.is_true(turn >= 6)
    end)

    it("with every checkpoint mode and update #slow: " .. synchronous.title(case), function()
      for _, place in ipairs(places(case)) do
        for _, checkpoint in ipairs(MODES) do
          for _, how in ipairs(updates_of(case)) do
            check(made, case, place[1], place[2], checkpoint, how)
          end
        end
      end
    end)
  end

  it("with every published name", function()
    local known = { pipedream = true, pipedream_2bw = true }
    for _, case in ipairs(CASES) do known[case[1]] = true end
    for _, name in ipairs(NAMES) do assert.is_true(known[name], name) end
  end)
end)

-- ---- models ------------------------------------------------------------------------------------

-- Schedules of different kinds: I and W separate, several stages on a device, two directions, two
-- copies.
local SOME = {
  { "gpipe", backward = "lifo" }, { "1f1b", warmup = 2 }, { "interleaved_1f1b" }, { "looped_bfs" },
  { "zb_h1" },
  { "zb_auto", memory = 3 }, { "zbv" }, { "v_min" }, { "interleaved_zero_bubble" }, { "dualpipev" },
  { "dualpipe" },
  { "chimera" },
}

local function one_copy()
  local list = {}
  for _, case in ipairs(SOME) do
    if not COPIES[case[1]] then list[#list + 1] = case end
  end
  return list
end

-- Checks every case on 2 and 4 stages with every update: it must have the bits of one stage, or of
-- each other.
local function check_model(made, cases, options)
  local list = {}
  for key, value in pairs(options or {}) do list[key] = value end
  local m = list.chunks or 5
  local one = synchronous.run(made, { chunks = m, schedule = "naive" })
  for _, case in ipairs(cases) do
    local wanted = not COPIES[case[1]] and one
    for turn, stages in ipairs { 2, 4 } do
      for _, how in ipairs(updates_of(case)) do
        if how ~= "free" or not made.tied then
          local run = synchronous.run(made, {
            balance = synchronous.cut(made.layers, stages), chunks = m, checkpoint = MODES[turn],
            schedule = synchronous.schedule(case),
            devices = list.devices and list.devices(stages, case),
          }, UPDATES[how])
          wanted = wanted or run
          assert.is_nil(training.difference(wanted, run), synchronous.title(case))
        end
      end
    end
  end
end

describe("the bits of one stage under schedules of every kind", function()
  it("with one weight in three stages", function()
    check_model(synchronous.tied(), SOME)
  end)

  it("with one weight twice in a stage, also without a barrier", function()
    check_model(synchronous.tied_within(), SOME)
  end)

  it("with a buffer that forward writes", function()
    check_model(synchronous.centred(), one_copy())
  end)

  it("with running statistics", function()
    check_model(synchronous.normed(), SOME)
  end)

  it("of an attention model on ids, some of which the loss ignores", function()
    check_model(synchronous.language(), SOME)
  end)

  it("in f64", function()
    check_model(synchronous.language "f64", SOME, { chunks = 4 })
  end)

  it("with a frozen first stage", function()
    check_model(synchronous.frozen(), SOME)
  end)

  it("with several threads on a device", function()
    check_model(synchronous.language(), SOME,
      { devices = function(n) return training.devices(n, 2) end })
  end)
end)

describe("a schedule with two copies of the weights", function()
  it("refuses a buffer that forward writes and returns", function()
    for name in pairs(COPIES) do
      local good, message = pcall(synchronous.run, synchronous.centred(),
        { balance = { 4, 4 }, chunks = 4,
        schedule = name })
      assert.is_false(good)
      assert.matches("depends on a Buffer that forward writes, and the schedule runs every stage on "
        .. "2 devices: expected one copy of the weights", message)
    end
  end)

  it("refuses updates without a barrier", function()
    for name in pairs(COPIES) do
      local good, message = pcall(synchronous.run, synchronous.regression(),
        { balance = { 4, 4 }, chunks = 4,
        schedule = name }, { barrier = false })
      assert.is_false(good)
      assert.matches("use: the schedule runs every stage on 2 devices.*it needs the barrier",
        message)
    end
  end)
end)

-- A user's schedule: forward and backward passes descend, and the backward passes are split.
gp.schedule.define("backwards", function(p, m)
  local rows, placement = gp.schedule.rows(p), {}
  for s = 0, p - 1 do
    placement[s] = s
    for i = m - 1, 0, -1 do rows:F(s, s, i) end
    for i = 0, m - 1 do rows:I(s, s, i) end
    for i = m - 1, 0, -1 do rows:W(s, s, i) end
  end
  return { placement = placement, rows = rows }
end)

describe("a user's schedule in descending order", function()
  it("gives the bits of one stage", function()
    check_model(synchronous.regression { steps = 4 }, { { "backwards" } })
    check_model(synchronous.language(), { { "backwards" } })
    check_model(synchronous.frozen(), { { "backwards" } })
  end)

  it("writes buffers in ascending order all the same", function()
    local made = synchronous.normed()
    local one = synchronous.run(made, { chunks = 5, schedule = "naive" })
    for _, how in ipairs { "step", "use" } do
      local run = synchronous.run(made, { balance = { 4, 4 }, chunks = 5, schedule = "backwards" },
        UPDATES[how])
      assert.is_nil(training.difference(one, run))
    end
  end)

  it("refuses a buffer that forward writes and returns, or that it writes in a stream", function()
    local made = { balance = { 4, 4 }, chunks = 4, schedule = "backwards" }
    local good, message = pcall(synchronous.run, synchronous.centred(), made)
    assert.is_false(good)
    assert.matches("Center.*: what it returns depends on a Buffer that forward writes, and the "
      .. "schedule runs forward passes out of order", message)
    good, message = pcall(synchronous.run, synchronous.normed(), made, UPDATES.free)
    assert.is_false(good)
    assert.matches("BatchNorm1d.*: forward writes a Buffer, and the schedule runs the forward passes "
      .. "of its stage out of order: expected ascending micro%-batches", message)
  end)
end)

describe("updates without a barrier", function()
  it("refuse one weight in two stages", function()
    local good, message = pcall(synchronous.run, synchronous.tied(),
      { balance = { 4, 4 }, chunks = 4 },
      { barrier = false })
    assert.is_false(good)
    assert.matches("schedule: stage %d reads a parameter of stage %d, and stages are updated at "
      .. "different times: "
      .. "layers that share a parameter must lie in one stage", message)
  end)
end)

-- ---- other passes ------------------------------------------------------------------------------

-- Returns what evaluate, forward, backward and accumulated steps give.
local function passes(made, options)
  local merged = { loss = made.loss, seed = 5 }
  for key, value in pairs(options) do merged[key] = value end
  local pipe <close> = gp.pipeline(made.model(), merged)
  local got = { losses = { pipe:evaluate(made.x, made.y) }, state = {}, first = {} }
  got.state.output = pipe:forward(made.x)
  pipe:backward(gp.ones(got.state.output.shape))
  got.first = training.gradients(pipe)
  pipe:eval()
  got.state.evaluated = pipe:forward(made.x)
  pipe:train()
  got.losses[2] = pipe:step(made.x, made.y)
  got.losses[3] = pipe:step(made.x, made.y, { accumulate = true })
  got.gradients = training.gradients(pipe)
  return got
end

describe("evaluate, forward, backward and accumulate", function()
  local made = synchronous.regression()
  for _, case in ipairs(CASES) do
    it("are those of one stage: " .. synchronous.title(case), function()
      local count = 0
      for i, place in ipairs(places(case)) do
        local stages, m = place[1], place[2]
        local got = passes(made, { balance = synchronous.cut(made.layers, stages), chunks = m,
          schedule = synchronous.schedule(case), checkpoint = MODES[i % 3 + 1] })
        local one = passes(made, { chunks = m })
        if COPIES[case[1]] and m > 1 then
          assert.is_true(training.distance(got.gradients, one.gradients, 1e-5, 1e-6) <= 1)
          got.first, got.gradients, one.first, one.gradients = {}, {}, {}, {}
        end
        local what = training.difference(one, got)
        if what then error(("%d stages, %d micro-batches: %s"):format(stages, m, what)) end
        count = count + 1
      end
      assert.is_true(count >= 6)
    end)
  end
end)

describe("batches that micro-batches do not divide", function()
  for rows = 1, 9 do
    it(("give the bits of one stage: %d rows in 4 micro-batches"):format(rows), function()
      check_model(synchronous.regression { rows = rows, steps = 3 }, SOME, { chunks = 4 })
    end)
  end
end)

describe("clipping as part of the update", function()
  it("gives the bits of one stage, and of clip_grad_norm before opt:step()", function()
    local made = synchronous.regression { steps = 4 }
    local one = synchronous.run(made, { chunks = 4, schedule = "naive" }, { clip_norm = 0.05 })
    for _, case in ipairs(SOME) do
      local run = synchronous.run(made, { balance = { 2, 2, 2, 2 }, chunks = 4,
        schedule = synchronous.schedule(case) }, { clip_norm = 0.05 })
      if not COPIES[case[1]] then assert.is_nil(training.difference(one, run)) end
      assert.is_true(synchronous.distance(run, one) <= CLOSE)
    end
    local pipe <close> = gp.pipeline(made.model(), { chunks = 4, loss = made.loss, seed = 5 })
    local params = pipe:parameters()
    local opt = gp.optim.AdamW(params, { lr = 1e-2 })
    for step = 1, 4 do
      opt.lr = 1e-2 / step
      assert.equal(one.losses[step], pipe:step(made.x, made.y))
      assert.is_true(gp.optim.clip_grad_norm(params, 0.05) > 0.05)
      opt:step()
    end
    for name, value in pairs(pipe:state_dict()) do
      assert.is_true(gp.equal(one.state[name], value))
    end
  end)
end)
