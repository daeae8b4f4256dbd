-- tests/spec/pipeline/dry_run_spec.lua - gp.dry_run: the plan of a step without a pipeline.
local gp = require "gpipe"
local nn = gp.nn

local function model_of(layers)
  local list = {}
  for i = 1, layers do list[i] = nn.Linear(4, 4) end
  return nn.Sequential(list)
end

local function options_of(stages, more)
  local opts = {
    balance = {}, chunks = 4, loss = nn.MSELoss(), sample = { gp.ones { 6, 4 }, gp.ones { 6, 4 } },
  }
  for s = 1, stages do opts.balance[s] = 1 end
  for key, value in pairs(more or {}) do opts[key] = value end
  return opts
end

describe("gp.dry_run", function()
  it("plans what a pipeline runs", function()
    for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1" } do
      for _, checkpoint in ipairs { "never", "selective", "except_last", "always" } do
        local model = model_of(3)
        local opts = options_of(3, { schedule = schedule, checkpoint = checkpoint })
        local dry = gp.dry_run(model, opts)
        local said = {}
        local outer = print
        _G.print = function(text) said[#said + 1] = text end -- luacheck: ignore 122
        local pipe <close> = gp.pipeline(model, opts)
        local rows = pipe:lowered()
        dry:lowered()
        _G.print = outer -- luacheck: ignore 122
        assert.are.same(rows, dry:rows())
        for i = 4, #said // 2 do
          local dry_line = said[#said // 2 + i] -- its devices have names of their own
          if not dry_line:find "^tasks of device" then assert.are.equal(said[i], dry_line) end
        end
      end
    end
  end)

  it("plans the share of one device as in the whole plan", function()
    local model = model_of(4)
    local whole = gp.dry_run(model, options_of(4))
    for d = 0, 3 do
      local share = gp.dry_run(model, options_of(4, { device = d }))
      for k = 1, 4 do
        assert.are.equal(k == d + 1 and whole:rows()[k] or "", share:rows()[k])
        assert.are.equal(k == d + 1 and whole:bytes()[k] or 0, share:bytes()[k])
      end
    end
  end)

  it("needs no device, allocates nothing and does not own the model", function()
    local model = model_of(2)
    local pipe <close> = gp.pipeline(model, options_of(2))
    local before = pipe:step(gp.ones { 6, 4 }, gp.ones { 6, 4 })
    local own = gp.dry_run(model, options_of(2, { devices = { { own = true }, { scratch = 1000 } } }))
    local bare = gp.dry_run(model, options_of(2, { devices = { {}, {} } }))
    assert.are.equal(bare:bytes()[1], own:bytes()[1])
    assert.are.equal(bare:bytes()[2] + 1024, own:bytes()[2])
    assert.are.equal(before, pipe:step(gp.ones { 6, 4 }, gp.ones { 6, 4 }))
  end)

  it("plans a stream, and estimates costs by the cost model", function()
    local dry = gp.dry_run(model_of(3), options_of(3, { schedule = "pipedream", chunks = 2 }))
    assert.is_truthy(dry:rows()[1]:find("0U0", 1, true))
    local costs = gp.dry_run(model_of(3), options_of(3)):costs { flops = 1e9 }
    assert.is_true(#costs.F == 3 and costs.F[1] > 0 and costs.B[2] > costs.F[2])
  end)

  it("says what each layer adds to its stage; the loss is one more layer", function()
    local dry = gp.dry_run(model_of(4), options_of(2, { balance = { 2, 2 }, checkpoint = "never" }))
    local layers = dry.core:layers(dry.core, 5)
    for s = 0, 1 do
      local kept, flop, moved = 0, 0, 0
      for i = 2 * s + 1, s == 1 and 5 or 2 do
        kept, flop = kept + layers[i].kept_bytes, flop + layers[i].flop
        moved = moved + layers[i].bytes
      end
      assert.are.equal(dry.core:stage(dry.core, s, 0).kept_bytes, kept)
      assert.are.same({ dry.core:cost(dry.core, s, "F") }, { flop, moved, 0 }) -- and no gathers
    end
    assert.is_true(layers[2].reads_input)
    local share = gp.dry_run(model_of(4), options_of(2, { balance = { 2, 2 }, device = 0 }))
    local own = share.core:layers(share.core, 5)
    assert.is_true(own[1].flop > 0 and own[3].flop == 0 and not own[3].reads_input)
    assert.are.same({}, share.core:layers(share.core, 0))
    assert.is_false((pcall(share.core.layers, share.core, share.core, -1)))
  end)

  it("says what is wrong with its options", function()
    local cases = {
      { { device = 3 }, "3", "0..2" },
      { { devices = 0 }, "devices", "0" },
      { { devices = { {}, {}, { memroy = 1 } } }, "memroy" },
    }
    for _, case in ipairs(cases) do
      local good, message = pcall(gp.dry_run, model_of(3), options_of(3, case[1]))
      assert.is_false(good)
      for i = 2, #case do assert.is_truthy(message:find(case[i], 1, true), message) end
    end
    local good, message = pcall(gp.dry_run, model_of(3), { loss = nn.MSELoss() })
    assert.is_true(not good and message:find "sample" ~= nil)
  end)

  it("plans a device of a stream as the whole plan does", function()
    for _, schedule in ipairs { "pipedream", "pipedream_2bw" } do
      for _, own in ipairs { false, true } do
        local function plan(device)
          return gp.dry_run(model_of(3), options_of(3, { schedule = schedule, device = device,
            chunks = 2, devices = { { own = own }, { own = own }, { own = own } } }))
        end
        local whole, rows = plan():memory(), plan():rows()
        for d = 0, 2 do
          local share = plan(d)
          assert.are.same(whole[d + 1].areas, share:memory()[d + 1].areas)
          assert.are.equal(rows[d + 1], share:rows()[d + 1])
          assert.are.equal("", share:rows()[(d + 1) % 3 + 1])
        end
      end
    end
  end)

  it("plans a thousand devices, which are more than Lua's stack has room for unasked", function()
    local dry = gp.dry_run(model_of(1024), options_of(1024, { device = 511 }))
    assert.are.equal(0, dry:bytes()[511])
    assert.is_true(dry:bytes()[512] > 0)
    collectgarbage() -- would end in a heap that was written over
  end)

  it("takes only rows of its own plan", function()
    local small = gp.dry_run(model_of(1), options_of(1))
    local large = gp.dry_run(model_of(3), options_of(3))
    for _, method in ipairs { "row", "edges", "stage", "cost", "layers" } do
      assert.is_false((pcall(large.core[method], large.core, small.core, 2, 0)))
    end
    assert.is_false((pcall(large.core.bytes, large.core, large.core, 3)))
    assert.is_false((pcall(require("gpipe.core").plan_new, {}, {})))
  end)

  it("prints a line for each device, and leaks no memory", function()
    local live = gp.memory()
    local text = tostring(gp.dry_run(model_of(3), options_of(3)))
    assert.are.equal(1 + 3 + 1, select(2, text:gsub("[^\n]+", "")))
    collectgarbage()
    collectgarbage()
    assert.is_true(gp.memory().cpu == nil or gp.memory().cpu.live <= live.cpu.live)
  end)
end)
