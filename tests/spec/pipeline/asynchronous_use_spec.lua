-- tests/spec/pipeline/asynchronous_use_spec.lua - streams of mini-batches: what step and flush
-- return, users' schedules, mistakes, and resuming.
local gp = require "gpipe"
local inside = require "gpipe.pipeline.object".inside
local asynchronous = require "tests.support.asynchronous"
local nn, optim = gp.nn, gp.optim

local made = asynchronous.tower()

local function pipe_of(rule, p, chunks, options)
  local merged = { loss = made.loss, seed = 5, chunks = chunks, balance = made.balance(p),
    schedule = type(rule) == "string" and asynchronous.schedule(rule) or rule }
  for key, value in pairs(options or {}) do merged[key] = value end
  return gp.pipeline(made.model(), merged)
end

local function used(rule, p, chunks, options)
  local pipe = pipe_of(rule, p, chunks, options)
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  return pipe:use(opt), opt
end

local function batch(t, rows)
  return gp.randn({ rows, 6 }, { seed = 10 * t + 1 }), gp.randn({ rows, 6 }, { seed = 10 * t + 2 })
end

local function fails(text, f, ...)
  local good, message = pcall(f, ...)
  assert.is_false(good)
  assert.matches(text, message)
end

-- ---- losses ------------------------------------------------------------------------------------

-- Counts the losses that each of six steps returns, and then flush.
local function counts(rule, p, chunks)
  local pipe <close> = used(rule, p, chunks)
  local list = {}
  for t = 1, 6 do list[t] = #pipe:step(batch(t, 2 * chunks)) end
  list[7] = #pipe:flush()
  assert.same({}, pipe:flush())
  return table.concat(list, " ")
end

describe("step returns the losses that came back to the first stage", function()
  for _, case in ipairs {
    { "pipedream", 1, 1, "1 1 1 1 1 1 0" },
    { "pipedream", 4, 1, "0 0 0 1 1 1 3" },
    { "pipedream", 8, 1, "0 0 0 0 0 0 6" },
    { "pipedream", 4, 2, "0 1 2 2 2 2 3" },
    { "pipedream", 4, 5, "2 5 5 5 5 5 3" },
    { "vertical_sync", 4, 2, "0 1 2 2 2 2 3" },
    { "pipedream_2bw", 1, 3, "1 1 1 1 1 1 0" },
    { "pipedream_2bw", 2, 3, "0 1 1 1 1 1 1" },
    { "pipedream_2bw", 4, 1, "0 1 1 1 1 1 1" },
    { "pipedream_2bw", 8, 3, "0 1 1 1 1 1 1" },
  } do
    it(("%s, %d stages, %d chunks: %s"):format(table.unpack(case)), function()
      for _ = 1, 3 do assert.equal(case[4], counts(case[1], case[2], case[3])) end
    end)
  end

  it("one for each mini-batch that was fed, also with fewer steps than stages", function()
    for _, rule in ipairs { "pipedream", "vertical_sync", "pipedream_2bw" } do
      for steps = 1, 3 do
        local pipe <close> = used(rule, 8, 2)
        local n = 0
        for t = 1, steps do n = n + #pipe:step(batch(t, 4)) end
        n = n + #pipe:flush()
        assert.equal(rule == "pipedream_2bw" and steps or 2 * steps, n)
      end
    end
  end)
end)

-- ---- schedules of a user's own -----------------------------------------------------------------

