-- tests/spec/plan/caps_spec.lua - caps: a device takes no more than its option `memory` says, and
-- what does not fit is refused before anything is allocated.

local capacity = require "gpipe.plan.capacity"
local expect = require "tests.support.expect"
local gp = require "gpipe"
local sizes = require "gpipe.sizes"
local nn, optim = gp.nn, gp.optim

local WORK = { "saved", "recomputed", "carried", "transient", "waste" }

local function blocks()
  local list = {}
  for i = 1, 6 do
    list[i] = nn.Sequential {
      nn.LayerNorm(16), nn.Linear(16, 48), nn.GELU(), nn.Dropout(0.1), nn.Linear(48, 16),
    }
  end
  return nn.Sequential(list)
end

gp.seed(1)
local x, y = gp.randn { 96, 16 }, gp.randint(0, 16, { 96 })

-- caps: bytes per device.
local function open(caps, opts)
  gp.seed(3)
  local devices = {}
  for d = 1, 2 do
    devices[d] = { "cpu:" .. d - 1, threads = 1, memory = caps and caps[d] or nil }
  end
  local given = { devices = devices, balance = { 3, 3 }, loss = nn.CrossEntropyLoss(), seed = 5 }
  for key, value in pairs(opts) do given[key] = value end
  return gp.pipeline(blocks(), given)
end

-- Returns the losses of three steps, as text, and the bytes of each device.
local function train(caps, opts)
  local pipe <close> = open(caps, opts)
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  local losses = {}
  for i = 1, 3 do
    losses[i] = ("%a"):format(pipe:step(x, y))
    opt:step()
  end
  return table.concat(losses, " "), pipe:memory()
end

local function work_of(one)
  local sum = 0
  for _, name in ipairs(WORK) do sum = sum + (one.areas[name] or 0) end
  return sum
end

-- What devices may take if their work areas get this share of what they have.
local function squeezed(memory, share)
  local caps = {}
  for d, one in ipairs(memory) do
    local work = work_of(one)
    caps[d] = one.planned - work + math.floor(share * work)
  end
  return caps
end

-- Caps between what two plans take.
local function between(least, most, share)
  local caps = {}
  for d = 1, 2 do
    local low, high = least[d].planned, most[d].planned
    caps[d] = low + math.floor(share * (high - low))
  end
  return caps
end

local function planned(memory)
  local list = {}
  for d, one in ipairs(memory) do list[d] = one.planned end
  return list
end

