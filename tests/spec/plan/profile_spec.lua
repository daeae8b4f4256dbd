-- tests/spec/plan/profile_spec.lua - gp.profile: true bytes and times of layers, a model that stays
-- as it was, files.
-- luacheck: ignore 212/self
local dry_run = require "gpipe.pipeline.plan.dry_run"
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local random = require "gpipe.random"
local nn = gp.nn

local ROWS = 32

local function small()
  return nn.Sequential {
    nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.1),
    nn.LayerNorm(128), { "head", nn.Linear(128, 10) },
  }
end

local function x() return gp.ones { ROWS, 64 } end
local function y() return gp.zeros({ ROWS }, { dtype = "i64" }) end

local function sum(p, field)
  local total = 0
  for _, layer in ipairs(p.layers) do total = total + layer[field] end
  return total
end

-- ---- figures ------------------------------------------------------------------------------------

describe("gp.profile", function()
  it("has the planned bytes of each layer", function()
    local p = gp.profile(small(), { x(), y() }, { loss = nn.CrossEntropyLoss(), repeats = 1 })
    local wide, names = ROWS * 128 * 4, {}
    local saved = { 0, wide, 0, wide, wide, wide + ROWS * 8, ROWS * 10 * 4 + 256 }
    local params = { 65 * 128, 0, 129 * 128, 0, 0, 2 * 128, 129 * 10 }
    for i, layer in ipairs(p.layers) do
      names[i] = layer.name
      assert.are.equal(i < 7 and wide or ROWS * 10 * 4, layer.output_bytes)
      assert.are.equal(saved[i], layer.saved_bytes)
      assert.are.equal(4 * params[i], layer.parameter_bytes)
      assert.is_true(layer.workspace_bytes >= 0)
    end
    assert.are.same({ "1", "2", "3", "4", "5", "6", "head" }, names)
    assert.are.equal("Tanh", p.layers[2].layer)
    assert.are.same({ ROWS, ROWS * 64 * 4 }, { p.rows, p.input_bytes })
    assert.are.equal(2 * ROWS * 128 * 128 + ROWS * 128, p.layers[3].flop)
    assert.are.same({ true, false, true, false, false, true, true }, {
      p.layers[1].reads_input, p.layers[2].reads_input, p.layers[3].reads_input,
      p.layers[4].reads_input, p.layers[5].reads_input, p.layers[6].reads_input,
      p.layers[7].reads_input,
    })
  end)

  local function block()
    return nn.Sequential {
      nn.Stash "x", nn.Linear(8, 8), nn.Tanh(), nn.Pop("x", "add"),
    }:isolate(nn.namespace())
  end

  local models = {
    { "a chain", small, x, y, nn.CrossEntropyLoss },
    { "skips past several layers", function()
      return nn.Sequential {
        nn.Linear(64, 8), nn.Stash "far", block(), block(), nn.Pop("far", "concat"),
        nn.Linear(16, 64),
      }:flatten()
    end, x, x, nn.MSELoss },
    { "convolutions", function() return gp.models.resnet(18, { classes = 4 }):flatten() end,
      function() return gp.ones { 2, 3, 32, 32 } end,
      function() return gp.zeros({ 2 }, { dtype = "i64" }) end, nn.CrossEntropyLoss },
  }
  for _, case in ipairs(models) do
    local what, make, input, target, loss = table.unpack(case)
    it("has saved bytes that add up to what one stage keeps: " .. what, function()
      local model, sample = make(), { input(), target() }
      local rows = require("gpipe.profile").sizes(require("gpipe.profile.request").of("who", model,
        sample, { chunks = 1, loss = loss() }), "cpu:0")
      local dry = gp.dry_run(model, { loss = loss(), sample = sample, checkpoint = "never" })
      local kept = dry.core:stage(dry.core, 0, 0).kept_bytes
      assert.are.equal(kept, sum({ layers = rows }, "saved_bytes"))
      assert.are.equal(#model, #rows)
    end)
  end

  it("has times of every pass, none for the gradient of the first layer's input", function()
    local p = gp.profile(small(), { x() }, { repeats = 3, device = { "cpu:0", threads = 1 } })
    assert.are.same({ "cpu:0", 1, 3 }, { p.device, p.threads, p.repeats })
    assert.are.equal(0, p.layers[1].input)
    assert.is_true(p.layers[3].input > 0 and p.layers[1].weight > 0)
    for _, layer in ipairs(p.layers) do
      assert.is_true(layer.forward > 0)
      assert.are.equal(layer ~= p.layers[7], layer.recompute > 0) -- no backward reads the scores
    end
    assert.is_true(p.layers[2].input > 0)
    assert.are.equal(0, p.layers[2].weight)
  end)

  it("has times of a whole backward and of a forward pass that drops what it makes", function()
    local p = gp.profile(small(), { x() }, { repeats = 3, device = { "cpu:0", threads = 1 } })
    for _, layer in ipairs(p.layers) do
      assert.is_true(layer.forward_dropped > 0)
      assert.is_true(layer.backward > 0)
    end
    local by_hand = gp.profile { layers = { { forward = 1, input = 2, weight = 3 } } }
    assert.are.same({ 1, 5 }, { by_hand.layers[1].forward_dropped, by_hand.layers[1].backward })
  end)

  it("has a way to the host's memory where it is said, and not in older files", function()
    local link = { bandwidth = 25e9, latency = 1e-5 }
    local path = os.tmpname()
    for _, one in ipairs { link, false } do
      local p = gp.profile { layers = { { forward = 1 } }, host_link = one or nil }
      assert(p:save(path))
      assert.are.same(one or nil, assert(gp.profile { path = path }).host_link)
      assert.are.equal(one ~= false, tostring(p):find("25 GB/s, and 10 us each", 1, true) ~= nil)
    end
    local file <close> = assert(io.open(path, "w"))
    file:write [[{"kind":"gpipe profile","version":1,"layers":[{"forward":1,"input":2,"weight":3}]}]]
    file:close()
    local old = assert(gp.profile { path = path })
    os.remove(path)
    assert.are.same({ 1, 5 }, { old.layers[1].forward_dropped, old.layers[1].backward })
    assert.is_nil(old.host_link)
    fails_with("host_link", gp.profile, { layers = { {} }, host_link = { bandwidth = 0 } })
    local sim = { "sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e11, host_link = link }
    assert.are.same(link, gp.profile(small(), { x() }, { device = sim }).host_link)
  end)

  it("measures with recomputation alone where there is no room to keep what layers make", function()
    local runs, times = require "gpipe.profile.runs", require "gpipe.profile.times"
    local wanted = require("gpipe.profile.request").of("who", small(), { x() }, { chunks = 1 })
    local opened, open = {}, runs.open
    local rows = require("gpipe.profile").sizes(wanted, "cpu:0")
    rows[1].saved_bytes = math.maxinteger // 2
    runs.open = function(w, device, checkpoint, whole)
      opened[#opened + 1] = checkpoint
      return open(w, device, checkpoint, whole)
    end
    local good, why = pcall(times.measure, wanted, { device = "cpu:0", repeats = 1 }, rows)
    runs.open = open
    assert.is_true(good, why)
    assert.are.same({ "always" }, opened)
    for _, row in ipairs(rows) do
      assert.are.same({ row.forward_dropped, row.input + row.weight }, { row.forward, row.backward })
    end
  end)

  it("has what selective recomputation keeps and makes again", function()
    local model, sample, loss = small(), { x(), y() }, nn.CrossEntropyLoss()
    local p = gp.profile(model, sample, { loss = loss, repeats = 3,
      device = { "cpu:0", threads = 1 } })
    local dry = dry_run(model, { loss = loss, sample = sample, checkpoint = "selective" }, true)
    local kept = 0
    for _, layer in ipairs(p.layers) do
      kept = kept + layer.selective.saved_bytes
      assert.is_true(layer.selective.saved_bytes <= layer.saved_bytes)
    end
    assert.are.equal(dry.core:stage(dry.core, 0, 0).kept_bytes, kept)
    assert.is_true(kept < 0.8 * sum(p, "saved_bytes"))
    assert.are.equal(0, p.layers[3].selective.recompute) -- a product is kept
    assert.is_true(p.layers[6].selective.recompute > 0) -- a norm is not
  end)

  it("measures what a layer takes, in the order of its size", function()
    local p = gp.profile(nn.Sequential {
      nn.Linear(16, 16), nn.Linear(16, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 16),
    }, { gp.ones { 64, 16 } })
    local l = p.layers
    assert.is_true(l[3].forward > 3 * l[4].forward and l[3].weight > 3 * l[4].weight)
    assert.is_true(l[3].input > 3 * l[1].forward)
  end)

  it("takes one micro-batch of the sample", function()
    local p = gp.profile(small(), { x() }, { chunks = 5, repeats = 1 })
    assert.are.equal(7, p.rows)
    assert.are.equal(7 * 128 * 4, p.layers[2].saved_bytes // 256 * 256)
    assert.are.equal(1, gp.profile(small(), x(), { chunks = 99, repeats = 1 }).rows)
  end)

  it("takes layers with several values, ids and parameters in common", function()
    local tied = nn.Sequential { nn.Embedding(8, 4), nn.Linear(4, 8, { bias = false }) }
    tied[2].weight = tied[1].weight
    local ids = gp.zeros({ 6, 3 }, { dtype = "i64" })
    local p = gp.profile(tied, { ids, ids }, { loss = nn.CrossEntropyLoss(), repeats = 1 })
    assert.are.same({ 8 * 4 * 4, 0 }, { p.layers[1].parameter_bytes, p.layers[2].parameter_bytes })
    local two = nn.Sequential { nn.Parallel { nn.Linear(4, 4), nn.Tanh() }, nn.Identity() }
    p = gp.profile(two, { { gp.ones { 6, 4 }, gp.ones { 6, 4 } } }, { repeats = 1 })
    assert.are.equal(2 * 128, p.layers[1].output_bytes)
  end)

  it("counts what comes back over a cut: a gradient for each layer behind it that reads a value", function()
    local skip = nn.Sequential { nn.Linear(4, 4), nn.Stash "a", nn.Linear(4, 4), nn.Pop "a",
      nn.Linear(4, 2) }
    local p = gp.profile(skip, { gp.ones { 8, 4 }, gp.ones { 8, 2 } }, { loss = nn.MSELoss(), repeats = 1 })
    local forward, backward = {}, {}
    for i, layer in ipairs(p.layers) do
      forward[i], backward[i] = layer.output_bytes // 128, layer.gradient_bytes // 128
    end
    -- The gradient of a sum is one value, which goes to both of its terms.
    assert.are.same({ 1, 1, 2, 1, 0 }, forward)
    assert.are.same({ 2, 2, 1, 1, 0 }, backward)
  end)

  it("plans and measures halves", function()
    local p = gp.profile(small(), { x() }, { precision = "bf16", repeats = 1 })
    assert.are.equal(ROWS * 128 * 2, p.layers[2].saved_bytes)
  end)

  it("prints a line for each layer and the sums", function()
    local text = tostring(gp.profile(small(), { x() }, { repeats = 1 }))
    assert.are.equal(1 + 1 + 7 + 1, select(2, (text .. "\n"):gsub("\n", "")))
    assert.is_truthy(text:find("profile of 7 layers on cpu:0", 1, true))
    assert.is_truthy(text:find("total", 1, true))
  end)
end)

-- ---- the model stays as it was ------------------------------------------------------------------

-- A layer that counts its calls, draws numbers and writes a buffer.
local Busy = nn.class "Busy"
function Busy:init()
  self.calls, self.kept = 0, { 0 }
  self.sum, self.w = nn.Buffer({ 4 }, 0), nn.Parameter({ 4 }, 1)
end
function Busy:forward(v)
  self.calls, self.kept[1] = self.calls + 1, self.kept[1] + 1
  self.sum:add_(v:mean(1))
  return v * self.w + gp.randn(v.shape)
end

local function busy()
  return nn.Sequential { nn.Linear(4, 4), nn.BatchNorm1d(4), Busy(), nn.Dropout(0.5) }
end

-- Everything that a profile could change.
local function state_of(model)
  local modes, grads = {}, {}
  for name, module in model:modules() do modes[#modes + 1] = { name, module:is_training() } end
  for i, entry in ipairs(model:parameters()) do
    grads[i] = entry.grad and entry.grad:totable() or 0
  end
  return { random = random.state(), modes = modes, grads = grads, calls = model[3].calls,
    kept = model[3].kept[1] }
end

local function unchanged(model, f)
  local state, values = state_of(model), model:state_dict()
  f()
  assert.are.same(state, state_of(model))
  local count = 0
  for name, value in pairs(model:state_dict()) do
    count = count + 1
    assert.is_true(gp.equal(value, values[name]), name)
  end
  assert.is_true(count > 7)
end

describe("the profiled model", function()
  local input = gp.ones { 6, 4 }
  local passes = {
    ["gp.profile"] = function(model) gp.profile(model, { input }, { repeats = 2 }) end,
    ["gp.balance_by_time"] = function(model)
      gp.balance_by_time(2, model, { input }, { timeout = 0 })
    end,
    ["gp.balance_by_size"] = function(model) gp.balance_by_size(2, model, { input }) end,
  }
  for name, pass in pairs(passes) do
    it("has the values, buffers, modes and gradients that it had: " .. name, function()
      gp.seed(3)
      local model = busy()
      model[4]:eval()
      gp.randn { 3 }
      unchanged(model, function() pass(model) end)
    end)

    it("may belong to a pipeline, whose training goes on as if nothing had been: " .. name,
      function()
        local losses = {}
        for k = 1, 2 do
          gp.seed(4)
          local model = busy()
          local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
          local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
          losses[k] = {}
          for i = 1, 3 do
            losses[k][i] = pipe:step(input, input)
            if k == 2 then unchanged(model, function() pass(model) end) end
            opt:step()
          end
        end
        assert.are.same(losses[1], losses[2])
      end)
  end

  it("is as it was after an error too", function()
    local model = busy()
    unchanged(model, function()
      fails_with("1 (Linear 4 -> 4)", gp.profile, model, { gp.ones { 6, 5 } })
    end)
  end)

  it("leaves no memory behind", function()
    local model = busy()
    local function live()
      collectgarbage()
      collectgarbage()
      return gp.memory().cpu.live
    end
    gp.profile(model, { input }, { repeats = 1 })
    local before = live()
    gp.profile(model, { input }, { repeats = 1 })
    assert.are.equal(before, live())
  end)
end)

-- ---- by hand and from files ---------------------------------------------------------------------

describe("a profile made by hand", function()
  it("has zeros where nothing was said", function()
    local p = gp.profile { layers = { { forward = 1 }, { name = "b", saved_bytes = 64,
      selective = { saved_bytes = 8 } } }, rows = 4, input_bytes = 16 }
    assert.are.same({ "1", 1, 0, 0, 0, 0, true }, { p.layers[1].name, p.layers[1].forward,
      p.layers[1].weight, p.layers[1].saved_bytes, p.layers[1].flop, p.layers[1].output_bytes,
      p.layers[1].reads_input })
    assert.are.same({ "b", 64, 8, 0, 4, 16 }, { p.layers[2].name, p.layers[2].saved_bytes,
      p.layers[2].selective.saved_bytes, p.layers[2].selective.recompute, p.rows, p.input_bytes })
    assert.is_truthy(tostring(p):find("profile of 2 layers, a micro-batch of 4 rows", 1, true))
  end)

  local refused = {
    { {}, "gp.profile: missing option 'layers'" },
    { { layers = {} }, "gp.profile: there are no layers, expected at least one" },
    { { layers = { 3 } }, "gp.profile: layer 1 is 3, expected a table" },
    { { layers = { {}, { foward = 1 } } },
      "gp.profile: layer 2: unknown option 'foward' (did you mean 'forward'?)" },
    { { layers = { { forward = -1 } } }, "layer 1: option 'forward' is -1, expected a" },
    { { layers = { { weight = 0 / 0 } } }, "layer 1: option 'weight' is nan (float)" },
    { { layers = { { saved_bytes = 1.5 } } }, "layer 1: option 'saved_bytes' is 1.5 (float)" },
    { { layers = { { selective = { bytes = 1 } } } },
      "layer 1: selective: unknown option 'bytes'" },
    { { layers = { {} }, row = 3 }, "gp.profile: unknown option 'row' (did you mean 'rows'?)" },
    { { path = 3 }, "gp.profile: option 'path' is 3, expected a string" },
    { { path = "x", rows = 3 }, "gp.profile: unknown option 'rows'" },
  }
  for _, case in ipairs(refused) do
    it("is refused: " .. case[2], function() fails_with(case[2], gp.profile, case[1]) end)
  end
end)

describe("a saved profile", function()
  local path
  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  local function write(text)
    local file <close> = assert(io.open(path, "wb"))
    file:write(text)
  end

  it("is read as it was", function()
    local p = gp.profile(small(), { x() }, { repeats = 2 })
    p.layers[1].selective = { saved_bytes = 1, head_bytes = 1, recompute = 0.1 }
    assert.is_true(p:save(path))
    local q = assert(gp.profile { path = path })
    assert.are.same(p, q)
    assert.are.equal(tostring(p), tostring(q))
    assert.are.equal(getmetatable(p), getmetatable(q))
  end)

  it("is a message and a code where the world fails", function()
    local p = gp.profile { layers = { {} } }
    local _, _, code = p:save "/nowhere/p.json"
    assert.are.equal("io", code)
    local none, message
    none, message, code = gp.profile { path = "/nowhere/p.json" }
    assert.are.same({ nil, "io" }, { none, code })
    assert.is_truthy(message:find("/nowhere/p.json", 1, true))
    assert.are.equal("io", select(3, gp.profile { path = "/tmp" }))
  end)

  local damaged = {
    { "", "is no profile, expected a file of p:save" }, { "[1,2", "is no profile" },
    { '{"layers":[{}]}', "is no profile" },
    { '{"kind":"gpipe profile","version":9,"layers":[{}]}', "has version 9, expected 1" },
    { '{"kind":"gpipe profile","version":1,"layers":[]}', "there are no layers" },
    { '{"kind":"gpipe profile","version":1,"layers":[{"forward":-3}]}', "'forward' is -3" },
    { '{"kind":"gpipe profile","version":1,"layers":7}', "option 'layers' is 7" },
  }
  for _, case in ipairs(damaged) do
    it("is refused, with a message and a code: " .. case[2], function()
      write(case[1])
      local none, message, code = gp.profile { path = path }
      assert.are.same({ nil, "format" }, { none, code })
      assert.is_truthy(message:find(case[2], 1, true), message)
    end)
  end
end)

-- ---- wrong calls --------------------------------------------------------------------------------

describe("gp.profile refuses", function()
  local cases = {
    { { nn.Linear(2, 2), { x() } }, "the model is a nn.Linear, expected an nn.Sequential" },
    { { nn.Sequential {}, { x() } }, "expected an nn.Sequential with layers" },
    { { nn.Linear, { x() } }, "the model is the class nn.Linear" },
    { { nil, { x() } }, "the model is nil, expected an nn.Sequential" },
    { { small() }, "the sample is nil, expected {x, y} or {x}" },
    { { small(), { 3 } }, "the sample's input is 3, expected a tensor" },
    { { small(), { x() }, { loss = nn.MSELoss() } }, "the sample has no target, expected {x, y}" },
    { { small(), { x(), gp.ones { 3, 10 } }, { loss = nn.MSELoss() } },
      "the input has 32 rows and the target 3" },
    { { small(), { x() }, { repeat_ = 3 } }, "unknown option 'repeat_' (did you mean 'repeats'?)" },
    { { small(), { x() }, { device = "gpu" } },
      "option 'device' is \"gpu\" (string), expected a device such as" },
    { { small(), { x() }, { device = { "cpu:0", thread = 1 } } }, "unknown option 'thread'" },
    { { nn.Sequential { nn.Identity() }, { y() } },
      "the model returns no floating-point numbers, expected option 'loss'" },
  }
  for _, case in ipairs(cases) do
    it(case[2], function() fails_with(case[2], gp.profile, table.unpack(case[1], 1, 3)) end)
  end
end)
