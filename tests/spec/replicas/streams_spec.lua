-- tests/spec/replicas/streams_spec.lua - replicas of an asynchronous schedule give the bits of one
-- pipeline with the same weight versions and as many micro-batches, over any number of processes.

local gp = require "gpipe"
local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"
local streams = dofile "tests/support/streams.lua"
local nn = gp.nn

local TRAIN = "tests/support/replicas_stream.lua"
local KINDS = { "dropout", "tied", "skip", "few" }

-- ---- all bits ------------------------------------------------------------------------------------

local function lines_of(out, err, code)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

local function words_of(cell, stages, kinds)
  return { TRAIN, tostring(cell[1]), tostring(cell[2]), tostring(stages), table.unpack(kinds) }
end

local function compare(wanted, got)
  assert.truthy(#wanted > 50)
  for i, line in ipairs(wanted) do assert.equal(line, got[i]) end
  assert.equal(#wanted, #got)
end

local function check(stages, cells, kinds)
  local one = lines_of(child.run(words_of({ 1, 8 }, stages, kinds or KINDS)))
  for _, cell in ipairs(cells) do
    compare(one, lines_of(child.run(words_of(cell, stages, kinds or KINDS))))
  end
end

-- One replica in one process is what replicas over processes give.
local function check_ranks(way, ranks, stages, cells, kinds)
  local one = lines_of(child.run(words_of({ 1, 8 }, stages, kinds or KINDS)))
  for _, cell in ipairs(cells) do
    compare(one, lines_of(jobs.run(way, ranks, words_of(cell, stages, kinds or KINDS))))
  end
end

describe("2BW with eight micro-batches has the same losses, values and moments", function()
  it("with two, four and eight replicas that share them", function()
    check(2, { { 2, 4 }, { 4, 2 }, { 8, 1 } })
  end)

  it("with replicas of one stage, and of four", function()
    check(1, { { 2, 4 }, { 8, 1 } })
    check(4, { { 2, 4 }, { 4, 2 } })
  end)

  it("with replicas over two processes, and over four", function()
    check_ranks("unix", 2, 2, { { 1, 8 }, { 2, 4 }, { 4, 2 } })
    check_ranks("unix", 4, 2, { { 2, 4 }, { 4, 2 } })
  end)

  it("where three processes share the devices unevenly", function()
    check_ranks("unix", 3, 2, { { 2, 4 } }, { "tied", "few" })
  end)

  for _, way in ipairs { "tcp", "mpi" } do
    it("with replicas over " .. way, function()
      if jobs.missing(way) then return pending(jobs.missing(way)) end
      check_ranks(way, 2, 2, { { 2, 4 } }, { "dropout", "few" })
    end)
  end
end)

-- ---- scripts of training -------------------------------------------------------------------------

local function tower()
  gp.seed(3)
  local layers = {}
  for i = 1, 8 do
    layers[i] = nn.Sequential { nn.LayerNorm(6), nn.Linear(6, 6), nn.Dropout(0.1), nn.Tanh() }
  end
  return nn.Sequential(layers)
end

local function follow(cell, stages, script, more, prepare)
  return streams.follow { tower = tower, cell = cell, stages = stages, script = script, more = more,
    prepare = prepare }
end

local function same(script, more, prepare, cells)
  for _, stages in ipairs { 1, 2, 4 } do
    local one = follow({ 1, 8 }, stages, script, more, prepare)
    for _, cell in ipairs(cells or { { 2, 4 }, { 4, 2 }, { 8, 1 } }) do
      assert.truthy(one == follow(cell, stages, script, more, prepare),
        ("%d x %d on %d stages"):format(cell[1], cell[2], stages))
    end
  end
end

local steady = streams.steady

describe("what a script sees of 2BW does not depend on the replicas", function()
  local scripts = {
    ["rows that do not divide"] = steady(5, 19),
    ["fewer rows than micro-batches"] = steady(5, 3),
    ["one row"] = steady(4, 1),
    ["sizes that change"] = { { rows = 16 }, { rows = 16 }, { rows = 21 }, { rows = 21 },
      { rows = 3 }, { rows = 16 }, { rows = 1 } },
    ["flushes"] = { { rows = 16, then_ = "flush" }, { rows = 16 }, { rows = 16, then_ = "flush" },
      { rows = 16 } },
    ["evaluation in the middle"] = { { rows = 16 }, { rows = 16, then_ = "evaluate" },
      { rows = 16, lr = 0.05 }, { rows = 16, then_ = "evaluate" } },
    ["states that are read and written in the middle"] = { { rows = 16 },
      { rows = 16, then_ = "state" }, { rows = 16, then_ = "load" }, { rows = 16 },
      { rows = 16, then_ = "state" } },
  }
  for name, script in pairs(scripts) do
    it(name, function() same(script) end)
  end

  for _, checkpoint in ipairs { "always", "never", "except_last", "selective" } do
    it("checkpoint = " .. checkpoint, function()
      same(steady(5, 16), { checkpoint = checkpoint }, nil, { { 2, 4 }, { 4, 2 } })
    end)
  end

  it("sum_group = 2", function()
    same(steady(5, 16), { sum_group = 2 }, nil, { { 2, 4 }, { 4, 2 } })
  end)

  it("without fusing, and with gradients that are checked op by op", function()
    same(steady(4, 16), { fuse = false }, nil, { { 2, 4 } })
    same(steady(4, 16), { finite = true }, nil, { { 2, 4 } })
  end)

  it("with several threads on a device", function()
    local devices = {}
    for d = 1, 4 do devices[d] = { "cpu:" .. d - 1, threads = d % 3 + 1 } end
    local one = follow({ 1, 8 }, 2, steady(4, 16))
    assert.truthy(one == follow({ 2, 4 }, 2, steady(4, 16), { devices = devices }))
  end)

  it("three replicas", function()
    local one = follow({ 1, 12 }, 2, steady(4, 24))
    assert.truthy(one == follow({ 3, 4 }, 2, steady(4, 24)))
  end)
end)

-- ---- other streams -------------------------------------------------------------------------------

describe("replicas of other streams", function()
  local stashing = streams.stashing

  it("give the bits of one: a schedule of a script with more versions", function()
    for _, stages in ipairs { 1, 2, 4 } do
      local one = follow({ 1, 8 }, stages, steady(6, 16), stashing(8))
      for _, cell in ipairs { { 2, 4 }, { 4, 2 } } do
        assert.truthy(one == follow(cell, stages, steady(6, 16), stashing(cell[2])))
      end
    end
  end)

  it("give those of one: PipeDream, where each runs one micro-batch of an update", function()
    for _, stages in ipairs { 1, 2, 4 } do
      local one = follow({ 1, 4 }, stages, steady(6, 16), stashing(4))
      assert.truthy(one == follow({ 4, 1 }, stages, steady(6, 16), { schedule = "pipedream" }))
    end
    assert.truthy(follow({ 1, 1 }, 4, steady(6, 16), { schedule = "pipedream" })
      == follow({ 1, 1 }, 4, steady(6, 16), stashing(1)))
  end)

  it("may not update more often than once for the micro-batches of a replica", function()
    local function refusal(more)
      local good, message = pcall(gp.pipeline, tower(), streams.options({ 2, 4 }, 2, more))
      assert.is_false(good)
      return message
    end
    assert.matches("schedule 'stashing' updates after every 2 micro-batches, and 2 replicas",
      refusal(stashing(2)), 1, true)
    assert.matches("schedule 'pipedream' updates after every micro-batch, and 2 replicas",
      refusal { schedule = "pipedream" }, 1, true)
  end)
end)