describe("option memory of a device", function()
  for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1" } do
    it("lets a plan run that fits to the byte, and none that lacks one: " .. schedule, function()
      for _, checkpoint in ipairs { "never", "selective", "except_last", "always" } do
        local opts = { chunks = 4, schedule = schedule, checkpoint = checkpoint }
        local wanted, free = train(nil, opts)
        local caps = planned(free)
        local losses, memory = train(caps, opts)
        assert.equal(wanted, losses)
        for d = 1, 2 do
          assert.equal(caps[d], memory[d].cap)
          assert.is_true(memory[d].measured <= memory[d].cap)
          caps[d] = caps[d] - 1
          expect.fails_with("cpu:" .. d - 1, train, caps, opts)
          caps[d] = caps[d] + 1
        end
      end
    end)

    it("makes mode auto run where always does, with the losses of never: " .. schedule, function()
      local opts = { chunks = 4, schedule = schedule, checkpoint = "never" }
      local wanted, most = train(nil, opts)
      opts.checkpoint = "always"
      local _, least = train(nil, opts)
      for _, share in ipairs { 0.75, 0.5, 0.25, 0 } do
        local caps = between(least, most, share)
        opts.checkpoint = "never"
        expect.fails_with("option 'memory'", train, caps, opts)
        opts.checkpoint = "auto"
        local losses, memory = train(caps, opts)
        assert.equal(wanted, losses)
        for d = 1, 2 do
          assert.is_true(memory[d].planned <= caps[d], share)
          assert.equal(memory[d].planned, memory[d].measured)
        end
      end
    end)
  end

  it("leaves mode auto all values if there is room for them", function()
    local _, never = train(nil, { chunks = 4, checkpoint = "never" })
    local _, auto = train(planned(never), { chunks = 4, checkpoint = "auto" })
    assert.same(planned(never), planned(auto))
    _, auto = train(nil, { chunks = 4, checkpoint = "auto" })
    assert.same(planned(never), planned(auto))
  end)

  it("is kept for each of several plans", function()
    local _, free = train(nil, { chunks = 4, checkpoint = "never" })
    local caps = squeezed(free, 0.8)
    local pipe <close> = open(caps, { chunks = 4, checkpoint = "auto" })
    for _, rows in ipairs { 96, 48, 95, 96 } do
      local loss = pipe:step(x:narrow(1, 1, rows), y:narrow(1, 1, rows))
      assert.is_true(loss > 0)
      pipe:evaluate(x:narrow(1, 1, rows), y:narrow(1, 1, rows))
      for d, one in ipairs(pipe:memory()) do assert.is_true(one.measured <= caps[d]) end
    end
  end)

  it("is kept if the script calls the backward pass, whose plan shares no memory", function()
    local function both(pipe)
      local out = pipe:forward(x)
      pipe:backward(gp.ones(out.shape))
    end
    local opts = { chunks = 2, schedule = "gpipe", checkpoint = "never" }
    local free <close> = open(nil, opts)
    both(free)
    local caps, one = planned(free:memory()), planned(select(2, train(nil, opts)))
    -- room for either plan; scratch of threads stays when a plan is dropped
    for d = 1, 2 do caps[d] = math.max(caps[d], one[d]) + 1024 end
    local pipe <close> = open(caps, opts)
    for _ = 1, 2 do
      for _, call in ipairs { function() pipe:step(x, y) end, function() both(pipe) end } do
        call()
        for d, each in ipairs(pipe:memory()) do
          assert.equal(each.planned, each.measured)
          assert.is_true(each.measured <= caps[d])
        end
      end
    end
  end)

  it("refuses moments that do not fit when they are to be used, and keeps what was used", function()
    local opts = { chunks = 2, checkpoint = "always" }
    local a, b, caps = x:narrow(1, 1, 2), y:narrow(1, 1, 2), {}
    do
      local free <close> = open(nil, opts)
      free:evaluate(a, b)
      free:step(a, b)
      for d, one in ipairs(free:memory()) do
        caps[d] = one.planned
        assert.is_true(one.planned < 2 * one.areas.gradients + 2 * one.areas.parameters)
      end
    end
    local pipe <close> = open(caps, opts)
    local adam = optim.AdamW(pipe:parameters(), { lr = 0.1 })
    expect.fails_with("with the optimizer's moments", pipe.use, pipe, adam)
    expect.fails_with("cpu:0 may take " .. sizes.text(caps[1]), pipe.use, pipe, adam)
    local before = pipe:evaluate(a, b)
    pipe:step(a, b) -- no update is part of it
    assert.equal(before, pipe:evaluate(a, b))
    pipe:use(optim.SGD(pipe:parameters(), { lr = 0.01 }))
    expect.fails_with("with the optimizer's moments", pipe.use, pipe, adam)
    pipe:step(a, b) -- updates as before
    assert.is_true(pipe:evaluate(a, b) < before)
    for d, one in ipairs(pipe:memory()) do assert.is_true(one.measured <= caps[d]) end
  end)

  it("refuses with the device, the numbers and what would fit, which then does", function()
    local opts = { chunks = 2, schedule = "gpipe", checkpoint = "never" }
    local _, free = train(nil, opts)
    local caps = squeezed(free, 0.75)
    local text = expect.failure(train, caps, opts)
    assert.is_truthy(text:find("device cpu:%d may take " .. sizes.text(caps[1]):gsub("%p", "%%%0")))
    assert.matches("largest: %a+, [%d.]+ %a+", text)
    assert.matches("the plan needs [%d.]+ %a+ more", text)
    local mode = text:match 'would fit: checkpoint = "([%a_]+)"'
    local chunks = tonumber(text:match "chunks = (%d+) %(")
    assert.is_truthy(mode or chunks, text)
    if mode then train(caps, { chunks = 2, schedule = "gpipe", checkpoint = mode }) end
    if chunks then train(caps, { chunks = chunks, schedule = "gpipe", checkpoint = "never" }) end
    if text:find('checkpoint = "auto"', 1, true) then
      train(caps, { chunks = 2, schedule = "gpipe", checkpoint = "auto" })
    end
  end)

  it("offers \"auto\" where only expensive recomputation would fit", function()
    local opts = { chunks = 2, schedule = "gpipe", checkpoint = "selective" }
    local _, free = train(nil, opts)
    local caps = squeezed(free, 0.9)
    local text = expect.failure(train, caps, opts)
    assert.is_truthy(text:find('or checkpoint = "auto" (as much as', 1, true), text)
    train(caps, { chunks = 2, schedule = "gpipe", checkpoint = "auto" })
  end)

  it("offers \"auto\" more micro-batches where only \"selective\" would fit with them", function()
    local opts = { chunks = 4, schedule = "zb_h1" } -- nothing runs again as a whole on device 1
    local function need(chunks, mode)
      return select(2, train(nil, { chunks = chunks, schedule = "zb_h1", checkpoint = mode }))
    end
    local caps = between(need(8, "selective"), need(8, "never"), 0.2)
    opts.checkpoint = "auto"
    local text = expect.failure(train, caps, opts)
    local chunks = tonumber(text:match "would fit: chunks = (%d+)")
    assert.equal(8, chunks, text)
    train(caps, { chunks = 8, schedule = "zb_h1", checkpoint = "auto" })
  end)

  it("refuses with the code of a lack of memory", function()
    local _, free = train(nil, { chunks = 1, checkpoint = "never" })
    local pipe <close> = open(squeezed(free, 0.5), { chunks = 1, checkpoint = "never" })
    local good, message = pcall(pipe.step, pipe, x, y)
    assert.is_false(good)
    assert.equal("memory", require("gpipe.errors").code_of(message))
  end)

  it("names the call whose plan was refused", function()
    local few = { 39424, 39424 } -- 38.5 KiB; parameters and gradients take 38.2 KiB
    local CALLS = { step = { x, y }, evaluate = { x, y }, forward = { x } }
    for call, arguments in pairs(CALLS) do
      local pipe <close> = open(few, { chunks = 1, checkpoint = "never" })
      expect.fails_with(call .. ": device cpu:0 may take 38.5 KiB", pipe[call], pipe,
        table.unpack(arguments))
    end
  end)

  it("refuses parameters that do not fit, with a number of stages that would", function()
    local text = expect.failure(open, { 1 << 20, 30000 }, {})
    assert.is_truthy(text:find("gp.pipeline: parameters and gradients take 38.", 1, true), text)
    assert.is_truthy(text:find("device cpu:1, which may take 29.3 KiB (option 'memory')", 1, true),
      text)
    assert.is_truthy(text:find("3 stages would fit (balance = {2, 2, 2})", 1, true), text)
    assert.is_truthy(expect.failure(open, { 9000, 9000 }, {}):find("largest layer alone", 1, true))
  end)

  it("names a number of stages with which they fit the smallest device, too", function()
    for _, case in ipairs { { "1f1b", { 3, 3 }, { 35000, 15000 } },
      { "interleaved_1f1b", { 2, 2, 1, 1 }, { 40000, 30000 } } } do
      local schedule, balance, caps = table.unpack(case)
      local text = expect.failure(open, caps, { schedule = schedule, balance = balance, chunks = 6 })
      local list, devices = {}, {}
      for n in text:match "would fit.*%(balance = {(.-)}%)":gmatch "%d+" do
        list[#list + 1] = tonumber(n)
      end
      for d = 1, tonumber(text:match "would fit on (%d+) device") or #list do
        devices[d] = { "cpu:" .. d - 1, threads = 1, memory = caps[math.min(d, #caps)] }
      end
      local pipe <close> = open(nil, { schedule = schedule, balance = list, devices = devices,
        chunks = 6 })
      assert.equal(#list, pipe.stages)
    end
  end)

  it("leaves a pipeline whose plan was refused as it was", function()
    local _, free = train(nil, { chunks = 1, checkpoint = "never" })
    local pipe <close> = open(squeezed(free, 0.6), { chunks = 1, checkpoint = "never" })
    local held = planned(pipe:memory())
    expect.fails_with("option 'memory'", pipe.step, pipe, x, y)
    assert.same(held, planned(pipe:memory()))
    assert.is_true(pipe:step(x:narrow(1, 1, 24), y:narrow(1, 1, 24)) > 0)
  end)

  -- What a text of bytes stands for.
  local function bytes_of(text) return capacity.bytes("test", (text:gsub(" ", ""))) end

  -- Caps with what the devices that are short would need, by the text of a refusal.
  local function raised(caps, text)
    local more = table.move(caps, 1, #caps, 1, {})
    for d, bytes in text:gmatch "device cpu:(%d) would need ([%d.]+ %a+) %(option 'memory'%)" do
      more[d + 1] = bytes_of(bytes)
    end
    return more
  end

  for _, schedule in ipairs { "1f1b", "zb_h1" } do
    it("says where nothing fits what each device would need, which is enough: " .. schedule,
      function()
        for _, mode in ipairs { "never", "auto" } do
          local caps = { 45000, 60000 }
          local opts = { chunks = 4, schedule = schedule, checkpoint = mode }
          local text = expect.failure(train, caps, opts)
          assert.matches("no setting of chunks and checkpoint would fit: .* would need", text)
          opts.chunks = tonumber(text:match "fit: .*chunks = (%d+)") or opts.chunks
          opts.checkpoint = text:match 'fit: .*checkpoint = "([%a_]+)"' or opts.checkpoint
          local more = raised(caps, text)
          assert.are_not.same(caps, more)
          local _, memory = train(more, opts)
          for d, one in ipairs(memory) do
            assert.is_true(more[d] == caps[d] or one.measured > 0.98 * more[d], "device " .. d)
          end
        end
      end)
  end

  it("advises \"auto\" where no mode by name fits", function()
    local found = 0
    for _, share in ipairs { 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5 } do
      -- device 0 is short of what "always" takes least of, device 1 of what "selective" does
      local opts = { chunks = 96, schedule = "zb_h1", checkpoint = "never" }
      local needs = {}
      for _, mode in ipairs { "always", "selective", "except_last" } do
        opts.checkpoint = mode
        needs[mode] = planned(select(2, train(nil, opts)))
      end
      local caps = { needs.always[1] + math.floor(share * (needs.selective[1] - needs.always[1])),
        needs.selective[2] + math.floor(share * (needs.always[2] - needs.selective[2])) }
      opts.checkpoint = "never"
      local text = expect.failure(train, caps, opts)
      if text:find('would fit: checkpoint = "auto"', 1, true) then
        found, opts.checkpoint = found + 1, "auto"
        train(caps, opts)
      end
    end
    assert.is_true(found > 0)
  end)

  it("is a number of bytes, or a text with a binary unit", function()
    local WRONG = {
      { "8 GB", "did you mean '8GiB'?" }, { "8GB", "did you mean '8GiB'?" }, { -1, "-1" },
      { 0, "0" }, { "abc", "abc" }, { "", '""' }, { 0 / 0, "nan" }, { math.huge, "inf" },
      { "-8GiB", "-8GiB" }, { true, "true" }, { {}, "table" },
    }
    for _, case in ipairs(WRONG) do
      local text = expect.failure(open, { case[1], 1 }, {})
      assert.is_truthy(text:find("memory", 1, true), text)
      assert.is_truthy(text:find("expected", 1, true), text)
      assert.is_truthy(text:lower():find(case[2]:lower(), 1, true), text)
    end
    for _, right in ipairs { 1 << 30, 2.0 ^ 30, "1GiB", "1.5GiB", "1048576KiB", "1TiB" } do
      local pipe <close> = open({ right, right }, {})
      assert.is_true(pipe:memory()[1].cap >= 1 << 30)
    end
  end)
end)
