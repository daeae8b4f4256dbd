-- tests/spec/plan/cluster_spec.lua - machines that are not there: gp.cluster, links between hosts,
-- profiles by the cost model, GPipe's Table 1, and --dry-run of a script.
local gp = require "gpipe"
local child = require "tests.child"
local fails_with = require("tests.support.expect").fails_with
local plan_devices = require "gpipe.plan.devices"
local nn = gp.nn

local RATES = { memory = "8GiB", flops = 1e13, bandwidth = 3e11 }

local function cluster(fields)
  local all = {}
  for key, value in pairs(RATES) do all[key] = value end
  for key, value in pairs(fields) do all[key] = value end
  return gp.cluster(all)
end

describe("gp.cluster", function()
  it("lists the devices of all hosts, host after host", function()
    local list = cluster { hosts = 2, devices = 3 }
    assert.are.equal(6, #list)
    assert.are.same({ "sim:0/0", "sim:0/2", "sim:1/0" }, { list[1][1], list[3][1], list[4][1] })
    assert.are.same({ 0, 1 }, { list[3].host, list[4].host })
    assert.are.equal(8 << 30, list[1].memory)
  end)

  it("has a fast link inside a host and a slow one between hosts", function()
    local list = plan_devices.read("test", cluster { hosts = 2, devices = 2,
      link = { latency = 1e-6, bandwidth = 1e11 }, network = { latency = 1e-5, bandwidth = 1e9 } })
    assert.are.same({ 1e-6, 1e11 }, { plan_devices.between(list[1], list[2]) })
    assert.are.same({ 1e-5, 1e9 }, { plan_devices.between(list[2], list[3]) })
    assert.are.same({ 0, math.huge }, { plan_devices.between(list[2], list[2]) })
  end)

  it("makes a step longer where the network is slower", function()
    local layers = {}
    for i = 1, 8 do
      layers[i] = { forward = 1, input = 1, weight = 1, output_bytes = 1000, saved_bytes = 10 }
    end
    local function seconds(bandwidth)
      return assert(gp.plan(gp.profile { layers = layers }, nil, {
        devices = cluster { hosts = 2, devices = 2, network = { bandwidth = bandwidth } },
        batch = 8, chunks = 8, schedules = { "1f1b" }, checkpoint = "never",
      })).best.seconds
    end
    assert.is_true(seconds(100) > seconds(1e9) + 5)
  end)

  it("refuses what is no cluster", function()
    fails_with("did you mean 'devices'", cluster, { device = 3 })
    fails_with("expected an integer >= 1", cluster, { hosts = 0 })
    fails_with('such as "8GiB"', cluster, { memory = "8 GB" })
    fails_with("expected an integer <= 65536", function() cluster { hosts = 60000, devices = 60000 } end)
    for _, memory in ipairs { "x", -1, 0 / 0, "8GB" } do
      fails_with("gp.cluster: host_memory: memory is", cluster, { host_memory = memory })
    end
    fails_with("gp.cluster: link: option 'latency' is -1", cluster, { link = { latency = -1 } })
    fails_with("gp.cluster: network: option 'bandwidth' is 0", cluster, { network = { bandwidth = 0 } })
    fails_with("gp.cluster: host_link: missing option 'bandwidth'", cluster, { host_link = {} })
    fails_with("missing option 'flops'", gp.cluster, { memory = "8GiB", bandwidth = 1 })
  end)
end)

-- ---- the cost model -----------------------------------------------------------------------------

describe("a profile of a device that is not there", function()
  local device = { "sim:0", memory = "8GiB", flops = 1e12, bandwidth = 1e15, efficiency = 1 }

  it("has the FLOP of each layer over the device's rate, and the bytes of plans", function()
    local model = nn.Sequential { nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10) }
    local x = gp.zeros { 32, 64 }
    local p = gp.profile(model, { x }, { device = device })
    local measured = gp.profile(model, { x }, { device = { "cpu:0", threads = 1 }, repeats = 1 })
    for i, layer in ipairs(p.layers) do
      assert.are.near(layer.flop / 1e12, layer.forward, 1e-15)
      assert.are.equal(measured.layers[i].saved_bytes, layer.saved_bytes)
      assert.are.equal(measured.layers[i].parameter_bytes, layer.parameter_bytes)
      assert.are.equal(measured.layers[i].output_bytes, layer.output_bytes)
    end
    assert.are.equal(0, p.layers[1].input) -- the first layer needs no gradient of its input
    assert.is_true(p.layers[3].input > 0 and p.layers[3].weight > 0)
  end)

  it("draws no parameter: a model of 1.8 billion is declared and profiled in a few MiB", function()
    collectgarbage()
    local before = gp.memory().cpu.peak
    local model = gp.models.gpt2 { layers = 24, width = 2560, heads = 20, context = 64 }
    gp.profile(model, { gp.zeros({ 1, 64 }, { dtype = "i64" }) }, { device = device })
    collectgarbage()
    assert.is_true(gp.memory().cpu.peak - before < 1 << 28)
  end)
end)

-- ---- GPipe's Table 1 ----------------------------------------------------------------------------

