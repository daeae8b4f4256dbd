-- tests/spec/replicas/free_spec.lua - replicas of a synchronous schedule that update without a
-- barrier have the bits that they have with one.

local gp = require "gpipe"
local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"
local streams = dofile "tests/support/streams.lua"
local nn, optim = gp.nn, gp.optim

local function tower()
  gp.seed(3)
  local layers = {}
  for i = 1, 8 do
    layers[i] = nn.Sequential { nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.1), nn.Tanh() }
  end
  return nn.Sequential(layers)
end

-- Everything that a script sees on so many devices of a replica.
local function follow(cell, devices, schedule, script, more)
  local v = (schedule == "interleaved_1f1b" or schedule == "zbv") and 2 or 1
  local all = { schedule = schedule, sum_group = 1, devices = devices * cell[1] }
  for key, value in pairs(more or {}) do all[key] = value end
  return (streams.follow { tower = tower, cell = cell, stages = devices * v, script = script,
    more = all })
end

local SCRIPT = { { rows = 16, then_ = "state" }, { rows = 16 }, { rows = 16, then_ = "evaluate" },
  { rows = 21 }, { rows = 21, then_ = "load" }, { rows = 16, lr = 0.05 }, { rows = 16 },
  { rows = 19 } }

describe("replicas that update without a barrier have the bits of one pipeline with one", function()
  for _, schedule in ipairs { "1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_h2", "zbv" } do
    it(schedule, function()
      local one = follow({ 1, 8 }, 2, schedule, SCRIPT)
      for _, cell in ipairs { { 1, 8 }, { 2, 4 }, { 4, 2 }, { 8, 1 } } do
        assert.truthy(one == follow(cell, 2, schedule, SCRIPT, { barrier = false }),
          ("%d x %d"):format(cell[1], cell[2]))
      end
    end)
  end

  it("for every cut, policy, and fewer rows than micro-batches", function()
    local one = follow({ 1, 8 }, 2, "1f1b", SCRIPT)
    for _, policy in ipairs { "always", "never", "selective", "auto" } do
      assert.truthy(one
        == follow({ 2, 4 }, 4, "1f1b", SCRIPT, { barrier = false, checkpoint = policy }))
    end
    assert.truthy(one == follow({ 2, 4 }, 1, "1f1b", SCRIPT, { barrier = false }))
    local function layers() return { nn.Linear(6, 6), nn.LayerNorm(6), nn.Tanh() } end
    local function few(cell, more)
      local all = { balance = { 2, 1 }, schedule = "1f1b", sum_group = 1 }
      for key, value in pairs(more or {}) do all[key] = value end
      return (streams.follow { tower = function()
        gp.seed(3)
        return nn.Sequential(layers())
      end, cell = cell, stages = 2, more = all,
        script = { { rows = 3 }, { rows = 3 }, { rows = 1 }, { rows = 1 }, { rows = 16 } } })
    end
    for _, cell in ipairs { { 2, 4 }, { 4, 2 }, { 8, 1 } } do
      assert.truthy(few { 1, 8 } == few(cell, { barrier = false }))
    end
  end)

  it("where batch norms of all replicas normalise together", function()
    local function synced(devices, schedule, barrier)
      local steps = streams.steady(5, 16)
      return follow({ 2, 4 }, devices, schedule, steps,
        { barrier = barrier, sync_batch_norm = true })
    end
    local one = synced(2, "1f1b", true)
    assert.truthy(one == synced(2, "1f1b", false))
    assert.truthy(one == synced(1, "1f1b", false))
    assert.truthy(one == synced(2, "zbv", false))
  end)

  it("where a script updates by itself, or behind a barrier after all", function()
    local function bits(barrier, use)
      local pipe <close> = gp.pipeline(tower(), streams.options({ 2, 4 }, 2,
        { schedule = "1f1b", barrier = barrier }))
      local opt = optim.Adam(pipe:parameters(), { lr = 0.01 })
      if use then pipe:use(opt, use) end
      for t = 1, 4 do
        pipe:step(gp.randn({ 16, 6 }, { seed = t }), gp.randn({ 16, 6 }, { seed = 50 + t }))
        if not use then opt:step() end
      end
      return streams.text_of(pipe:state_dict()) .. streams.text_of(opt:state_dict())
    end
    local wanted = bits(nil, {})
    assert.truthy(wanted == bits(false, {}))
    assert.truthy(wanted == bits(false, { barrier = true }))
    assert.truthy(wanted == bits(false))
  end)
end)

local JOB = [[
local gp = require "gpipe"
local bits = dofile "tests/support/bits.lua"
local nn, optim = gp.nn, gp.optim
local replicas, chunks, barrier = tonumber(arg[1]), tonumber(arg[2]), arg[3] ~= "free"
local layers = {}
for i = 1, 4 do layers[i] = nn.Sequential {nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh()} end
local pipe <close> = gp.pipeline(nn.Sequential(layers), {
  replicas = replicas, chunks = chunks, balance = {2, 2}, devices = 2 * replicas,
  loss = nn.MSELoss(), barrier = barrier, schedule = arg[4] or "1f1b", seed = 4,
})
local opt = optim.AdamW(pipe:parameters(), {lr = 0.05})
pipe:use(opt)
for t = 1, 6 do
  bits.say("loss", pipe:step(gp.randn({24, 6}, {seed = t}), gp.randn({24, 6}, {seed = 50 + t})))
end
bits.say("evaluated", pipe:evaluate(gp.randn({24, 6}, {seed = 1}), gp.randn({24, 6}, {seed = 2})))
bits.say_all("state", pipe:state_dict())
bits.say_all("moments", opt:state_dict())
]]

