-- tests/spec/ranks/by_rank_spec.lua - plans of which each rank makes its own devices in full, and
-- those of other ranks in outline.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local BY_RANK = { GPIPE_WHOLE_PLAN = "0" } -- every plan has more actions

local function lines_of(out, err, code)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

-- Every bit that a script prints is that of one process, or of so many ranks with whole plans.
local function check(ranks, words, least, in_ranks)
  local whole
  if in_ranks then
    whole = lines_of(jobs.run("unix", ranks, words))
  else
    whole = lines_of(child.run(words))
  end
  local shared = lines_of(jobs.run("unix", ranks, words, BY_RANK))
  assert.truthy(#whole > least)
  for i, line in ipairs(whole) do assert.equal(line, shared[i]) end
  assert.equal(#whole, #shared)
end

local TRAIN, REPLICAS = "tests/support/ranks_train.lua", "tests/support/replicas_train.lua"
local STREAM = "tests/support/ranks_stream.lua"

describe("a plan by rank", function()
  it("gives the bits of one process", function()
    check(2, { TRAIN, "2", "1f1b", "interleaved_1f1b" }, 100)
    check(3, { TRAIN, "4", "zb_h1", "dualpipe" }, 100)
  end)

  it("gives them to replicas too", function()
    check(4, { REPLICAS, "2", "4", "2", "1f1b" }, 20, true)
    check(2, { REPLICAS, "2", "4", "2", "gpipe" }, 20, true)
  end)

  it("gives them to streams, and to updates without a barrier", function()
    check(2, { STREAM, "2", "pipedream", "pipedream_2bw", "1f1b", "gpipe" }, 100)
    check(3, { STREAM, "3", "pipedream", "1f1b" }, 100)
    check(2, { STREAM, "4", "pipedream_2bw", "pipedream" }, 100)
    check(3, { STREAM, "2", "pipedream_2bw", "gpipe" }, 100) -- one rank has no device
  end)

  -- Prints for each rank how many forward passes it has planned of each device.
  local COUNTS = [[
    local gp = require "gpipe"
    local nn = gp.nn
    local model = nn.Sequential { nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 4) }
    local pipe <close> = gp.pipeline(model, {
      balance = { 2, 1, 1 }, devices = 3, chunks = 4, loss = nn.MSELoss(),
    })
    pipe:step(gp.ones { 8, 4 }, gp.ones { 8, 4 })
    local counts, shown = {}, print
    print = function() end
    for d, row in ipairs(pipe:lowered { tasks = false }) do
      counts[d] = select(2, row:gsub("%f[%w]%dF%d", ""))
    end
    print = shown
    for r, text in ipairs(gp.all_gather(table.concat(counts, " "))) do print(r - 1, text) end
    for d, device in ipairs(pipe:memory()) do print(d - 1, device.planned > 0) end
  ]]

  it("has no task of another rank's device, and all of its own", function()
    local by_rank = lines_of(jobs.script("unix", 3, COUNTS, BY_RANK))
    assert.same({
      "0\t4 0 0", "1\t0 4 0", "2\t0 0 4", "0\ttrue", "1\ttrue", "2\ttrue",
    }, by_rank)
    local whole = lines_of(jobs.script("unix", 3, COUNTS))
    assert.same({ "0\t4 4 4", "1\t4 4 4", "2\t4 4 4" }, table.move(whole, 1, 3, 1, {}))
  end)

  it("has none in a stream either", function()
    for _, use in ipairs { 'schedule = "pipedream"', 'schedule = "1f1b"' } do
      local barrier = use:find "1f1b" and ", { barrier = false }" or ""
      local text = COUNTS:gsub("chunks = 4", "chunks = 4, " .. use):gsub("pipe:step",
        "pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 })" .. barrier .. ")\n%0", 1)
      local lines = lines_of(jobs.script("unix", 3, text, BY_RANK))
      assert.truthy(lines[1]:match "^0\t[1-9]%d* 0 0$")
      assert.truthy(lines[2]:match "^1\t0 [1-9]%d* 0$")
      assert.truthy(lines[3]:match "^2\t0 0 [1-9]%d*$")
    end
  end)

  it("is whole where edges follow from the programs of other ranks", function()
    local text = COUNTS:gsub("nn.Tanh%(%)", "nn.BatchNorm1d(4)")
      :gsub("balance = { 2, 1, 1 }", "replicas = 3, sync_batch_norm = true"):gsub("{ 8, 4 }", "{ 24, 4 }")
    local lines = lines_of(jobs.script("unix", 3, text, BY_RANK))
    for _, line in ipairs(table.move(lines, 1, 3, 1, {})) do assert.is_nil(line:find " 0") end
  end)

  it("raises the first failure on all ranks, and goes on", function()
    local out, err, code = jobs.script("unix", 2, [[
      local gp = require "gpipe"
      local nn = gp.nn
      local model = nn.Sequential { nn.Linear(4, 4), nn.Linear(4, 3) }
      local pipe <close> = gp.pipeline(model, {
        balance = { 1, 1 }, chunks = 2, loss = nn.CrossEntropyLoss(),
      })
      local x = gp.ones { 4, 4 }
      local good, message = pcall(pipe.step, pipe, x, gp.tensor({ 0, 1, 2, 7 }, { dtype = "i64" }))
      local all = gp.all_gather(tostring(message))
      assert(not good and all[1] == all[2] and all[1]:find("7", 1, true), all[1])
      assert(pipe:step(x, gp.tensor({ 0, 1, 2, 1 }, { dtype = "i64" })) > 0)
      print "good"
    ]], BY_RANK)
    assert.same({ "good\n", 0 }, { out, code }, err)
  end)

  it("is refused where ranks plan in different ways", function()
    local _, err, code = jobs.script("unix", 2, [[
      if os.getenv "RANK" == "1" then
        local known = os.getenv
        os.getenv = function(name) -- luacheck: ignore 122
          return name ~= "GPIPE_WHOLE_PLAN" and known(name) or nil
        end
      end
      local gp = require "gpipe"
      local nn = gp.nn
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 4), nn.Linear(4, 3) }, {
        balance = { 1, 1 }, chunks = 2, loss = nn.MSELoss(),
      })
      pipe:step(gp.ones { 4, 4 }, gp.ones { 4, 3 })
    ]], BY_RANK)
    assert.equal(1, code)
    assert.truthy(err:find("plan: planning by rank is 1 on rank 0 and 0 on rank 1", 1, true), err)
  end)
end)