local function eight_gib(count)
  local list = {}
  for i = 1, count do
    list[i] = { "sim:" .. i - 1, memory = "8GiB", flops = 1e13, bandwidth = 3e11 }
  end
  return list
end

describe("GPipe's Table 1", function()
  local rows = {
    { 1, 18, 416, 319024120 }, { 2, 18, 544, 542734840 }, { 8, 72, 512, 1844858344 },
  }
  for _, row in ipairs(rows) do
    local count, layers, filters, parameters = table.unpack(row)
    it(("fits AmoebaNet-D (%d,%d) on %d devices with 8 GiB"):format(layers, filters, count),
      function()
        local model = gp.models.amoebanetd { classes = 1000, layers = layers, filters = filters }
        local sum = 0
        for _, entry in ipairs(model:parameters()) do sum = sum + entry.param:numel() end
        assert.are.equal(parameters, sum)
        local plan = assert(gp.plan(model, { gp.zeros { 1, 3, 224, 224 },
          gp.zeros({ 1 }, { dtype = "i64" }) }, {
          devices = eight_gib(count), batch = 128, chunks = 128, schedules = { "gpipe" },
          checkpoint = "always", optimizer = "RMSprop", loss = nn.CrossEntropyLoss(),
        }))
        for _, bytes in ipairs(plan.best.peak) do assert.is_true(bytes <= 8 << 30) end
        assert.is_true(plan.best.exact)
      end)
  end
end)

-- ---- --dry-run ----------------------------------------------------------------------------------

local HEAD = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
local function model() return nn.Sequential {nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)} end
local x, y = gp.zeros {32, 8}, gp.zeros({32}, {dtype = "i64"})
]]

