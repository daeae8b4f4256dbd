-- tests/spec/schedule/lower_spec.lua - s:lower() writes the end of a mini-batch as actions of all
-- stages.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with

local function build(name, devices)
  return gp.schedule.build(name, { devices = devices or 2, chunks = 2 })
end

-- Returns what stands after the last backward pass of each device.
local function ends(s, opts)
  opts.comms = false
  local list = {}
  for d, row in ipairs(s:lower(opts):rows()) do list[d] = row:match "^.*[BW]%d+,?(.*)$" end
  return table.concat(list, " | ")
end

describe("lower", function()
  local cases = {
    { "norms, which say whether gradients are finite, then updates", {}, "0NORM,0U0 | 1NORM,1U0" },
    { "scales where gradients are clipped", { clip = true }, "0NORM,0CLIP,0U0 | 1NORM,1CLIP,1U0" },
    { "sums of tied parameters first", { tied = true },
      "0REDUCE_TIED,0NORM,0U0 | 1REDUCE_TIED,1NORM,1U0" },
    { "updates alone where gradients are applied as they are", { norm = false }, "0U0 | 1U0" },
    { "nothing where the script updates", { update = "none" }, " | " },
    { "nothing that joins where stages update alone", { update = "free", clip = true },
      "0U0 | 1U0" },
  }
  for _, case in ipairs(cases) do
    it("adds " .. case[1], function() assert.equal(case[3], ends(build "1f1b", case[2])) end)
  end

  it("adds two copies of a stage before their norm is taken", function()
    local row = build("chimera"):lower { comms = false, tied = true }:rows()[1]
    assert.equal("0REDUCE_GRAD,1REDUCE_GRAD,0REDUCE_TIED,1REDUCE_TIED,0NORM,1NORM,0U0,1U0",
      row:match "0REDUCE_GRAD.*$")
  end)

  it("keeps the rows of a schedule that needs nothing more, as another schedule", function()
    local s = build "1f1b"
    local lowered = s:lower { comms = false, update = "none" }
    assert.same(s:rows(), lowered:rows())
    assert.is_true(rawequal(s.checked, lowered.checked)) -- it is not verified again
    lowered:simulate { F = 1, B = 2 }
    assert.is_nil(s.last_simulation)
    assert.is_false(rawequal(s.checked, s:lower({ checkpoint = "always" }).checked))
  end)

  -- Lowering does not verify what it makes, so that it is done here.
  local function is_right(s, opts)
    local lowered = s:lower(opts)
    return gp.schedule.wrap(s.name, { placement = s.placement, rows = lowered:rows(),
      batch = s.batch, replicas = s.replicas, replica_chunks = s.replica_chunks },
      s.chunks):verify()
  end
  for _, name in ipairs(gp.schedule.names()) do
    it("makes right schedules of " .. name, function()
      for _, checkpoint in ipairs { "never", "except_last", "always", "selective" } do
        for _, update in ipairs { "barrier", "free", "none" } do
          for _, replicas in ipairs { 1, 2 } do
            if name ~= "pipedream" or replicas == 1 then
              local s = gp.schedule.build(name, { devices = 4 * replicas, chunks = 8,
                replicas = replicas })
              assert(is_right(s, { checkpoint = checkpoint, update = update, comms = false,
                clip = update == "barrier", tied = update == "barrier" }))
            end
          end
        end
      end
    end)
  end

  it("makes schedules that a pipeline may run", function()
    local x, y = gp.ones { 4, 3 }, gp.ones { 4, 2 }
    local function loss_of(schedule)
      gp.seed(5)
      local model = gp.nn.Sequential { gp.nn.Linear(3, 4), gp.nn.Linear(4, 2) }
      local pipe <close> = gp.pipeline(model, { balance = { 1, 1 }, devices = 2, chunks = 2,
        schedule = schedule, loss = gp.nn.MSELoss() })
      return pipe:step(x, y)
    end
    local s = build "1f1b"
    local lowered = s:lower { checkpoint = "always", comms = false, update = "none" }
    assert.equal(loss_of(s), loss_of(lowered))
  end)

  it("lets weight gradients of a stream wait for the update before them", function()
    local s = gp.schedule.wrap("late", { placement = { [0] = 0 }, batch = 2,
      rows = { "0F0@0,0F1@0,0F2@0,0F3@0,0B2@0,0B0@0,0B1@0,0U0,0B3@0,0U1" } }, 4)
    assert(is_right(s, { update = "none", comms = false }))
    assert.equal("0F0@0,0F1@0,0F2@0,0F3@0,0I2@0,0I0@0,0W0@0,0I1@0,0W1@0,0U0,0W2@0,0I3@0,0W3@0,"
      .. "0U1",
      s:lower({ update = "none", comms = false }):rows()[1])
  end)

  it("makes schedules that every published name verifies", function()
    for _, name in ipairs { "gpipe", "1f1b", "zb_h1", "zbv", "dualpipev", "chimera" } do
      assert(build(name):lower { clip = true, tied = true }:verify())
    end
  end)
end)

describe("simulate", function()
  it("lets updates wait for the norm of the slowest stage", function()
    local s = build("gpipe"):lower { comms = false }
    local free = s:simulate { F = 1, B = 2, NORM = { 1, 5 }, U = 1 }
    -- stage 1 ends its backward passes at 7, stage 0 at 9, so both norms are known at 12
    assert.equal(13, free.makespan)
    local slow = s:simulate { F = 1, B = 2, NORM = { 4, 1 }, U = 1 }
    assert.equal(14, slow.makespan)
  end)

  it("lets scales wait for norms, and sums of tied parameters for all gradients", function()
    local s = build("gpipe"):lower { comms = false, clip = true, tied = true }
    local r = s:simulate { F = 1, B = 2, TIE = 1, NORM = 1, CLIP = { 1, 3 }, U = 1 }
    assert.equal(9 + 1 + 1 + 3 + 1, r.makespan)
  end)

  it("refuses a cost of an unknown op", function()
    fails_with("NORN", function() build("gpipe"):simulate { NORN = 1 } end)
  end)
end)
