-- tests/spec/replicas/plans_spec.lua - what is planned, printed and drawn of replicas: rows, tasks,
-- memory, dry runs.

local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local function model()
  gp.seed(3)
  return nn.Sequential { nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Linear(32, 2) }
end

local X, Y = gp.randn({ 16, 8 }, { seed = 1 }), gp.randn({ 16, 2 }, { seed = 2 })

local function quietly(call)
  local say = print
  _G.print = function() end
  local results = table.pack(pcall(call))
  _G.print = say
  assert(results[1], results[2])
  return table.unpack(results, 2, results.n)
end

local function lines_of(call)
  local lines, say = {}, print
  _G.print = function(text) lines[#lines + 1] = text end
  local good, message = pcall(call)
  _G.print = say
  assert(good, message)
  return table.concat(lines, "\n")
end

local function pipeline(more)
  local all = { balance = { 2, 2 }, chunks = 2, replicas = 2, loss = nn.MSELoss() }
  for key, value in pairs(more or {}) do all[key] = value end
  return gp.pipeline(model(), all)
end

describe("a schedule of two replicas", function()
  local built = gp.schedule.build("1f1b", { devices = 4, chunks = 2, replicas = 2 })

  it("is the schedule of one, repeated with other devices and micro-batches", function()
    assert.same({
      "0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1", "0F2,0F3,0B2,0B3", "1F2,1B2,1F3,1B3",
    }, built:rows())
    assert.same({ [0] = { 0, 2 }, { 1, 3 } }, built.placement)
    assert.equal(4, built.chunks)
    assert.equal(2, built.replicas)
  end)

  it("verifies, simulates and draws as the one does", function()
    assert(built:verify())
    local one = gp.schedule.build("1f1b", { devices = 2, chunks = 2 })
    assert.equal(one:simulate({ F = 1, B = 2 }).makespan, built:simulate({ F = 1, B = 2 }).makespan)
    assert.truthy(built:draw({ width = 72 }):find("3 |...F2 B2--- F3 B3---", 1, true))
  end)

  it("reduces the gradients of every stage on all of its devices", function()
    local lowered = built:lower { comms = false }
    assert.equal("1F2,1B2,1F3,1B3,1REDUCE_GRAD,1NORM,1U0", lowered:rows()[4])
  end)

  it("must give a replica its own micro-batches", function()
    local swapped = gp.schedule.wrap("swapped", {
      placement = { [0] = { 0, 1 } }, rows = { "0F1,0B1", "0F0,0B0" }, replicas = 2,
      replica_chunks = 1,
    }, 2)
    local good, report = swapped:verify()
    assert.falsy(good)
    assert.matches("0F1 is on a device of replica 0, which runs micro-batches from 0 to 0",
      tostring(report), 1, true)
  end)

  it("numbers the micro-batches of a stream through the mini-batches of all replicas", function()
    local stream = gp.schedule.build("pipedream_2bw",
      { devices = 4, chunks = 2, batches = 2, replicas = 2 })
    assert.same({
      "0F0@0,0F1@0,0B0@0,0F4@0,0B1@0,0U0,0F5@0,0B4@0,0B5@0,0U1",
      "1F0@0,1B0@0,1F1@0,1B1@0,1U0,1F4@0,1B4@0,1F5@0,1B5@0,1U1",
      "0F2@0,0F3@0,0B2@0,0F6@0,0B3@0,0U0,0F7@0,0B6@0,0B7@0,0U1",
      "1F2@0,1B2@0,1F3@0,1B3@0,1U0,1F6@0,1B6@0,1F7@0,1B7@0,1U1",
    }, stream:rows())
    assert(stream:verify())
    assert.equal(4, stream.batch)
    assert.same({ [0] = 2, 2 }, stream:versions())
    -- the update waits behind the next forward pass, which does not need it
    assert.equal("1F2@0,1B2@0,1F3@0,1B3@0,1F6@0,1REDUCE_GRAD,1U0,1B6@0,1F7@0,1B7@0,1REDUCE_GRAD,1U1",
      stream:lower({ comms = false }):rows()[4])
    assert.equal(gp.schedule.build("pipedream_2bw", { devices = 2, chunks = 2, batches = 2 })
      :simulate({ F = 1, B = 2 }).makespan, stream:simulate({ F = 1, B = 2 }).makespan)
  end)

  it("of a stream may not read a version that another replica has not made", function()
    local good, report = gp.schedule.wrap("early", {
      placement = { [0] = { 0, 1 } }, batch = 2, replicas = 2, replica_chunks = 1, rows = {
        "0F0@0,0B0@0,0U0,0F2@1,0B2@1,0U1", "0F1@0,0F3@1,0B1@0,0U0,0B3@1,0U1",
      },
    }, 2):verify()
    assert.falsy(good)
    assert.matches("0F3@1 uses weights that are not there yet", tostring(report), 1, true)
  end)

  it("needs as many devices for each replica", function()
    assert.has_error(function()
      gp.schedule.build("1f1b", { devices = 3, chunks = 2, replicas = 2 })
    end)
  end)
end)

describe("a plan of replicas", function()
  it("shares parameters out by bytes: each has one owner that updates it", function()
    local pipe <close> = pipeline()
    pipe:use(optim.Adam(pipe:parameters(), { lr = 0.1 }))
    pipe:step(X, Y)
    local moments = {}
    for d, device in ipairs(pipe:memory()) do moments[d] = device.areas.optimizer end
    -- stage 0: a weight of 8 x 32 and a bias; stage 1: weights of 32 x 32 and of 32 x 2, two biases
    assert.equal(2 * 4 * 8 * 32, moments[1])
    assert.equal(2 * 4 * 32, moments[3])
    assert.equal(2 * 4 * 32 * 32, moments[2])
    assert.equal(2 * (4 * 32 + 4 * 64 + 64), moments[4])
  end)

  it("names what each task reads, writes and adds to", function()
    local pipe <close> = pipeline { chunks = 4 }
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
    pipe:step(X, Y)
    local page = lines_of(function() pipe:lowered() end)
    assert.matches("0B1: .*reads .*partial sums%[1%].*adds to gradients.*writes .*partial sums%[1%]"
      , page)
    assert.matches("0REDUCE_GRAD: waits for the gradients of another copy of stage 0 from 0SEND",
      page)
    assert.matches("waits for the parameters of another copy of stage 0 from 0SEND", page)
    -- weights of 32 x 32 floats and of 32 x 2, and two biases: the largest is more than a half
    assert.matches("stage 1, copy 0: .*2 partial sums of gradients; updates 4.0 KiB of 4.4 KiB", page)
  end)

  for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1", "dualpipe" } do
    for _, precision in ipairs { "f32", "bf16" } do
      it(("takes what it says: %s, %s"):format(schedule, precision), function()
        for _, cell in ipairs { { 1, 8 }, { 2, 4 }, { 4, 2 } } do
          local pipe <close> = pipeline {
            schedule = schedule, precision = precision, replicas = cell[1], chunks = cell[2],
          }
          pipe:use(optim.Adam(pipe:parameters(), { lr = 0.1 }))
          pipe:step(X, Y)
          for _, device in ipairs(pipe:memory()) do
            assert.equal(device.planned, device.measured)
          end
        end
      end)
    end
  end

  it("has log2 of its micro-batches as partial sums, none for one micro-batch", function()
    for m, count in pairs { [1] = 0, [2] = 1, [4] = 2, [8] = 3 } do
      local pipe <close> = pipeline { chunks = m, replicas = 8 // m }
      pipe:step(X, Y)
      local areas = pipe:memory()[1].areas
      assert.equal(count * areas.gradients, areas["partial sums"] or 0)
    end
  end)

  it("of a stream says when a device takes over what other replicas have updated", function()
    local pipe <close> = pipeline { schedule = "pipedream_2bw" }
    pipe:use(optim.Adam(pipe:parameters(), { lr = 0.1 }))
    pipe:step(X, Y)
    local rows
    local page = lines_of(function() rows = pipe:lowered() end)
    assert.matches("0UNSHARD: waits for the parameters of another copy of stage 0 from 0SEND; "
      .. "reads the parameters of another copy of stage 0; writes weights", page, 1, true)
    assert.matches("0UNSHARD: waits for the parameters of another copy of stage 0 from 0U0;", page,
      1, true)
    assert.matches("1U0: waits for the check of gradients that another copy owns of stage 1 from "
      .. "1NORM;", page, 1, true)
    -- right before the first task of the new version; sums and updates behind the next forward
    -- pass, and what it makes again, while gradients are under way
    local function part(row) return (row:gsub("%d+SEND_[FB]%d+,", ""):gsub("%d+RECV_[FB]%d+,", "")) end
    assert.matches("0SEND@0,0F5@0,0R4@0,0REDUCE_GRAD@0,0NORM@0,0U0@0,0B4@0,0UNSHARD@1,0P3@1,0F8@1",
      part(rows[1]), 1, true)
    assert.matches("1SEND@1,1UNSHARD@1,1P3@1,1F8@1,1REDUCE_GRAD@1,1NORM@1,1U1@1,1B8@1",
      part(rows[2]), 1, true)
  end)

  it("of a stream has values and older versions for each replica", function()
    local pipe <close> = pipeline { schedule = "pipedream_2bw" }
    pipe:use(optim.Adam(pipe:parameters(), { lr = 0.1 }))
    for _ = 1, 3 do pipe:step(X, Y) end
    for _, device in ipairs(pipe:memory()) do
      assert.equal(device.planned, device.measured)
      assert.equal(device.areas.parameters, device.areas.versions)
    end
  end)

  for _, schedule in ipairs { "1f1b", "pipedream_2bw" } do
    it("is what gp.dry_run plans, also for one device alone: " .. schedule, function()
      local pipe <close> = pipeline { chunks = 4, schedule = schedule }
      local streams = schedule ~= "1f1b"
      if streams then pipe:use(optim.Adam(pipe:parameters(), { lr = 0.1 })) end
      pipe:step(X, Y)
      local opts = {
        balance = { 2, 2 }, chunks = 4, replicas = 2, loss = nn.MSELoss(), sample = { X, Y },
        devices = { { own = false }, { own = false }, { own = false }, { own = false } },
        schedule = schedule,
      }
      local dry = gp.dry_run(model(), opts)
      local rows = quietly(function() return pipe:lowered() end)
      -- no optimizer has been chosen for a dry run, so no replica checks its gradients
      for i, row in ipairs(rows) do rows[i] = row:gsub(",%d+NORM@%d+", "") end
      assert.same(rows, quietly(function() return dry:lowered() end))
      for d, device in ipairs(pipe:memory()) do
        local areas = dry:memory()[d].areas
        for _, name in ipairs { "saved", "edges", "partial sums", "parameters", "gradients",
          "versions" } do
          assert.equal(device.areas[name], areas[name])
        end
      end
      opts.device = 3
      assert.equal(dry:bytes()[4], gp.dry_run(model(), opts):bytes()[4])
    end)
  end

  it("counts what devices with memory of their own receive", function()
    local dry = gp.dry_run(model(), {
      balance = { 4 }, chunks = 1, replicas = 2, loss = nn.MSELoss(), sample = { X, Y },
      devices = { { own = true }, { own = true } },
    })
    local one, two = dry:memory()[1].areas, dry:memory()[2].areas
    assert.equal(one.parameters, two.parameters)
    -- each has all gradients, and receives those that it owns: together twice all and once all
    assert.equal(3 * one.parameters, one.gradients + two.gradients)
  end)

  it("has room there for the values that other replicas of a stream update", function()
    local function edges(schedule)
      local sum = 0
      local dry = gp.dry_run(model(), {
        balance = { 4 }, chunks = 1, replicas = 2, loss = nn.MSELoss(), sample = { X, Y },
        devices = { { own = true }, { own = true } }, schedule = schedule,
      })
      for _, device in ipairs(dry:memory()) do sum = sum + (device.areas.edges or 0) end
      return sum, dry:memory()[1].areas.parameters
    end
    local bytes, all = edges "pipedream_2bw"
    assert.equal(0, (edges "1f1b"))
    -- each receives what the other owns: together all of them, each part padded to 256 bytes
    assert.truthy(bytes >= all and bytes < all + 512)
  end)
end)
