-- tests/spec/plan/least_rows_spec.lua - plans of models whose micro-batches need more than one row.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local nn = gp.nn

local DEVICE = { "sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e11 }

local function normed()
  return nn.Sequential { nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2) }
end

local function sample(rows) return { gp.ones { rows, 6 }, gp.ones { rows, 2 } } end

local function least_rows(plan)
  local least = math.huge
  for _, row in ipairs(plan.rows) do least = math.min(least, plan.batch // row.chunks) end
  return least
end

describe("a plan of a model with batch norms", function()
  it("has no micro-batch of one row, with which they do not train", function()
    for _, rows in ipairs { 2, 7, 18 } do
      local plan = assert(gp.plan(normed(), sample(rows), {
        devices = { DEVICE, DEVICE }, loss = nn.MSELoss(),
      }))
      assert.is_true(least_rows(plan) >= 2)
    end
  end)

  it("may have one where a norm sees several values of a row", function()
    local images = nn.Sequential { nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 2) }
    local plan = assert(gp.plan(images, { gp.ones { 8, 3, 6, 6 }, gp.ones { 8, 2 } }, {
      devices = { DEVICE, DEVICE }, loss = nn.MSELoss(),
    }))
    assert.equal(1, least_rows(plan))
  end)

  it("says what is wrong with a batch of one row", function()
    local good, message = pcall(gp.plan, normed(), sample(1), { devices = { DEVICE }, loss = nn.MSELoss() })
    assert.is_false(good)
    assert.truthy(message:find("one value per channel, expected more than one to train on", 1, true))
  end)

  it("is made of a profile, too", function()
    local profile = gp.profile(normed(), sample(8), { loss = nn.MSELoss(), repeats = 1 })
    local plan = assert(gp.plan(normed(), sample(8), {
      devices = { DEVICE, DEVICE }, loss = nn.MSELoss(), profile = profile,
    }))
    assert.is_true(least_rows(plan) >= 2)
  end)

  it("divides the rows of the sample, not those of a profile beside it", function()
    local profile = gp.profile(normed(), sample(8), { loss = nn.MSELoss(), repeats = 1 })
    local plan = assert(gp.plan(normed(), sample(16), {
      devices = { DEVICE, DEVICE }, loss = nn.MSELoss(), profile = profile,
    }))
    assert.equal(16, plan.batch)
    assert.equal(4 * 2 * 8, assert(gp.plan(profile, nil, { devices = { DEVICE, DEVICE } })).batch)
  end)

  it("is printed by a dry run of a job", function()
    local script = child.file [[
      local gp = require "gpipe"
      local nn = gp.nn
      local pipe = gp.pipeline(nn.Sequential {nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 2)},
        {chunks = 2, loss = nn.MSELoss()})
      pipe:step(gp.ones {8, 6}, gp.ones {8, 2})]]
    local out, _, code = child.run { "--dry-run", "--ranks", "3", script }
    os.remove(script)
    assert.equal(0, code)
    assert.truthy(out:find("as gp.plan would set it", 1, true), out)
  end)
end)