-- Defines PipeDream as a user may write it: rows of text, and F reads the version version(s).
-- backward: the version of B, where it differs.
local function define(name, version, backward)
  gp.schedule.define(name, function(p, m)
    local rows, placement = {}, {}
    for s = 0, p - 1 do
      local row, w = {}, math.min(p - 1 - s, m)
      local function add(op, k, v)
        row[#row + 1] = ("%d%s%d%s"):format(s, op, k, v and "@" .. v or "")
      end
      for i = 0, w - 1 do add("F", i, version(i, s, p)) end
      for i = 0, m - 1 do
        if w + i < m then add("F", w + i, version(w + i, s, p)) end
        add("B", i, (backward or version)(i, s, p))
        add("U", i)
      end
      rows[s + 1], placement[s] = table.concat(row, ","), s
    end
    return { placement = placement, rows = rows, batch = 1 }
  end)
end

describe("a user's asynchronous schedule", function()
  it("runs, and follows the versions that it names", function()
    define("behind_by_stages", function(k, _, p) return math.max(0, k - p) end)
    -- One more version behind than vertical sync.
    asynchronous.RULES.behind_by_stages = function(k, _, p) return math.max(0, k - p) end
    local script = { { rows = 6 }, { rows = 6 }, { rows = 6 }, { rows = 7 }, { rows = 7 } }
    for _, p in ipairs { 1, 2, 4 } do
      for _, chunks in ipairs { 1, 3 } do
        local want = asynchronous.simulate(made, "behind_by_stages", p, chunks, script)
        assert.is_nil(asynchronous.difference(want,
          asynchronous.run(made, "behind_by_stages", p, chunks, script)))
      end
    end
    asynchronous.RULES.behind_by_stages = nil
  end)

  it("that does not stash weights, as PipeDream does, is refused", function()
    define("naive_pipedream", function(k, s, p) return math.max(0, k - (p - 1 - s)) end,
      function(k) return k end)
    local s = gp.schedule.build("naive_pipedream", { devices = 4, chunks = 8 })
    local good, report = s:verify()
    assert.is_nil(good)
    assert.equal("versions", report[1].check)
    local pipe <close> = used("naive_pipedream", 4, 1)
    fails("uses other weights than its forward pass", pipe.step, pipe, batch(1, 2))
  end)

  it("with several stages on a device, several micro-batches an update and split backward passes",
    function()
    -- Device d holds stages d and p + d; the two backward passes of a batch run in descending
    -- order.
    gp.schedule.define("folded", function(p, m)
      local rows, placement = gp.schedule.rows(p), {}
      for s = 0, 2 * p - 1 do placement[s] = s % p end
      local function version(i) return i // 2 end
      for b = 0, m // 2 - 1 do
        for d = 0, p - 1 do
          for s = d, d + p, p do
            for i = 2 * b, 2 * b + 1 do rows:F(d, s, i, version(i)) end
          end
          for s = d + p, d, -p do
            for i = 2 * b + 1, 2 * b, -1 do rows:I(d, s, i, version(i)) end
            for i = 2 * b + 1, 2 * b, -1 do rows:W(d, s, i, version(i)) end
            rows:U(d, s, b)
          end
        end
      end
      return { placement = placement, rows = rows, batch = 2 }
    end)
    local two = asynchronous.tower()
    local function train(options)
      local pipe <close> = gp.pipeline(two.model(), options)
      pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
      local losses = {}
      for t = 1, 5 do
        local got = pipe:step(batch(t, 5))
        if type(got) == "number" then got = { got } end
        table.move(got, 1, #got, #losses + 1, losses)
      end
      table.move(pipe:flush(), 1, 9, #losses + 1, losses)
      return losses, pipe:state_dict()
    end
    local options = { chunks = 2, loss = two.loss, seed = 5, balance = { 2, 2, 2, 2 },
      schedule = "folded" }
    local losses, state = train(options)
    local want, other = train { chunks = 2, loss = two.loss, seed = 5, schedule = "naive" }
    assert.same(want, losses) -- no version is skipped, so it is plain training
    for name, value in pairs(other) do assert.is_true(gp.equal(value, state[name])) end
  end)

  it("that does not repeat itself is refused", function()
    gp.schedule.define("restless", function(p, m)
      local rows = gp.schedule.rows(p)
      for i = 0, m - 1 do
        local version = i % 3 == 0 and i or i - 1
        rows:F(0, 0, i, version) rows:B(0, 0, i, version) rows:U(0, 0, i)
      end
      return { placement = { [0] = 0 }, rows = rows, batch = 1 }
    end)
    local pipe <close> = used("restless", 1, 1)
    fails("it does not become periodic within %d+ micro%-batches", pipe.step, pipe, batch(1, 2))
  end)

  it("with two copies of a stage is refused", function()
    gp.schedule.define("both_ways", function(_, m)
      local rows = gp.schedule.rows(2)
      for d = 0, 1 do
        for i = d, m - 1, 2 do
          rows:F(d, 0, i, i // 2) rows:B(d, 0, i, i // 2) rows:U(d, 0, i // 2)
        end
      end
      return { placement = { [0] = { 0, 1 } }, rows = rows, batch = 2 }
    end)
    local pipe <close> = used("both_ways", 1, 2)
    fails("it is asynchronous and runs a stage on two devices", pipe.step, pipe, batch(1, 4))
  end)

  it("may run backward passes of the next mini-batch before an update, and their gradients wait",
    function()
    gp.schedule.define("pairs", function(p, m)
      local rows, placement = gp.schedule.rows(p), {}
      for s = 0, p - 1 do
        placement[s] = s
        for k = 0, m - 2, 2 do
          rows:F(s, s, k, k) rows:F(s, s, k + 1, k)
          rows:B(s, s, k, k) rows:B(s, s, k + 1, k)
          rows:U(s, s, k) rows:U(s, s, k + 1)
        end
      end
      return { placement = placement, rows = rows, batch = 1 }
    end)
    asynchronous.RULES.pairs = function(k) return k - k % 2 end
    local script = { { rows = 5 }, { rows = 5 }, { rows = 4 }, { rows = 4 } }
    for _, p in ipairs { 1, 2, 4 } do
      for _, checkpoint in ipairs { "always", "never" } do
        local want = asynchronous.simulate(made, "pairs", p, 2, script)
        local got = asynchronous.run(made, "pairs", p, 2, script, { checkpoint = checkpoint })
        assert.is_nil(asynchronous.difference(want, got))
      end
    end
    asynchronous.RULES.pairs = nil
  end)
end)

describe("an asynchronous schedule that was built", function()
  local script = { { rows = 8 }, { rows = 8 }, { rows = 8, then_ = "evaluate" }, { rows = 8 },
    { rows = 7 } }
  local function check(rule, options)
    local want = asynchronous.simulate(made, rule, 4, 4, script)
    assert.is_nil(asynchronous.difference(want,
      asynchronous.run(made, rule, 4, 4, script, options)))
  end

  it("stands for a stream of any length", function()
    for _, rule in ipairs { "pipedream", "pipedream_2bw" } do
      check(rule, { schedule = gp.schedule.build(rule, { devices = 4, chunks = 4 }) })
    end
    check("vertical_sync", { schedule = gp.schedule.build("pipedream", { devices = 4, chunks = 4,
      vertical_sync = true }) })
  end)

  it("runs when it was read from a text that is long enough", function()
    local function read(rule, options, batch_size)
      local s = gp.schedule.build(rule, options)
      return gp.schedule.parse(s:csv(), { batch = batch_size })
    end
    table.remove(script) -- so that all batches have as many micro-batches
    check("pipedream", { schedule = read("pipedream", { devices = 4, chunks = 32 }, 1) })
    check("pipedream_2bw",
      { schedule = read("pipedream_2bw", { devices = 4, chunks = 4, batches = 8 }, 4) })
    local pipe <close> = used(read("pipedream", { devices = 4, chunks = 4 }, 1), 4, 1)
    fails("it does not become periodic within 4 micro%-batches", pipe.step, pipe, batch(1, 2))
    assert.is_true(pipe:evaluate(batch(1, 2)) > 0)
  end)

  it("needs steps of whole mini-batches", function()
    local pipe <close> =
      used(gp.schedule.parse(gp.schedule.build("pipedream_2bw", { devices = 2, chunks = 2,
      batches = 9 }):csv(), { batch = 2 }), 2, 3)
    fails("it updates after every 2 micro%-batches, a step has 3: expected a multiple", pipe.step,
      pipe, batch(1, 6))
  end)
end)

-- ---- mistakes ----------------------------------------------------------------------------------

describe("a clear error names", function()
  it("a step without use", function()
    local pipe <close> = pipe_of("pipedream", 2, 2)
    fails("step: schedule 'pipedream' is asynchronous.*call pipe:use%(opt%) first", pipe.step, pipe,
      batch(1, 4))
  end)

  it("opt:step() after use", function()
    for _, rule in ipairs { "pipedream", "1f1b" } do
      local pipe <close>, opt = used(rule, 2, 2)
      pipe:step(batch(1, 4))
      fails("pipe:step%(%) has made it already", opt.step, opt)
      pipe:flush()
      fails("pipe:step%(%) has made it already", opt.step, opt)
    end
  end)

  it("clipping and barriers where neither is possible", function()
    local pipe <close> = pipe_of("pipedream", 2, 2)
    local opt = optim.SGD(pipe:parameters(), { lr = 0.1 })
    fails("use: clip_norm needs the gradients of all stages", pipe.use, pipe, opt,
      { clip_norm = 1 })
    fails("use: an asynchronous schedule has no barrier", pipe.use, pipe, opt, { barrier = true })
    fails("use: unknown option 'bariere'", pipe.use, pipe, opt, { bariere = true })
    fails("use: the optimizer is a table", pipe.use, pipe, {})
    fails("use: the optimizer is nil", pipe.use, pipe)
    local sync <close> = pipe_of("1f1b", 2, 2)
    local other = optim.SGD(sync:parameters(), { lr = 0.1 })
    fails("use: clip_norm needs the gradients of all stages", sync.use, sync, other,
      { clip_norm = 1, barrier = false })
    fails("clip_norm", sync.use, sync, other, { clip_norm = -1 })
    fails("use: ", sync.use, sync, opt) -- the optimizer is another pipeline's
    sync:use(other)
    fails("step: accumulate makes no sense with pipe:use", sync.step, sync, gp.ones { 4, 6 },
      gp.ones { 4, 6 },
      { accumulate = true })
  end)

  it("one weight in two stages", function()
    local model = made.model()
    model[8][2].weight = model[1][2].weight
    for rule, _ in pairs(asynchronous.RULES) do
      local pipe <close> = gp.pipeline(model,
        { loss = made.loss, chunks = 2, balance = made.balance(2),
        schedule = asynchronous.schedule(rule) })
      pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1 }))
      fails("stage 1 reads a parameter of stage 0, and stages are updated at different times: "
        .. "layers that share a "
        .. "parameter must lie in one stage", pipe.step, pipe, batch(1, 4))
    end
  end)

  it("a batch that does not fit, and the stream goes on", function()
    local pipe <close> = used("pipedream", 2, 2)
    pipe:step(batch(1, 4))
    fails("step: the input has 4 rows and the target 3", pipe.step, pipe, gp.ones { 4, 6 },
      gp.ones { 3, 6 })
    fails("expected", pipe.step, pipe, gp.ones { 4, 5 }, gp.ones { 4, 6 })
    pipe:step(batch(2, 4))
    pipe:flush()
  end)
end)

-- ---- life of a stream --------------------------------------------------------------------------

describe("a stream", function()
  it("may be closed in the middle; the model keeps what the updates made", function()
    for _, rule in ipairs { "pipedream", "pipedream_2bw" } do
      local model = made.model()
      local pipe = gp.pipeline(model,
        { loss = made.loss, chunks = 2, balance = made.balance(4), seed = 5,
        schedule = rule })
      pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
      for t = 1, 3 do pipe:step(batch(t, 4)) end
      pipe:close()
      local state = model:state_dict()
      local other <close> = used(rule, 4, 2)
      for t = 1, 3 do other:step(batch(t, 4)) end
      other:flush()
      for name, value in pairs(other:state_dict()) do
        assert.is_true(gp.equal(value, state[name]))
      end
    end
  end)

  it("may be collected in the middle", function()
    for _ = 1, 5 do
      local pipe = used("pipedream", 4, 1)
      for t = 1, 3 do pipe:step(batch(t, 1)) end
    end
    collectgarbage()
    collectgarbage()
  end)

  it("keeps inputs that the script no longer holds", function()
    local pipe <close> = used("pipedream", 4, 2)
    local other <close> = used("pipedream", 4, 2)
    local losses, want = {}, {}
    for t = 1, 12 do
      table.move(pipe:step(batch(t, 4)), 1, 9, #losses + 1, losses)
      collectgarbage()
      for _ = 1, 5 do gp.full({ 4, 6 }, 1e9) end
      collectgarbage()
    end
    table.move(pipe:flush(), 1, 99, #losses + 1, losses)
    local kept = {}
    for t = 1, 12 do
      kept[t] = { batch(t, 4) }
      table.move(other:step(table.unpack(kept[t])), 1, 9, #want + 1, want)
    end
    table.move(other:flush(), 1, 99, #want + 1, want)
    assert.same(want, losses)
  end)

  it("keeps an optimizer that the script no longer holds", function()
    local pipe <close> = pipe_of("pipedream", 4, 2)
    pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
    local other <close> = used("pipedream", 4, 2)
    for t = 1, 4 do
      collectgarbage()
      assert.same(other:step(batch(t, 4)), pipe:step(batch(t, 4)))
    end
  end)

  it("is drained by every call that reads its state", function()
    local looks = {
      flush = function(pipe) return #pipe:flush() end,
      evaluate = function(pipe) return pipe:evaluate(batch(1, 4)) end,
      forward = function(pipe) return pipe:forward((batch(1, 4))) end,
      state = function(pipe) return pipe:state_dict() end,
      stats = function(pipe) return pipe.stats end,
      optimizer = function(_, opt) return opt:state_dict() end,
      zero = function(pipe) return pipe:zero_grad() end,
      zero_too = function(_, opt) return opt:zero_grad() end,
      trace = function(pipe)
        local path = os.tmpname()
        pipe:trace(path)
        return os.remove(path)
      end,
    }
    for name, look in pairs(looks) do
      local pipe <close>, opt = used("pipedream", 4, 1)
      for t = 1, 3 do assert.equal(0, #pipe:step(batch(t, 1))) end
      look(pipe, opt)
      assert.is_nil(inside(pipe).core:stream(), name)
      assert.equal(name == "flush" and 0 or 3, #pipe:flush(), name)
    end
  end)

  it("shows the same last part of all devices", function()
    local pipe <close> = used("pipedream", 4, 2)
    for t = 1, 200 do pipe:step(batch(t, 4)) end
    pipe:flush()
    local stats, first, last = pipe.stats, {}, {}
    for d, row in ipairs(pipe:timeline()) do
      assert.is_true(stats.busy[d] > 0 and stats.busy[d] < stats.seconds)
      first[d], last[d] = row[1].begin, row[#row].finish
      assert.is_true(first[d] >= 0 and last[d] <= stats.seconds)
      local micros = {}
      for _, action in ipairs(row) do micros[action.micro or 0] = true end
      -- micro-batches are numbered through the stream
      assert.is_true(micros[399] and not micros[0] or row[1].op == "P")
    end
    assert.is_true(stats.seconds < 0.5)
  end)

  it("counts its steps, and gradients are zero after it", function()
    local pipe <close>, opt = used("pipedream", 3, 4)
    for t = 1, 5 do pipe:step(batch(t, 8)) end
    pipe:flush()
    assert.equal(20, opt:state_dict().step:item())
    for _, p in ipairs(pipe:parameters()) do
      assert.is_true(gp.equal(p.grad, gp.zeros(p.grad.shape)))
    end
  end)
end)

-- ---- resuming ----------------------------------------------------------------------------------

describe("resuming from a checkpoint gives the same bits", function()
  local function resumed(rule, options, use)
    local chunks, rows = 3, 7
    local function make()
      local pipe = pipe_of(rule, 4, chunks, options)
      local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
      return pipe:use(opt, use), opt
    end
    local one <close>, opt = make()
    for t = 1, 4 do one:step(batch(t, rows)) end
    one:flush()
    local state, moments = one:state_dict(), opt:state_dict()
    local two <close>, again = make()
    two:load_state_dict(state)
    again:load_state_dict(moments)
    for t = 5, 8 do
      local a, b = one:step(batch(t, rows)), two:step(batch(t, rows))
      assert.same(a, b)
    end
    assert.same(one:flush(), two:flush())
    local want = one:state_dict()
    for name, value in pairs(two:state_dict()) do
      assert.is_true(gp.equal(value, want[name]), name)
    end
    want = opt:state_dict()
    for name, value in pairs(again:state_dict()) do
      assert.is_true(gp.equal(value, want[name]), name)
    end
  end

  -- Dropout draws by step, and a new pipeline begins with step 0, so the model has none.
  local dropout = made
  before_each(function() made = asynchronous.tower { model = function()
    gp.seed(3)
    local layers = {}
    for i = 1, 8 do layers[i] = nn.Sequential { nn.Linear(6, 6), nn.Tanh() } end
    return nn.Sequential(layers)
  end } end)
  after_each(function() made = dropout end)

  for _, rule in ipairs { "pipedream", "vertical_sync", "pipedream_2bw" } do
    it(rule .. ", after flush", function() resumed(rule) end)
  end
  it("an update with a barrier", function() resumed("1f1b") end)
  it("an update with clipping", function() resumed("zb_h1", nil, { clip_norm = 0.1 }) end)
  it("an update without a barrier", function() resumed("zb_h1", nil, { barrier = false }) end)
end)
