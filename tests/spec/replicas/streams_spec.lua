-- tests/spec/replicas/streams_spec.lua - replicas of an asynchronous schedule give the bits of one
-- pipeline with the same weight versions and as many micro-batches, over any number of processes.

local gp = require "gpipe"
local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"
local nn, optim = gp.nn, gp.optim

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

local function options(cell, stages, more)
  local balance = {}
  for s = 1, stages do balance[s] = 8 // stages end
  local all = { replicas = cell[1], chunks = cell[2], balance = balance, loss = nn.MSELoss(),
    schedule = "pipedream_2bw", seed = 5 }
  for key, value in pairs(more or {}) do all[key] = value end
  return all
end

local function batch_of(t, rows)
  return gp.randn({ rows, 6 }, { seed = 10 * t + 1 }), gp.randn({ rows, 6 }, { seed = 10 * t + 2 })
end

local function text_of(dict)
  local names, parts = {}, {}
  for name in pairs(dict) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    parts[#parts + 1] = name .. dict[name]:contiguous():bytes()
  end
  return table.concat(parts)
end

-- Everything that a script of {rows =, lr =, then_ = ...} sees, as one string. prepare(pipe) may
-- change the pipeline.
local function follow(cell, stages, script, more, prepare)
  local pipe <close> = gp.pipeline(tower(), options(cell, stages, more))
  local opt = optim.AdamW(pipe:parameters(), { lr = 0.01, weight_decay = 0.1 })
  pipe:use(opt)
  if prepare then prepare(pipe) end
  local seen, losses = {}, {}
  local function note(list) table.move(list, 1, #list, #losses + 1, losses) end
  for t, step in ipairs(script) do
    local x, y = batch_of(t, step.rows)
    opt.lr = step.lr or opt.lr
    note(pipe:step(x, y))
    if step.then_ == "flush" then note(pipe:flush()) end
    if step.then_ == "evaluate" then seen[#seen + 1] = ("%.17g"):format(pipe:evaluate(x, y)) end
    if step.then_ == "state" then seen[#seen + 1] = text_of(pipe:state_dict()) end
    if step.then_ == "load" then
      local dict = pipe:state_dict()
      for name, value in pairs(dict) do dict[name] = value * 0.5 end
      pipe:load_state_dict(dict)
    end
  end
  note(pipe:flush())
  for i, loss in ipairs(losses) do losses[i] = ("%.17g"):format(loss) end
  assert.equal(#script, #losses)
  for _, device in ipairs(pipe:memory()) do assert.equal(device.planned, device.measured) end
  return table.concat(seen) .. table.concat(losses, " ") .. text_of(pipe:state_dict())
    .. text_of(opt:state_dict()), pipe.stats
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

local function steady(n, rows)
  local script = {}
  for t = 1, n do script[t] = { rows = rows, lr = 0.02 / t } end
  return script
end

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

-- PipeDream's weight stashing with updates after `batch` micro-batches: stage s uses the version
-- that is p - 1 - s updates old.
gp.schedule.define("stashing", function(p, m, opts)
  local rows, placement, b = gp.schedule.rows(p), {}, opts.batch -- micro-batches of an update
  for s = 0, p - 1 do
    local function version(i) return math.max(0, i // b - (p - 1 - s)) end
    local ahead = math.min((p - 1 - s) * b, m)
    placement[s] = s
    for i = 0, ahead - 1 do rows:F(s, s, i, version(i)) end
    for i = 0, m - 1 do
      if ahead + i < m then rows:F(s, s, ahead + i, version(ahead + i)) end
      rows:B(s, s, i, version(i))
      if i % b == b - 1 then rows:U(s, s, i // b) end
    end
  end
  return { placement = placement, rows = rows, batch = b }
end)

describe("replicas of other streams", function()
  local function stashing(batch) return { schedule = { "stashing", batch = batch } } end

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
      local good, message = pcall(gp.pipeline, tower(), options({ 2, 4 }, 2, more))
      assert.is_false(good)
      return message
    end
    assert.matches("schedule 'stashing' updates after every 2 micro-batches, and 2 replicas",
      refusal(stashing(2)), 1, true)
    assert.matches("schedule 'pipedream' updates after every micro-batch, and 2 replicas",
      refusal { schedule = "pipedream" }, 1, true)
  end)

  it("refuse layers that write buffers in forward, and take them in evaluation", function()
    local function train(norm)
      gp.seed(3)
      local model = nn.Sequential { nn.Linear(6, 6), norm, nn.Linear(6, 6), nn.Tanh() }
      local pipe <close> = gp.pipeline(model, { replicas = 2, chunks = 2, balance = { 2, 2 },
        loss = nn.MSELoss(), schedule = "pipedream_2bw" })
      pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
      local x, y = batch_of(1, 16)
      return #pipe:step(x, y) + #pipe:flush()
    end
    local good, message = pcall(train, nn.BatchNorm1d(6))
    assert.is_false(good)
    assert.matches("BatchNorm1d.*forward writes a Buffer, and replicas of an asynchronous schedule "
      .. "run at different times", message)
    assert.equal(1, train(nn.BatchNorm1d(6):eval()))
  end)
end)
