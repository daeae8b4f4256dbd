-- tests/spec/tensor/memory_spec.lua - the first step of a batch shape allocates everything; later
-- steps allocate nothing.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local function allocations() return gp.memory().cpu.allocations end

local function model()
  gp.seed(1)
  return nn.Sequential {
    nn.Embedding(11, 16), nn.Dropout(0.1),
    nn.Residual(nn.Sequential { nn.LayerNorm(16),
      nn.CausalSelfAttention(16, 2, { dropout = 0.1 }) }),
    nn.Residual(nn.Sequential { nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(),
      nn.Linear(32, 16) }),
    nn.Linear(16, 11),
  }
end

local function ids(rows)
  local list = {}
  for i = 1, rows do list[i] = { i % 11, (i + 3) % 11, (2 * i) % 11 } end
  return gp.tensor(list, { dtype = "i64" })
end

local function pipe_of(options)
  local merged = { balance = { 2, 3 }, chunks = 3, loss = nn.CrossEntropyLoss {} }
  for key, value in pairs(options or {}) do merged[key] = value end
  return gp.pipeline(model(), merged)
end

describe("after the first step of a batch shape", function()
  for _, checkpoint in ipairs { "always", "except_last", "never" } do
    for _, schedule in ipairs { "naive", "gpipe", "1f1b" } do
      it(("nothing is allocated: %s, %s"):format(schedule, checkpoint), function()
        local pipe <close> = pipe_of { checkpoint = checkpoint, schedule = schedule }
        local x, y = ids(7), ids(7)
        pipe:step(x, y)
        local before = allocations()
        for _ = 1, 10 do pipe:step(x, y) end
        assert.equal(before, allocations())
      end)
    end
  end

  it("nothing is allocated by optimizers, accumulation and evaluation either", function()
    local x, y = ids(7), ids(7)
    for _, make in ipairs {
      function(params) return optim.SGD(params, { lr = 0.1, momentum = 0.9 }) end,
      function(params) return optim.Adam(params, { lr = 0.1 }) end,
      function(params) return optim.AdamW(params, { lr = 0.1 }) end,
    } do
      local pipe <close> = pipe_of()
      local params = pipe:parameters()
      local opt = make(params)
      local function all()
        pipe:step(x, y)
        pipe:step(x, y, { accumulate = true })
        optim.clip_grad_norm(params, 1)
        opt:step()
        pipe:evaluate(x, y)
      end
      all()
      local before = allocations()
      for _ = 1, 10 do all() end
      assert.equal(before, allocations())
    end
  end)

  it("a failed step allocates nothing", function()
    local pipe <close> = pipe_of()
    local x, y, bad = ids(7), ids(7), ids(7)
    bad[7][1] = 99
    pipe:step(x, y)
    local before = allocations()
    for _ = 1, 5 do
      assert.is_false((pcall(pipe.step, pipe, bad, y)))
      pipe:step(x, y)
    end
    assert.equal(before, allocations())
  end)

  it("the smaller last batch of an epoch is planned once", function()
    local pipe <close> = pipe_of()
    local opt = optim.AdamW(pipe:parameters(), { lr = 1e-3 })
    local batches = { { ids(7), ids(7) }, { ids(7), ids(7) }, { ids(5), ids(5) } }
    local function epoch()
      for _, batch in ipairs(batches) do
        pipe:step(table.unpack(batch))
        opt:step()
      end
      pipe:evaluate(table.unpack(batches[1]))
    end
    epoch()
    local before = allocations()
    for _ = 1, 5 do epoch() end
    assert.equal(before, allocations())
  end)
end)

-- Makes a tower that pipelines of every schedule can train, and a batch for it.
local function tower()
  gp.seed(1)
  local layers = {}
  for i = 1, 8 do layers[i] = nn.Sequential { nn.Linear(4, 4), nn.Dropout(0.1), nn.Tanh() } end
  return nn.Sequential(layers)
end

local function used(schedule, use, chunks)
  local pipe = gp.pipeline(tower(),
    { balance = { 2, 2, 2, 2 }, chunks = chunks or 4, loss = nn.MSELoss(),
    schedule = schedule })
  return pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-3 }), use)
end

