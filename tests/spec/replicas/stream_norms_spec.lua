-- tests/spec/replicas/stream_norms_spec.lua - batch norms, and other layers that write buffers, in
-- replicas of an asynchronous schedule: buffers get the bits of one replica.

local gp = require "gpipe"
local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"
local streams = dofile "tests/support/streams.lua"
local nn, optim = gp.nn, gp.optim

local TRAIN = "tests/support/replicas_stream.lua"
local KINDS = { "norms", "deferred", "watched", "weights", "fewer" }

local function lines_of(out, err, code)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

-- Lines of a cell {replicas, chunks}, over so many ranks that are joined that way.
local function run(way, ranks, cell, stages, kinds)
  local words = { TRAIN, tostring(cell[1]), tostring(cell[2]), tostring(stages),
    table.unpack(kinds) }
  if ranks == 1 then return lines_of(child.run(words)) end
  return lines_of(jobs.run(way, ranks, words))
end

local function compare(wanted, got)
  assert.truthy(#wanted > 50)
  for i, line in ipairs(wanted) do assert.equal(line, got[i]) end
  assert.equal(#wanted, #got)
end

describe("replicas of a stream whose forward passes write buffers have the bits of one", function()
  local one

  local function check(way, ranks, stages, cells, kinds)
    one = one or run("unix", 1, { 1, 8 }, 2, KINDS)
    local wanted = kinds and run("unix", 1, { 1, 8 }, 2, kinds) or one
    for _, cell in ipairs(cells) do
      compare(wanted, run(way, ranks, cell, stages, kinds or KINDS))
    end
  end

  it("in two, four and eight, for every cut", function()
    check("unix", 1, 2, { { 2, 4 }, { 4, 2 }, { 8, 1 } })
    check("unix", 1, 1, { { 2, 4 }, { 8, 1 } })
    check("unix", 1, 4, { { 1, 8 }, { 2, 4 }, { 4, 2 } })
  end)

  it("over two, three and four processes", function()
    check("unix", 2, 2, { { 1, 8 }, { 2, 4 }, { 8, 1 } })
    check("unix", 3, 2, { { 2, 4 } })
    check("unix", 4, 2, { { 4, 2 } })
    check("unix", 2, 1, { { 4, 2 } })
  end)

  for _, way in ipairs { "tcp", "mpi" } do
    it("over " .. way, function()
      if jobs.missing(way) then return pending(jobs.missing(way)) end
      check(way, 2, 2, { { 2, 4 } }, { "norms", "weights" })
    end)
  end

  it("with values that are made again", function()
    local one_kept = run("unix", 1, { 1, 8 }, 2, { "norms+never", "watched+never" })
    for _, policy in ipairs { "always", "selective", "except_last", "auto" } do
      local kinds = { "norms+" .. policy, "watched+" .. policy }
      compare(one_kept, run("unix", 1, { 2, 4 }, 2, kinds))
    end
  end)
end)

describe("replicas of a stream that normalise together have one result", function()
  local SYNCED = { "norms+sync", "deferred+sync", "watched+sync", "weights+sync" }
  local MADE_AGAIN = { "norms+sync+always", "deferred+sync+selective", "watched+sync+except_last",
    "weights+sync+auto" }

  it("for every cut, policy and number of processes", function()
    local one = run("unix", 1, { 2, 4 }, 2, SYNCED)
    compare(one, run("unix", 1, { 2, 4 }, 1, SYNCED))
    compare(one, run("unix", 1, { 2, 4 }, 4, MADE_AGAIN))
    compare(one, run("unix", 2, { 2, 4 }, 2, SYNCED))
    compare(one, run("unix", 3, { 2, 4 }, 2, MADE_AGAIN))
    compare(one, run("unix", 4, { 2, 4 }, 2, SYNCED))
  end)

  it("where four and eight replicas gather", function()
    for _, cell in ipairs { { 4, 2 }, { 8, 1 } } do
      local one = run("unix", 1, cell, 2, { "norms+sync" })
      compare(one, run("unix", 1, cell, 4, { "norms+sync+always" }))
      compare(one, run("unix", 4, cell, 2, { "norms+sync" }))
    end
  end)
end)

-- ---- scripts of training -------------------------------------------------------------------------

local function tower()
  gp.seed(3)
  local layers = {}
  for i = 1, 8 do
    layers[i] = nn.Sequential { nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.1), nn.Tanh() }
  end
  return nn.Sequential(layers)
end

local function follow(cell, stages, script, more)
  return streams.follow { tower = tower, cell = cell, stages = stages, script = script,
    more = more }
end

describe("what a script sees of norms in a stream", function()
  local script = { { rows = 16, then_ = "state" }, { rows = 16 }, { rows = 16, then_ = "evaluate" },
    { rows = 21 }, { rows = 21, then_ = "load" }, { rows = 16 }, { rows = 16, then_ = "flush" },
    { rows = 19 } }

  it("does not depend on the replicas", function()
    for _, stages in ipairs { 1, 2, 4 } do
      for _, deferred in ipairs { false, true } do
        local more = { deferred_batch_norm = deferred }
        local one = follow({ 1, 8 }, stages, script, more)
        for _, cell in ipairs { { 2, 4 }, { 4, 2 }, { 8, 1 } } do
          assert.truthy(one == follow(cell, stages, script, more))
        end
      end
    end
  end)

  it("does not depend on them with older versions of the weights, and in PipeDream", function()
    for _, stages in ipairs { 2, 4 } do
      local steps = streams.steady(6, 16)
      local one = follow({ 1, 8 }, stages, steps, streams.stashing(8))
      assert.truthy(one == follow({ 2, 4 }, stages, steps, streams.stashing(4)))
      one = follow({ 1, 4 }, stages, steps, streams.stashing(4))
      assert.truthy(one == follow({ 4, 1 }, stages, steps, { schedule = "pipedream" }))
    end
  end)
end)

-- ---- what they compute ---------------------------------------------------------------------------

local R, M, B = 2, 3, 4 -- replicas, micro-batches of a replica, rows of a micro-batch
local F64 = { dtype = "f64" }

-- The rows that one pipeline with larger micro-batches has to be given for the same norms.
local function dealt(rows)
  local parts = {}
  for i = 0, M - 1 do
    for r = 0, R - 1 do parts[#parts + 1] = rows:narrow(1, (r * M + i) * B + 1, B) end
  end
  return gp.cat(parts, 1)
end

-- Train by a stream; return its losses and its state.
local function train(replicas, deal)
  gp.seed(3)
  local model = nn.Sequential {
    nn.Linear(5, 4, F64), nn.BatchNorm1d(4, { dtype = "f64", momentum = 0.3 }), nn.Tanh(),
    nn.Linear(4, 3, F64), nn.BatchNorm1d(3, { dtype = "f64", momentum = false }),
    nn.Linear(3, 2, F64),
  }
  local pipe <close> = gp.pipeline(model, { balance = { 3, 3 }, chunks = M, replicas = replicas,
    sum_group = M, loss = nn.MSELoss(), schedule = "pipedream_2bw", sync_batch_norm = true })
  pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1, momentum = 0.9 }))
  local losses = {}
  local function note(list) table.move(list, 1, #list, #losses + 1, losses) end
  for t = 1, 5 do
    local x = gp.randn({ R * M * B, 5 }, { seed = t, dtype = "f64" })
    local y = gp.randn({ R * M * B, 2 }, { seed = 100 + t, dtype = "f64" })
    note(pipe:step(deal(x), deal(y)))
  end
  note(pipe:flush())
  return losses, pipe:state_dict()
end

describe("sync_batch_norm in a stream", function()
  it("computes what one pipeline with micro-batches of all replicas' rows does", function()
    local losses, state = train(R, function(rows) return rows end)
    local wanted, alone = train(1, dealt)
    assert.equal(5, #losses)
    for i, loss in ipairs(wanted) do assert.truthy(math.abs(loss - losses[i]) < 1e-12) end
    for name, value in pairs(alone) do
      assert.truthy((value:to "f64" - state[name]:to "f64"):abs():max():item() < 1e-12)
    end
  end)

  it("needs rows for every micro-batch of every replica", function()
    local pipe <close> = gp.pipeline(tower(), streams.options({ 2, 4 }, 2,
      { sync_batch_norm = true }))
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
    local good, message = pcall(pipe.step, pipe, gp.ones { 7, 6 }, gp.ones { 7, 6 })
    assert.is_false(good)
    assert.matches("sync_batch_norm: the batch has rows for 7 micro%-batches, expected at least 8 "
      .. "rows", message)
  end)
end)

-- ---- faults, and what is shown -------------------------------------------------------------------

local FAULTY = [[
local gp = require "gpipe"
local streams = dofile "tests/support/streams.lua"
local nn = gp.nn
gp.seed(3)
local layers = {}
for i = 1, 4 do layers[i] = nn.Sequential {nn.Linear(6, 6), nn.BatchNorm1d(6)} end
local pipe <close> = gp.pipeline(nn.Sequential(layers), {
  balance = {2, 2}, replicas = 2, chunks = 2, loss = nn.MSELoss(), schedule = "pipedream_2bw",
  sync_batch_norm = SYNC,
})
pipe:use(gp.optim.Adam(pipe:parameters(), {lr = 0.1}))
local x, y = gp.randn({8, 6}, {seed = 1}), gp.randn({8, 6}, {seed = 2})
local function statistics()
  local dict = pipe:state_dict()
  for name in pairs(dict) do
    if name:match "weight$" or name:match "bias$" then dict[name] = nil end
  end
  return streams.text_of(dict)
end
local before = statistics()
local function train()
  for _ = 1, 3 do pipe:step(x, y) end
  pipe:flush()
end
local good, message = pcall(train)
print(good, good and pipe.stats.skipped or message:match "[^\n]*$")
print("unchanged", before == statistics())
print("goes on", pcall(train))
]]

local function faulty(fault, ranks, synced)
  local path = child.file((FAULTY:gsub("SYNC", tostring(synced))))
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  words[#words + 1] = path
  local out, err, code = child.run(words, { environment = { GPIPE_FAULT = fault } })
  os.remove(path)
  assert.equal(0, code, err)
  return out
end

describe("norms in a stream whose replicas fail", function()
  for _, ranks in ipairs { 1, 2, 4 } do
    it(("are as they were before it (%d ranks)"):format(ranks), function()
      for _, synced in ipairs { false, true } do
        for _, fault in ipairs { "device=2,op=F,micro=2", "device=1,op=F,micro=1",
          "device=3,op=B,micro=3", "device=0,op=S,micro=3" } do
          if not synced or not fault:find "S" then
            local out = faulty(fault .. ",step=0,action=fail", ranks, synced)
            assert.matches("false\t.*GPIPE_FAULT asked for this failure", out)
            assert.matches("unchanged\ttrue", out)
            -- the last stage has made its update before the first one writes its buffers
            local torn = out:find("some stages updated and others not", 1, true) ~= nil
            assert.equal(fault:find "S" ~= nil, torn)
          end
        end
      end
    end)

    it(("go on where gradients are not finite (%d ranks)"):format(ranks), function()
      for _, synced in ipairs { false, true } do
        assert.matches("true\t[12]\nunchanged\tfalse\ngoes on\ttrue",
          faulty("device=2,step=1,op=B,micro=2,action=nan", ranks, synced))
      end
    end)
  end
end)

describe("the lists of a stream with norms", function()
  it("write buffers ahead of the reduction, from records of two mini-batches", function()
    local pipe <close> = gp.pipeline(tower(), streams.options({ 2, 2 }, 2))
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
    pipe:step(gp.ones { 16, 6 }, gp.ones { 16, 6 })
    local lines, say = {}, print
    _G.print = function(text) lines[#lines + 1] = text end
    local good, message = pcall(pipe.lowered, pipe)
    _G.print = say
    assert(good, message)
    local page = table.concat(lines, "\n")
    assert.matches("0S0: waits for the records of another copy of stage 0 from 0SEND[^\n]*\n"
      .. "[^\n]*0S1: [^\n]*\n[^\n]*0S2: [^\n]*\n[^\n]*0S3: [^\n]*\n[^\n]*0REDUCE_GRAD", page)
    assert.matches("0F2: [^\n]*the records of another copy of stage 0", page)
  end)
end)
