-- tests/spec/ranks/plans_spec.lua - what a job measures and plans: every rank gets the same.

local child = dofile "tests/child.lua"
local json = require "gpipe.io.json"

local HEAD = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(1)
local model = nn.Sequential {
  nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 8),
}
local x, y = gp.randn { 24, 16 }, gp.randn { 24, 8 }
local function same(text)
  local texts = gp.all_gather(text)
  for r = 2, #texts do assert(texts[r] == texts[1], texts[1] .. "\n" .. texts[r]) end
  return texts[1]
end
]]

-- Runs a script in so many ranks, or dry; its output, which one rank prints.
local function run(ranks, text, words, dry)
  local path = child.file(HEAD .. text)
  local list = { "--ranks", tostring(ranks), dry and "--dry-run" or "-", path }
  if not dry then table.remove(list, 3) end
  table.move(words or {}, 1, #(words or {}), #list + 1, list)
  local out, err, code = child.run(list)
  os.remove(path)
  return out, err, code
end

local function links_of(ranks, bandwidth, times)
  local file = { format = "gpipe-lua links 1", ranks = ranks, hosts = {}, links = {} }
  for from = 0, ranks - 1 do
    file.hosts[from + 1] = "h"
    for to = 0, ranks - 1 do
      if from ~= to then
        table.insert(file.links,
          { from = from, to = to, latency = 1e-6, bandwidth = bandwidth, times = times })
      end
    end
  end
  return child.file(json.encode(file))
end

describe("a job", function()
  it("profiles a model once, for all ranks", function()
    local out, err, code = run(2, [[
      local p = gp.profile(model, { x, y }, { loss = nn.MSELoss(), repeats = 2 })
      local list = {}
      for i, layer in ipairs(p.layers) do list[i] = ("%a %a %a"):format(layer.forward, layer.input, layer.weight) end
      assert(p.layers[1].forward > 0 and p.layers[5].weight > 0)
      same(table.concat(list, ", "))
      same(table.concat(gp.balance_by_time(2, model, { x }, { timeout = 0.01 }), ","))
      print "good"]])
    assert.same({ "good\n", 0 }, { out, code }, err)
  end)

  it("trains with the plan that it has made, and with a balance by time", function()
    local out, err, code = run(3, [[
      for _, options in ipairs {
        { plan = "auto", devices = 3, sample = { x, y }, loss = nn.MSELoss() },
        { balance = "time", devices = 2, chunks = 4, sample = { x, y }, loss = nn.MSELoss() },
      } do
        local pipe <close> = gp.pipeline(model, options)
        same(tostring(pipe:step(x, y)))
      end
      local plan = assert(gp.plan(model, { x, y }, { devices = 2, loss = nn.MSELoss() }))
      same(("%a %a %s"):format(plan.best.seconds, plan.lower_bound, table.concat(plan.best.balance, " ")))
      local pipe <close> = gp.pipeline(model, plan)
      same(tostring(pipe:step(x, y)))
      print "good"]])
    assert.same({ "good\n", 0 }, { out, code }, err)
  end)

  local SECONDS = [[
      local function seconds(path)
        local plan = assert(gp.plan(model, { x, y }, {
          devices = { { "0/cpu:0", threads = 1 }, { "1/cpu:0", threads = 1 } }, links = path,
          loss = nn.MSELoss(), schedules = "gpipe", checkpoint = "never", chunks = 2,
        }))
        for _, row in ipairs(plan.rows) do
          if row.devices == 2 then return row.seconds end
        end
      end
]]

  -- Values that cross ranks have other slots than within one process.
  it("takes to the byte what was planned, by gp.plan and by a dry run", function()
    local text = [[
      local layers = {}
      for i = 1, 8 do
        layers[i] = nn.Sequential { nn.Conv2d(i == 1 and 3 or 6, 6, 3, { padding = 1 }), nn.ReLU() }
      end
      layers[9] = nn.Sequential { nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4) }
      local model, loss = nn.Sequential(layers), nn.CrossEntropyLoss()
      local x, y = gp.randn { 24, 3, 6, 6 }, gp.randint(0, 4, { 24 })
      local function take(options, planned, say)
        local pipe <close> = gp.pipeline(model, options)
        pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-3 }))
        pipe:step(x, y)
        for d, device in ipairs(pipe:memory()) do
          if planned then assert(device.measured == planned[d], device.name) end
          if say then print(device.name, device.measured / 1024) end
        end
      end
      if arg[1] == "plan" then
        for _, schedule in ipairs { "looped_bfs", "1f1b", "zbv" } do
          local plan = gp.plan(model, { x, y }, { loss = loss, optimizer = "AdamW", repeats = 1,
            devices = { { "0/cpu:0", memory = "64MiB" }, { "1/cpu:0", memory = "64MiB" } },
            schedules = { schedule }, chunks = 24, checkpoint = "never" })
          assert(plan.best.exact)
          take(plan, plan.best.peak)
        end
        print "good"
        return
      end
      take({ devices = 2, chunks = 4, schedule = arg[1], loss = loss }, nil, true)]]
    local out, err, code = run(2, text, { "plan" })
    assert.same({ "good\n", 0 }, { out, code }, err)
    for _, schedule in ipairs { "interleaved_1f1b", "chimera" } do
      local foreseen, measured = run(2, text, { schedule }, true), run(2, text, { schedule })
      local devices = 0
      for name, kib in measured:gmatch "(%S+)\t(%S+)" do
        local line = ("\n    %s: %.1f KiB of "):format(name, tonumber(kib))
        assert.truthy(foreseen:find(line, 1, true), line .. foreseen)
        devices = devices + 1
      end
      assert.equal(2, devices)
    end
  end)

  it("plans with the ways between its ranks as they were measured", function()
    local fast, slow = links_of(2, 1e12), links_of(2, 1e5)
    local out, err, code = run(2, SECONDS .. [[
      -- 12 x 64 values each way at the least, 8 values at the most favourable cut
      assert(seconds(arg[2]) > seconds(arg[1]) + 12 * 8 * 4 / 1e5)
      print "good"]], { fast, slow })
    os.remove(fast)
    os.remove(slow)
    assert.same({ "good\n", 0 }, { out, code }, err)
  end)

  it("measures the ways itself where it is told to", function()
    local out, err, code = run(2, SECONDS .. [[
      same(("%a"):format(seconds "measure"))
      print "good"]])
    assert.same({ "good\n", 0 }, { out, code }, err)
    local _
    _, err, code = run(1, [[
      gp.plan(model, { x, y }, { devices = { "cpu:0" }, links = "measure", loss = nn.MSELoss() })]])
    assert.same({ "", 0 }, { err, code }) -- a job of one rank has no ways
    _, err = run(2, [[
      gp.plan(model, { x, y }, { devices = 2, links = "measured", loss = nn.MSELoss() })]])
    assert.truthy(err:find("gp.plan: links: measured: No such file", 1, true), err)
  end)

  it("lets actions take longer by the work of sending a value", function()
    local idle = links_of(2, 1e12, { { 8, 1e-6, 0, 0 }, { 1 << 20, 1e-6, 0, 0 } })
    local busy = links_of(2, 1e12, { { 8, 1e-6, 0.5, 0 }, { 1 << 20, 1e-6, 0.5, 0 } })
    local out, err, code = run(2, SECONDS .. [[
      local more = seconds(arg[2]) - seconds(arg[1])
      -- each device sends two values: the first one forward and the last one back are waited for,
      -- and the second one forward
      assert(more > 1.4 and more < 2.1, more)
      print "good"]], { idle, busy })
    os.remove(idle)
    os.remove(busy)
    assert.same({ "good\n", 0 }, { out, code }, err)
  end)

  it("refuses links that were measured for fewer ranks", function()
    local path = links_of(2, 1e9)
    local _, err, code = run(3, [[
      gp.plan(model, { x, y }, { devices = { "0/cpu:0", "2/cpu:0" }, links = arg[1], loss = nn.MSELoss() })]],
      { path })
    os.remove(path)
    assert.equal(1, code)
    local text = ('gp.plan: links: device "2/cpu:0" is of rank 2, but %s has ranks 0 to 1'):format(path)
    assert.truthy(err:find(text, 1, true), err)
  end)

  it("names the rank on which measuring fails", function()
    local _, err, code = run(2, [[
      local Odd = nn.class("Odd")
      function Odd:forward(v) if gp.rank() == 0 then error "no more paper" end return v end
      gp.profile(nn.Sequential { nn.Linear(16, 4), Odd() }, { x })]])
    assert.equal(1, code)
    assert.truthy(err:find("gp.profile: rank 0: .*no more paper"), err)
  end)