-- What the script prints with these words, over so many ranks.
local function job(way, ranks, words, environment)
  local path = child.file(JOB)
  table.insert(words, 1, path)
  local out, err, code
  if ranks == 1 then
    out, err, code = child.run(words, { environment = environment })
  else
    out, err, code = jobs.run(way, ranks, words)
  end
  os.remove(path)
  return out, err, code
end

describe("replicas that update without a barrier", function()
  for _, way in ipairs { "unix", "tcp", "mpi" } do
    it("have the same bits over " .. way, function()
      if jobs.missing(way) then return pending(jobs.missing(way)) end
      local wanted = job(way, 1, { "1", "8", "barrier" })
      assert.truthy(#wanted > 1000)
      for _, ranks in ipairs(way == "unix" and { 2, 3, 4 } or { 2 }) do
        local out, err, code = job(way, ranks, { "2", "4", "free" })
        assert.equal(0, code, err)
        assert.equal(wanted, out)
      end
    end)
  end

  it("repeat the lists of a mini-batch, with updates behind the last gradients", function()
    local function repeated(name, micros, steps)
      local one, rows = gp.schedule.build(name, { devices = 2, chunks = micros }),
        gp.schedule.rows(2)
      rows:repeated(one:parsed(), micros, steps)
      return rows:text(0), rows:text(1)
    end
    local first, last = repeated("1f1b", 2, 2)
    assert.equal("0F0@0,0F1@0,0B0@0,0B1@0,0U0,0F2@1,0F3@1,0B2@1,0B3@1,0U1", first)
    assert.equal("1F0@0,1B0@0,1F1@0,1B1@0,1U0,1F2@1,1B2@1,1F3@1,1B3@1,1U1", last)
    -- pairs stay together
    assert.matches("(3F3@0;0B1@0)OVERLAP_F_B,3B3@0,3U0,0I2@0,0W2@0,0I3@0,0W3@0,0U0",
      (repeated("dualpipev", 4, 1)), 1, true)
  end)

  it("update the last stage while the first one still works", function()
    local pipe <close> = gp.pipeline(tower(), streams.options({ 2, 2 }, 2,
      { schedule = "1f1b", barrier = false }))
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
    assert.equal("number", type(pipe:step(gp.ones { 16, 6 }, gp.ones { 16, 6 })))
    local lines, say = {}, print
    _G.print = function(text) lines[#lines + 1] = text end
    local good, message = pcall(pipe.lowered, pipe)
    _G.print = say
    assert(good, message)
    local page = table.concat(lines, "\n")
    assert.falsy(page:find("VOTE", 1, true))
    assert.matches("1REDUCE_GRAD[^\n]*\n[^\n]*1NORM[^\n]*\n[^\n]*1U0", page)
    assert.matches("0UNSHARD: waits for the parameters of another copy of stage 0 from 0U0", page)
  end)

  it("skip a stage's update in all replicas where gradients are not finite", function()
    local skipped = "device=2,step=2,op=B,micro=4,action=nan"
    local fault = { GPIPE_FAULT = skipped }
    local out, err, code = job("unix", 1, { "2", "4", "free" }, fault)
    assert.equal(0, code)
    assert.matches("gradients", err)
    assert.not_equal(job("unix", 1, { "2", "4", "free" }), out)
  end)

  it("say which stages were updated where a task fails", function()
    local _, err, code = job("unix", 1, { "2", "4", "free" },
      { GPIPE_FAULT = "device=3,step=2,op=B,micro=5,action=fail" })
    assert.equal(1, code)
    assert.matches("GPIPE_FAULT asked for this failure", err)
  end)

  it("are refused with two copies of the weights, and with asynchronous schedules", function()
    local function refusal(more)
      local good, message = pcall(gp.pipeline, tower(), streams.options({ 2, 4 }, 2, more))
      assert.is_false(good)
      return message
    end
    assert.matches("schedule 'dualpipe' runs every stage on 2 devices of a replica, whose gradients "
      .. "are added before the update: it needs the barrier",
      refusal { schedule = "dualpipe", barrier = false }, 1, true)
    assert.matches("an asynchronous schedule has no barrier: leave option 'barrier' out",
      refusal { barrier = false }, 1, true)
  end)

  it("are refused where saved values go to the host's memory", function()
    local pipe <close> = gp.pipeline(tower(), streams.options({ 2, 4 }, 2,
      { schedule = "1f1b", barrier = false, checkpoint = "offload" }))
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
    local good, message = pcall(pipe.step, pipe, gp.ones { 16, 6 }, gp.ones { 16, 6 })
    assert.is_false(good)
    assert.matches("saved values go to the host's memory (checkpoint \"offload\"), with the barrier "
      .. "if it has replicas", message, 1, true)
  end)

  it("are planned before they run, to the byte", function()
    local options = streams.options({ 2, 4 }, 2, { schedule = "1f1b", barrier = false })
    options.sample, options.devices = { gp.ones { 16, 6 }, gp.ones { 16, 6 } }, 4
    options.seed = nil
    local dry = gp.dry_run(tower(), options)
    options.sample = nil
    local pipe <close> = gp.pipeline(tower(), options)
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
    pipe:step(gp.ones { 16, 6 }, gp.ones { 16, 6 })
    for d, device in ipairs(pipe:memory()) do
      assert.equal(device.planned, device.measured)
      for _, name in ipairs { "saved", "edges", "partial sums", "parameters", "gradients" } do
        assert.equal(device.areas[name], dry:memory()[d].areas[name])
      end
    end
  end)
end)