describe("with updates as actions of the schedule", function()
  local x, y = gp.randn({ 7, 4 }, { seed = 1 }), gp.randn({ 7, 4 }, { seed = 2 })
  for _, name in ipairs(gp.schedule.names()) do
    local copies = name == "chimera" or name == "dualpipe"
    local stream = name:match "^pipedream"
    for _, use in ipairs { stream and "stream" or "barrier",
      not copies and not stream and "free" or nil } do
      it(("nothing is allocated after the first steps: %s, %s"):format(name, use), function()
        local pipe <close> = used(name, { barrier = use == "free" and false or nil })
        for _ = 1, 10 do pipe:step(x, y) end
        local before = allocations()
        for _ = 1, 10 do pipe:step(x, y) end
        assert.equal(before, allocations())
        pipe:flush()
        for _ = 1, 10 do pipe:step(x, y) end
        assert.equal(before, allocations())
      end)
    end
  end

  local function check_flat(count)
    local one = gp.ones { 1, 4 }
    for _, case in ipairs { { "pipedream" }, { "pipedream_2bw" },
      { "zb_h1", { barrier = false } } } do
      local pipe <close> = used(case[1], case[2], 1)
      local function steps(n)
        for _ = 1, n do pipe:step(one, one) end
        collectgarbage()
        collectgarbage()
        return gp.memory().cpu.live, collectgarbage "count"
      end
      steps(100)
      local live, lua = steps(10)
      local later, more = steps(count)
      assert.equal(live, later)
      assert.is_true(more < lua + 16) -- KiB
    end
  end
  it("1,000 short steps hold no more than ten", function() check_flat(1000) end)
  it("10,000 short steps hold no more than ten #slow", function() check_flat(10000) end)

  it("plans made before use, or for another optimizer, are dropped", function()
    local pipe <close> = gp.pipeline(tower(),
      { balance = { 4, 4 }, chunks = 4, loss = nn.MSELoss() })
    local opt = optim.SGD(pipe:parameters(), { lr = 1e-3 })
    local before
    for turn = 1, 5 do
      pipe:use(opt)
      collectgarbage()
      collectgarbage()
      local live = gp.memory().cpu.live
      if turn > 1 then -- memory that all plans share stays
        before = before or live
        assert.equal(before, live)
      end
      pipe:step(x, y)
      pipe:evaluate(x, y)
      assert.is_true(gp.memory().cpu.live > live)
    end
  end)

  it("older versions of the weights take the memory that the schedule says", function()
    local wide = function()
      gp.seed(1)
      local layers = {}
      for i = 1, 4 do layers[i] = nn.Linear(256, 256, { bias = false }) end
      return nn.Sequential(layers)
    end
    local bytes, rows = 256 * 256 * 4, gp.ones { 4, 256 }
    local function held(schedule)
      local pipe <close> = gp.pipeline(wide(),
        { balance = { 1, 1, 1, 1 }, chunks = 4, loss = nn.MSELoss(),
        schedule = schedule })
      pipe:use(optim.SGD(pipe:parameters(), { lr = 1e-3 }))
      local before = gp.memory().cpu.live
      pipe:step(rows, rows)
      return gp.memory().cpu.live - before
    end
    -- Values, and their packed forms for products (one, or two where rows of the weight would crowd
    -- the cache): there is one of each for every live version, unless it is shared.
    local none = held "1f1b"
    for _, case in ipairs { { "pipedream_2bw", 4 }, { "pipedream", 6 },
      { { "pipedream", vertical_sync = true }, 12 } } do
      local older = (held(case[1]) - none) / bytes
      assert.is_true(older >= case[2] and older < 3 * case[2] + 5, tostring(older))
    end
  end)
end)

describe("plans", function()
  it("are bounded, so that many shapes do not pile up", function()
    local pipe <close> = pipe_of()
    local function all()
      for rows = 1, 20 do pipe:step(ids(rows), ids(rows)) end
      for rows = 1, 20 do pipe:evaluate(ids(rows), ids(rows)) end
      collectgarbage()
      collectgarbage()
      return gp.memory().cpu.live
    end
    all()
    local live = all()
    for _ = 1, 3 do assert.equal(live, all()) end
  end)

  it("of shapes used in turn stay", function()
    local pipe <close> = pipe_of()
    local batches = {}
    for i = 1, 3 do batches[i] = ids(3 + i) end
    local function all()
      for _, batch in ipairs(batches) do
        pipe:step(batch, batch)
        pipe:evaluate(batch, batch)
      end
    end
    all()
    local before = allocations()
    all()
    assert.equal(before, allocations())
  end)

  it("and their pipeline free all memory", function()
    local function once()
      do
        local pipe <close> = pipe_of()
        local opt = optim.AdamW(pipe:parameters(), { lr = 1e-3 })
        pipe:step(ids(7), ids(7))
        opt:step()
        pipe:forward(ids(7))
        pcall(pipe.step, pipe, ids(7), ids(6))
        pcall(pipe.step, pipe, ids(7):to("f32"), ids(7))
      end
      collectgarbage()
      collectgarbage()
      return gp.memory().cpu.live
    end
    once()
    local live = once()
    for _ = 1, 3 do assert.equal(live, once()) end
  end)
end)

-- Returns the resident bytes of this process.
local function resident()
  local file = io.open "/proc/self/statm"
  if not file then return nil end
  local pages = file:read "a":match "%d+ (%d+)"
  file:close()
  return tonumber(pages) * 4096
end

describe("ten thousand steps of a small model", function()
  it("do not grow resident memory", function()
    if not resident() then return pending "no /proc/self/statm" end
    gp.seed(1)
    local small = nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2) }
    local pipe <close> = gp.pipeline(small, { balance = { 2, 1 }, chunks = 2, loss = nn.MSELoss() })
    local opt = optim.AdamW(pipe:parameters(), { lr = 1e-3 })
    local sanitized = (os.getenv "GPIPE_SANITIZE" or "") ~= "" -- its own memory grows
    local steps = sanitized and 1000 or 10000
    local function some(n)
      for i = 1, n do
        local x = gp.randn({ i % 100 == 0 and 3 or 4, 4 }, { seed = i })
        pipe:step(x, x:narrow(2, 1, 2))
        opt:step()
      end
    end
    -- A collected heap goes up and down; a leak grows in every stretch of steps.
    local windows, least = 5, math.huge
    local before, live
    for w = 1, windows do
      some(steps // windows)
      collectgarbage()
      local now = resident()
      if w > 1 then
        assert.equal(live, gp.memory().cpu.live)
        least = math.min(least, now - before)
      end
      before, live = now, gp.memory().cpu.live
    end
    assert.is_true(sanitized or least < 1 << 17,
      ("grew by %d bytes in every %d steps"):format(least, steps // windows))
  end)
end)