-- Options of gpipe-lua come before the script.
local function dry(text, ...)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(HEAD, text)
  file:close()
  local words = { "--dry-run", ... }
  words[#words + 1] = path
  local out, err, code = child.run(words)
  os.remove(path)
  return out, err, code
end

describe("gpipe-lua --dry-run script.lua", function()
  it("plans the pipeline of a script and stops before the first step", function()
    local out, err, code = dry [[
      local pipe = gp.pipeline(model(), {balance = {1, 2}, chunks = 4, loss = nn.CrossEntropyLoss()})
      local opt = optim.SGD(pipe:parameters(), {lr = 0.1, momentum = 0.9})
      while true do
        pipe:step(x, y)
        opt:step()
        print "trained"
      end]]
    assert.are.same({ "", 0 }, { err, code })
    assert.matches("pipeline 1", out)
    assert.matches("optimizer: SGD", out)
    assert.matches("as it is set: 1f1b, 2 stages on 2 devices, 4 micro%-batches of 8 rows", out)
    assert.matches("plan: ", out)
    assert.is_nil(out:find "trained")
  end)

  it("plans for devices that are not there, and says which do not fit", function()
    local out, _, code = dry [[
      local d = {}
      for i = 1, 2 do d[i] = {"sim:" .. i, memory = 1500, flops = 1e9, bandwidth = 1e9} end
      local pipe = gp.pipeline(model(), {devices = d, loss = nn.CrossEntropyLoss()})
      pipe:forward(x)]]
    assert.are.equal(0, code)
    assert.matches("DOES NOT FIT", out)
    assert.matches("no plan fits 2 devices", out)
  end)

  it("plans all pipelines of a script without a pass, for their samples", function()
    local out, _, code = dry [[
      gp.pipeline(model(), {loss = nn.CrossEntropyLoss(), sample = {x, y}})
      gp.pipeline(model(), {plan = "auto", devices = 2, loss = nn.CrossEntropyLoss(),
        sample = {x, y}})
      gp.pipeline(model(), {loss = nn.CrossEntropyLoss()})
      print "end"]]
    assert.are.equal(0, code)
    assert.matches("end\npipeline 1.*as it is set.*pipeline 2.*pipeline 3.*no batch is known", out)
  end)

  it("stops a run of gp.run before it writes anything", function()
    local out, err, code = dry [[
      local pipe = gp.pipeline(model(), {loss = nn.CrossEntropyLoss()})
      local opt = optim.Adam(pipe:parameters(), {lr = 0.1})
      local data = gp.data.tensors(x, y):batches(16)
      local run = gp.run("dry", {pipe = pipe, opt = opt, data = data, dir = "/nonexistent/runs"})
      for step, a, b in run:steps(3) do
        run:log(step, {loss = pipe:step(a, b)})
      end
      print "trained"]]
    assert.are.same({ "", 0 }, { err, code })
    assert.matches("optimizer: Adam", out)
    assert.matches("as it is set: 1f1b, 1 stage on 1 device, 1 micro%-batch of 16 rows", out)
  end)

  it("is one process that stands for rank 0 of a job of any size", function()
    local out, err, code = dry([[
      print(gp.rank(), gp.ranks(), #gp.all_gather(gp.rank()), gp.broadcast("same", 63))
      gp.barrier()
      local layers = {}
      for i = 1, 128 do layers[i] = nn.Linear(8, 8) end
      local pipe = gp.pipeline(nn.Sequential(layers), {chunks = 16, loss = nn.MSELoss()})
      pipe:step(x, gp.zeros {32, 8})]], "--ranks", "8", "--node", "0/8")
    assert.are.same({ "", 0 }, { err, code })
    assert.matches("^0\t64\t64\tsame\n", out)
    assert.matches("as it is set: 1f1b, 64 stages on 64 devices", out)
    assert.matches("\n    0/cpu:0: .*\n    1/cpu:1: ", out)
  end)

  it("knows on which rank a device is, and refuses one of a rank that is not there", function()
    local text = [[
      local pipe = gp.pipeline(model(), {devices = {"0/cpu:0", "2/cpu:0"}, balance = {1, 2}, chunks = 4,
        loss = nn.CrossEntropyLoss()})
      pipe:step(x, y)]]
    local out, err, code = dry(text, "--ranks", "3")
    assert.are.same({ "", 0 }, { err, code })
    assert.matches("0/cpu:0: .*2/cpu:0: ", out)
    local _, why, failed = dry(text, "--ranks", "2")
    assert.are.equal(1, failed)
    assert.matches("device '2/cpu:0' is of rank 2, expected a rank below 2", why, 1, true)
  end)

  it("takes the devices of the command line", function()
    local out, _, code = dry([[
      local pipe = gp.pipeline(model(), {chunks = 4, loss = nn.CrossEntropyLoss()})
      pipe:step(x, y)]], "--devices", "cpu:0,cpu:1")
    assert.are.equal(0, code)
    assert.matches("as it is set: 1f1b, 2 stages on 2 devices", out)
  end)

  it("lets a script fail as it would", function()
    local _, err, code = dry [[error "no data"]]
    assert.matches("no data", err)
    assert.are.equal(1, code)
  end)

  it("ends with code 1 where the first pass would raise an error, and says which", function()
    local wrong = "local m = nn.Sequential {nn.Linear(8, 4), nn.Linear(5, 2)}\n"
    local out, _, code = dry(wrong .. [[
      local pipe = gp.pipeline(m, {loss = nn.CrossEntropyLoss()})
      pipe:step(x, y)]])
    assert.matches("input is 1x4, expected ?x5", out, 1, true)
    assert.are.equal(1, code)
    local _, _, at_end = dry(wrong .. "gp.pipeline(m, {loss = nn.CrossEntropyLoss(), sample = {x, y}})")
    assert.are.equal(1, at_end)
  end)

  it("makes the optimizer of a model that no machine could hold", function()
    local out, err, code = dry [[
      local m = nn.Sequential {nn.Linear(1 << 20, 1 << 20), nn.Linear(1 << 20, 2)} -- 4 TiB
      local pipe = gp.pipeline(m, {devices = {{"sim:0", memory = "1TiB"}}, loss = nn.CrossEntropyLoss()})
      local opt = optim.AdamW({{params = pipe:parameters "^1"}}, {lr = 0.1})
      opt:add_param_group {params = pipe:parameters "^2", lr = 1}
      pipe:step(gp.zeros {32, 1 << 20}, y)]]
    assert.are.same({ "", 0 }, { err, code })
    assert.matches("optimizer: AdamW", out)
    assert.matches("DOES NOT FIT", out)
  end)

  it("lets a script use what belongs to a pipeline before the first step", function()
    local folder = os.tmpname()
    os.remove(folder)
    local text = ([[
      local pipe = gp.pipeline(model(), {chunks = 4, loss = nn.CrossEntropyLoss()})
      local opt = optim.AdamW(pipe:parameters(), {lr = 0.1})
      local ema, accumulate = gp.train.ema(pipe), gp.train.accumulate(pipe, 2)
      local extra, why = gp.checkpoint.load(%q, {pipe = pipe, opt = opt})
      print(extra and extra.epoch or why, #pipe:memory(), pipe:memory()[1].planned)
      print(gp.checkpoint.save(%q, {pipe = pipe, opt = opt, extra = {epoch = 4}}))
      accumulate(x, y)
      ema:update()]]):format(folder, folder)
    local out, err, code = dry(text)
    assert.are.same({ "", 0 }, { err, code })
    assert.matches(folder .. ".-\t1\t0\ntrue\npipeline 1.*as it is set: 1f1b", out)
    assert.is_nil(io.open(folder .. "/MANIFEST.json"))
    local real = child.file(HEAD .. text:gsub("local extra.-\n", "local extra = {}\n"):gsub("why,", "0,"))
    assert.are.equal(0, select(3, child.run { real }))
    os.remove(real)
    assert.matches("^4\t1\t0\n", (dry(text)))
    os.execute("rm -r " .. folder)
  end)

  it("lets a script train that uses no pipeline", function()
    local out, _, code = dry [[
      local m = model()
      local opt = optim.Adam(m:parameters(), {lr = 0.1})
      local before = m[1].weight:clone()
      nn.CrossEntropyLoss()(m(gp.ones {32, 8}), y):backward()
      opt:step()
      print(gp.equal(before, m[1].weight), opt:state_dict().step:item(), tostring(opt):match "step %d")]]
    assert.are.equal(0, code)
    assert.matches("false\t1\tstep 1", out)
  end)
end)
