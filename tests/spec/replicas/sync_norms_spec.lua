-- tests/spec/replicas/sync_norms_spec.lua - `sync_batch_norm`: replicas normalise the micro-batches
-- of one number together, with the same bits in every process and for every cut.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local nn = gp.nn

-- ---- bits --------------------------------------------------------------------------------------

-- Lines of a cell {replicas, chunks}, with so many devices of a replica, over so many ranks.
local function lines_of(ranks, cell, stages, checkpoint, schedules)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  for _, word in ipairs { "tests/support/sync_norms.lua", cell[1], cell[2], stages, checkpoint,
    table.unpack(schedules) } do
    words[#words + 1] = tostring(word)
  end
  local out, err, code = child.run(words)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

local one = {}

-- Compare with two stages in one process that keep everything, line by line.
local function check(cell, ranks, stages, checkpoint, schedules)
  local key = cell[1] .. "x" .. cell[2]
  one[key] = one[key] or lines_of(1, cell, 2, "never", { "1f1b" })
  local wanted, got = one[key], lines_of(ranks, cell, stages, checkpoint, schedules)
  assert.truthy(#wanted > 100)
  for i = 1, #schedules * #wanted do
    assert.equal(wanted[(i - 1) % #wanted + 1], got[i])
  end
  assert.equal(#schedules * #wanted, #got)
end

describe("replicas that normalise together", function()
  local CELL = { 2, 4 }

  it("have the same bits for every cut and every policy", function()
    check(CELL, 1, 1, "never", { "1f1b" })
    check(CELL, 1, 2, "always", { "1f1b" })
    check(CELL, 1, 3, "selective", { "1f1b" })
    check(CELL, 1, 2, "auto", { "1f1b" })
    check(CELL, 1, 2, "except_last", { "1f1b" })
    check(CELL, 1, 2, "offload", { "1f1b" })
  end)

  it("have them under every synchronous schedule", function()
    check(CELL, 1, 2, "never", { "gpipe", "zb_h1", "dualpipe" })
    check(CELL, 1, 4, "always", { "interleaved_1f1b" })
  end)

  it("have them over two, three and four processes", function()
    check(CELL, 2, 2, "never", { "1f1b" })
    check(CELL, 2, 1, "always", { "gpipe" })
    check(CELL, 3, 2, "selective", { "zb_h1" })
    check(CELL, 4, 2, "never", { "1f1b" })
  end)

  it("have them where four replicas gather", function()
    check({ 4, 2 }, 1, 1, "always", { "1f1b" })
    check({ 4, 2 }, 4, 2, "never", { "1f1b" })
    check({ 8, 1 }, 2, 1, "never", { "1f1b" })
  end)
end)

-- ---- what they compute -------------------------------------------------------------------------

local R, M, B = 2, 3, 4 -- replicas, micro-batches of a replica, rows of a micro-batch
local F64 = { dtype = "f64" }

local function model()
  gp.seed(3)
  return nn.Sequential {
    nn.Linear(5, 4, F64), nn.BatchNorm1d(4, { dtype = "f64", momentum = 0.3 }), nn.Tanh(),
    nn.Linear(4, 3, F64), nn.BatchNorm1d(3, { dtype = "f64", momentum = false }),
    nn.Linear(3, 2, F64),
  }
end

local X = gp.randn({ R * M * B, 5 }, { seed = 1, dtype = "f64" })
local Y = gp.randn({ R * M * B, 2 }, { seed = 2, dtype = "f64" })

local function pipeline(more, made)
  local all = { chunks = M, replicas = R, sum_group = M, loss = nn.MSELoss() }
  all.sync_batch_norm = true
  for key, value in pairs(more or {}) do all[key] = value or nil end
  return gp.pipeline(made or model(), all)
end

-- The rows that one pipeline with larger micro-batches has to be given for the same micro-batches
-- of `count` replicas.
local function dealt(rows, count)
  local micros, parts = rows.shape[1] // B // count, {}
  for i = 0, micros - 1 do
    for r = 0, count - 1 do parts[#parts + 1] = rows:narrow(1, (r * micros + i) * B + 1, B) end
  end
  return gp.cat(parts, 1)
end

-- The largest difference of two tensors.
local function apart(a, b) return (a - b):abs():max():item() end

describe("sync_batch_norm", function()
  local function compare(count)
    local micros = R * M // count
    local pipe <close> = pipeline { replicas = count, chunks = micros, sum_group = micros }
    local alone <close> = pipeline { replicas = false, chunks = micros, sum_group = micros,
      sync_batch_norm = false }
    for _ = 1, 2 do
      local loss = alone:step(dealt(X, count), dealt(Y, count))
      assert.truthy(math.abs(pipe:step(X, Y) - loss) < 1e-13)
    end
    local own, others = pipe:parameters(), alone:parameters()
    for i, entry in ipairs(own) do
      assert.truthy(apart(entry.param.grad, others[i].param.grad) < 1e-13)
    end
    local state = alone:state_dict()
    for name, value in pairs(pipe:state_dict()) do
      assert.truthy(apart(value:to "f64", state[name]:to "f64") < 1e-13)
    end
  end

  it("computes what one pipeline with micro-batches of all replicas' rows does", function()
    for _, count in ipairs { 2, 3, 6 } do compare(count) end
  end)

  it("normalises by the plain mean and variance of all replicas' rows", function()
    local norm = nn.BatchNorm1d(5, { dtype = "f64", momentum = 1, affine = false })
    local pipe <close> = pipeline({ loss = false }, nn.Sequential { norm })
    local y = pipe:forward(X)
    for i = 0, M - 1 do
      for c = 1, 5 do
        local sum, squares, n = 0, 0, R * B
        for r = 0, R - 1 do
          for k = 1, B do sum = sum + X[(r * M + i) * B + k][c] end
        end
        for r = 0, R - 1 do
          for k = 1, B do squares = squares + (X[(r * M + i) * B + k][c] - sum / n) ^ 2 end
        end
        for r = 0, R - 1 do
          local row = (r * M + i) * B + 1
          local wanted = (X[row][c] - sum / n) / math.sqrt(squares / n + 1e-5)
          assert.truthy(math.abs(y[row][c] - wanted) < 1e-13)
        end
        if i == M - 1 then -- with a momentum of 1 the last statistics are the running ones
          assert.truthy(math.abs(norm.running_mean:value()[c] - sum / n) < 1e-13)
          assert.truthy(math.abs(norm.running_var:value()[c] - squares / (n - 1)) < 1e-13)
        end
      end
    end
    pipe:backward(gp.ones({ R * M * B, 5 }, F64))
    assert.equal(M, norm.num_batches_tracked:value():item())
  end)

  it("leaves layers in evaluation to their running statistics", function()
    local made = model()
    made[2]:eval()
    made[5]:eval()
    local before = made[2].running_mean:value():contiguous():bytes()
    local pipe <close> = pipeline(nil, made)
    local alone <close> = pipeline({ sync_batch_norm = false }, (function()
      local other = model()
      other[2]:eval()
      other[5]:eval()
      return other
    end)())
    assert.equal(alone:step(X, Y), pipe:step(X, Y))
    assert.equal(before, made[2].running_mean:value():contiguous():bytes())
  end)

  it("with one replica, or without a batch norm, is as if it were not there", function()
    local function loss(more, layers)
      gp.seed(3)
      local pipe <close> = pipeline(more, layers and nn.Sequential(layers()))
      return ("%.17g"):format(pipe:step(X, Y))
    end
    local function plain() return { nn.Linear(5, 4, F64), nn.Tanh(), nn.Linear(4, 2, F64) } end
    assert.equal(loss { replicas = 1, sync_batch_norm = false }, loss { replicas = 1 })
    pipeline { replicas = false, schedule = "pipedream_2bw", sum_group = false }:close()
    assert.equal(loss({ sync_batch_norm = false }, plain), loss({}, plain))
  end)
end)

-- ---- what is refused, and what is said ---------------------------------------------------------

describe("sync_batch_norm", function()
  it("needs rows for every micro-batch of every replica", function()
    local pipe <close> = pipeline()
    local good, message = pcall(pipe.step, pipe, X:narrow(1, 1, 5), Y:narrow(1, 1, 5))
    assert.is_false(good)
    assert.matches("sync_batch_norm: the batch has rows for 5 micro%-batches, expected at least 6 "
      .. "rows: the 2 replicas normalise together", message)
    assert.truthy(pipe:evaluate(X:narrow(1, 1, 5), Y:narrow(1, 1, 5)) > 0)
    assert.truthy(pipe:step(X:narrow(1, 1, 6), Y:narrow(1, 1, 6)) > 0) -- one row each
  end)

  it("shows what tasks of replicas make together", function()
    local pipe <close> = pipeline { balance = { 3, 3 } }
    pipe:step(X, Y)
    local lines, say = {}, print
    _G.print = function(text) lines[#lines + 1] = text end
    local good, message = pcall(pipe.lowered, pipe)
    _G.print = say
    assert(good, message)
    local page = table.concat(lines, "\n")
    assert.matches("0F0: gathers g0 with 0F3; reads", page)
    assert.matches("0B4: waits for e1%[%d%] from 1B4; gathers g1 with 0B1; reads", page)
    assert.matches("1B2: .*gathers g3 with 1B5; reads", page)
  end)
end)

-- ---- predictions -------------------------------------------------------------------------------

describe("the simulator", function()
  local two = gp.schedule.build("1f1b", { devices = 4, chunks = 4, replicas = 2 })

  it("lets an action end when all replicas have computed it and exchanged their parts", function()
    local gathers = { F = { 1, 0 }, B = { 2, 0 } }
    assert.equal(15, two:simulate { F = 1, B = 2 }.makespan)
    assert.equal(15, two:simulate({ F = 1, B = 2, gathers = gathers }).makespan)
    -- the critical path is 0F0 1F0 1B0 0B0 0F2 0B1 0F3 1F3 1B3 0B3; stage 1 gathers nothing
    assert.equal((3 + 2 * 6) + (3 * 1 + 3 * 2) * 0.25,
      two:simulate({ F = 1, B = 2, gathers = gathers, exchange = 0.25 }).makespan)
  end)

  it("lets a slow device hold up the same device of the other replica, if they gather", function()
    local costs = { F = 1, B = 2, slow = { [0] = 2 } }
    assert.equal(12, two:simulate(costs).work[3])
    costs.gathers = { F = 1, B = 1 }
    assert.equal(24, two:simulate(costs).work[3])
  end)

  it("is told by the costs of a plan how often they gather", function()
    local function gathers(schedule)
      return gp.dry_run(model(), {
        balance = { 3, 3 }, chunks = M, replicas = R, sum_group = M, schedule = schedule,
        loss = nn.MSELoss(), sample = { X, Y }, sync_batch_norm = true,
      }):costs().gathers
    end
    assert.same({ F = { 1, 1 }, B = { 1, 1 }, I = { 1, 1 }, W = { 0, 0 } }, gathers "1f1b")
    local split = gathers "zb_h1"
    for s = 1, 2 do assert.equal(1, split.I[s] + split.W[s]) end
  end)

  it("has nothing to count where replicas gather nothing, and one replica has no others", function()
    local alone = gp.schedule.build("1f1b", { devices = 2, chunks = 4 })
    assert.equal(15, alone:simulate({ F = 1, B = 2, gathers = { F = 1 }, exchange = 9 }).makespan)
    local pipe <close> = pipeline { sync_batch_norm = false }
    pipe:step(X, Y)
    assert.is_nil(pipe:costs().gathers)
  end)
end)
