-- tests/spec/plan/dry_caps_spec.lua - gp.dry_run with caps: what "auto" keeps, and what does not
-- fit.
local expect = require "tests.support.expect"
local gp = require "gpipe"
local nn = gp.nn

local function model_of(blocks, width)
  gp.seed(1)
  local list = {}
  for i = 1, blocks do
    list[i] = nn.Sequential { nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width) }
  end
  return nn.Sequential(list)
end

-- Four blocks of 32 on two devices, 64 rows in a micro-batch: activations decide.
local function dry_of(checkpoint, first, second, more)
  local opts = {
    balance = { 2, 2 }, chunks = 4, schedule = "gpipe", checkpoint = checkpoint,
    loss = nn.MSELoss(), sample = { gp.ones { 256, 32 }, gp.ones { 256, 32 } },
    devices = { { own = true, memory = first }, { own = true, memory = second } },
  }
  for key, value in pairs(more or {}) do opts[key] = value end
  return gp.dry_run(model_of(4, 32), opts)
end

local function planned(dry, d) return dry:memory()[d].planned end

local function contains(text, ...)
  for _, words in ipairs { ... } do assert.is_truthy(text:find(words, 1, true), text) end
end

describe("a dry run with caps", function()
  it("fits where there is room", function()
    local dry = dry_of("never", "64MiB", "64MiB")
    assert.is_true(dry.fits)
    assert.is_nil(dry:short())
    assert.are.equal(64 << 20, dry:memory()[1].cap)
    assert.is_true(dry_of("never").fits)
  end)

  it("counts parameters and gradients", function()
    local most = planned(dry_of "never", 1)
    assert.is_true(dry_of("never", most).fits)
    assert.is_false(dry_of("never", most - 1).fits)
    local beside = planned(dry_of "never", 1) - dry_of("never"):bytes()[1]
    assert.is_true(beside >= 2 * 2 * (8 * 32 * 32 + 5 * 32) * 4)
  end)

  it("says with numbers what does not fit", function()
    local dry = dry_of("never", "512KiB", "64MiB")
    assert.is_false(dry.fits)
    assert.are.equal(1, select(2, (dry:short() .. "\n"):gsub("\n", "")))
    contains(dry:short(), "device 0 needs ", " and may take 512.0 KiB (option 'memory'): ",
      "the largest part are its saved")
    assert.is_truthy(tostring(dry):find(dry:short(), 1, true))
  end)

  it('keeps what the caps have room for with "auto"', function()
    local never, always = dry_of "never", dry_of "always"
    assert.are.equal(planned(never, 1), planned(dry_of("auto", "64MiB", "64MiB"), 1))
    local cap = (planned(never, 1) + planned(always, 1)) // 2
    local auto = dry_of("auto", cap, "64MiB")
    assert.is_true(auto.fits)
    assert.is_true(planned(auto, 1) <= cap and planned(auto, 1) > planned(always, 1))
    assert.are.equal(planned(never, 2), planned(auto, 2))
  end)

  it('says what lacks where not even "auto" fits', function()
    local dry = dry_of("auto", "100KiB", "64MiB")
    assert.is_false(dry.fits)
    contains(dry:short(), "device 0 needs ", "may take 100.0 KiB")
  end)

  it("finds the budget of one device alone", function()
    local never, always = dry_of "never", dry_of "always"
    local cap = (planned(never, 1) + planned(always, 1)) // 2
    local share = dry_of("auto", cap, "1KiB", { device = 0 })
    assert.is_true(share.fits)
    assert.are.equal(planned(dry_of("auto", cap, "64MiB"), 1), planned(share, 1))
  end)

  it("finds the budgets that a pipeline finds", function()
    local devices = { { own = false, memory = "1536KiB" }, { own = false, memory = "1536KiB" } }
    local dry = dry_of("auto", nil, nil, { devices = devices })
    local pipe <close> = gp.pipeline(model_of(4, 32), {
      balance = { 2, 2 }, chunks = 4, schedule = "gpipe", checkpoint = "auto", loss = nn.MSELoss(),
      sample = { gp.ones { 256, 32 }, gp.ones { 256, 32 } },
      devices = { { "cpu:0", threads = 1, memory = "1536KiB" },
        { "cpu:1", threads = 1, memory = "1536KiB" } },
    })
    assert.is_true(dry.fits)
    for d, one in ipairs(pipe:memory()) do
      assert.is_true(one.planned <= 1536 << 10)
      assert.is_true(math.abs(one.planned - planned(dry, d)) <= 0.05 * one.planned)
    end
  end)

  it("refuses what is no memory", function()
    expect.fails_with('gp.dry_run: devices[1]: memory is "8 GB"', dry_of, "never", "8 GB")
  end)
end)