end)

local MOVES = [[
local function train(options, adam)
  options.loss, options.devices = nn.MSELoss(), #options.balance
  local pipe <close> = gp.pipeline(model, options)
  adam = adam or gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  for _ = 1, 2 do
    print(("%a"):format(pipe:step(x, y)))
    adam:step()
  end
  return adam
end
]]

describe("a model over ranks", function()
  it("takes its values along from one pipeline to the next, whatever the cuts", function()
    local text = MOVES .. [[
      model[#model + 1] = nn.BatchNorm1d(8)
      for _, balance in ipairs { { 2, 2, 2 }, { 1, 5 }, { 1, 1, 1, 3 }, { 6 }, { 3, 3 } } do
        train { balance = balance, chunks = 3 }
        train { balance = balance, chunks = 2, schedule = "gpipe" }
      end
      train { balance = { 2, 2, 2 }, chunks = 3, schedule = "zb_h1" }
      local pipe <close> = gp.pipeline(model, { balance = { 1, 5 }, devices = 2, loss = nn.MSELoss() })
      local state, names = pipe:state_dict(), {}
      for name in pairs(state) do names[#names + 1] = name end
      table.sort(names)
      for _, name in ipairs(names) do io.write(name, " ", ("%q"):format(state[name]:contiguous():bytes()), "\n") end]]
    local whole = run(1, text)
    assert.truthy(#whole > 500)
    for ranks = 2, 3 do
      local out, err = run(ranks, text)
      assert.equal(whole, out, err)
    end
  end)

  it("sends values that move to the ranks of their stage alone", function()
    local out, err, code = run(3, [[
      local core = require "gpipe.core"
      local most = {} -- bytes that this rank got from each in one call of gp.pipeline
      for _, name in ipairs { "rank_gather", "rank_hand" } do
        local call = core[name]
        core[name] = function(what, ...)
          local texts = call(what, ...)
          for r, text in ipairs(what == "gp.pipeline" and texts or {}) do
            if r - 1 ~= gp.rank() then most[r] = math.max(most[r] or 0, #text) end
          end
          return texts
        end
      end
      local wide = nn.Sequential { nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64) }
      local rows = gp.ones { 4, 64 }
      local function train(devices)
        local pipe <close> = gp.pipeline(wide, {
          balance = { 1, 1, 1 }, devices = devices, chunks = 2, loss = nn.MSELoss(),
        })
        pipe:step(rows, rows)
      end
      train { "0/cpu:0", "1/cpu:0", "2/cpu:0" }
      most = {}
      train { "1/cpu:0", "1/cpu:0", "2/cpu:0" } -- the first layer moves from rank 0 to rank 1
      local moved = 64 * 64 * 4
      if gp.rank() == 1 then assert(most[1] > moved, most[1]) end
      if gp.rank() == 2 then assert(most[1] < moved, most[1]) end
      if gp.rank() == 0 then assert(most[2] < moved and most[3] < moved) end
      gp.barrier()
      print "good"]])
    assert.same({ "good\n", 0 }, { out, code }, err)
  end)

  it("refuses an optimizer whose moments stayed with another rank", function()
    local _, err, code = run(2, MOVES .. [[
      local adam = train { balance = { 4, 1 } }
      train({ balance = { 4, 1 } }, adam)
      train({ balance = { 1, 4 } }, adam)]])
    assert.equal(1, code)
    assert.truthy(err:find("optimizer: rank 0 has the moments of a parameter whose value rank 1 holds now, "
      .. "expected a new optimizer", 1, true), err)
  end)
end)

describe("the cores of a plan", function()
  local cores = require "gpipe.plan.cores"

  local function device(host, threads, count)
    return { kind = "cpu", host = host, threads = threads, cores = count }
  end

  it("are those of each host by itself", function()
    local apart = { device(0, 2, 2), device(1, 2, 2) }
    assert.is_nil(cores.shared(apart))
    assert.is_nil(cores.hosts(apart, 2))
    local together = { device(0, 2, 2), device(0, 2, 2), device(1, 2, 8) }
    assert.same({ 2, 4 }, { cores.shared(together) })
    assert.same({ [0] = 2 }, cores.hosts(together, 3))
    assert.equal(0.5, cores.share(together))
  end)

  it("are shared by replicas on one host alone", function()
    local list = { device(0, 1, 1), device(0, 1, 1), device(1, 1, 4), device(1, 1, 4) }
    assert.same({ [0] = 1 }, cores.hosts(list, 2, 2, 0))
    assert.is_nil(cores.hosts(list, 2, 2, 1))
    assert.same({ [0] = 0.5 }, cores.hosts(list, 1, 4, 1)) -- of one core, with another replica
    assert.is_nil(cores.hosts({ list[3], list[4] }, 1, 2))
  end)
end)
