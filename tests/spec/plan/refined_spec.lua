-- tests/spec/plan/refined_spec.lua - checkpoint = "auto" plans single layers byte for byte, so that
-- it uses the memory that there is; and F's temporaries lie in slots that are still empty.
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local function images(rows, size)
  return gp.randn { rows, 3, size, size }, gp.randint(0, 10, { rows })
end

local function resnet50() return gp.models.resnet(50, { classes = 10 }), images(4, 64) end
local function resnet18() return gp.models.resnet(18, { classes = 10 }), images(4, 32) end
local function vgg() return gp.models.vgg(16, { classes = 10 }), images(4, 32) end

local function gpt()
  local ids = gp.randint(0, 64, { 8, 64 })
  return gp.models.gpt2 { layers = 6, width = 128, heads = 4, context = 64, vocabulary = 64 }, ids,
    ids
end

local function work_of(one)
  local sum = 0
  for _, name in ipairs { "saved", "recomputed", "carried", "transient", "waste" } do
    sum = sum + (one.areas[name] or 0)
  end
  return sum
end

local function dry(make, checkpoint, cap)
  local model, x, y = make()
  return gp.dry_run(model, {
    devices = { { own = false, memory = cap } }, chunks = 1, schedule = "gpipe",
    checkpoint = checkpoint, loss = nn.CrossEntropyLoss(), sample = { x, y },
    deferred_batch_norm = true,
  })
end

local function seconds_of(made) return made.core:step_time(made.core) end

-- A cap that leaves a share of the work area of a report.
local function cap_of(one, share) return one.planned - math.floor((1 - share) * work_of(one)) end

-- model, share of the work area of "never", least speed by the cost model
local CASES = {
  { "a ResNet-50", resnet50, 0.6, 0.97 }, { "a ResNet-50", resnet50, 0.5, 0.94 },
  { "a ResNet-50", resnet50, 0.9, 0.99 }, { "a GPT", gpt, 0.6, 0.93 }, { "a GPT", gpt, 0.9, 0.99 },
  { "a VGG", vgg, 0.7, 0.97 },
}

describe("checkpoint = \"auto\", refined,", function()
  for _, case in ipairs(CASES) do
    local name, make, share, speed = table.unpack(case)
    it(("runs %s at %d %% of the memory and %d %% of the speed of never"):format(name, 100 * share,
      100 * speed), function()
      local never = dry(make, "never")
      local one = never:memory()[1]
      local made = dry(make, "auto", cap_of(one, share))
      assert.is_true(made.fits)
      assert.is_true(work_of(made:memory()[1]) <= share * work_of(one))
      local got = seconds_of(never) / seconds_of(made)
      assert.is_true(got >= speed, ("%.3f of the speed"):format(got))
    end)
  end

  it("makes the same plan every time", function()
    local cap = cap_of(dry(resnet18, "never"):memory()[1], 0.55)
    local function plan()
      local made, lines = dry(resnet18, "auto", cap), {}
      for _, one in ipairs(made:activations()) do lines[#lines + 1] = one.layer .. " " .. one.op end
      return table.concat(lines, "\n") .. seconds_of(made)
    end
    assert.equal(plan(), plan())
  end)

  it("fits where \"always\" takes too much", function()
    local always = dry(vgg, "always"):memory()[1]
    local made = dry(vgg, "auto", cap_of(always, 0.95))
    assert.is_true(made.fits)
  end)

  for _, share in ipairs { 0.8, 0.6, 0.45 } do
    it(("gives the bits of never in %d %% of its work area"):format(100 * share), function()
      local function train(checkpoint, cap)
        gp.seed(3)
        local model, x, y = resnet18()
        local pipe <close> = gp.pipeline(model, {
          devices = { { "cpu:0", threads = 1, memory = cap } }, chunks = 2, schedule = "gpipe",
          checkpoint = checkpoint, loss = nn.CrossEntropyLoss(), seed = 5,
          deferred_batch_norm = true,
        })
        local opt, parts = optim.SGD(pipe:parameters(), { lr = 1e-2 }), {}
        for i = 1, 2 do
          parts[i] = ("%a"):format(pipe:step(x, y))
          opt:step()
        end
        for _, entry in ipairs(pipe:parameters()) do parts[#parts + 1] = entry.param:bytes() end
        return table.concat(parts, "\n"), pipe:memory()[1]
      end
      local wanted, full = train("never")
      local cap = cap_of(full, share)
      local got, one = train("auto", cap)
      assert.is_true(got == wanted)
      assert.equal(one.planned, one.measured)
      assert.is_true(one.measured <= cap)
    end)
  end
end)

describe("a forward pass", function()
  for _, policy in ipairs { "never", "selective" } do
    it("has its temporaries in slots that it has not filled yet: " .. policy, function()
      local made = dry(resnet50, policy)
      local most = { saved = 0, temporary = 0 } -- of F: it is the first task that saves anything
      for _, alive in ipairs(made.core:alive(made.core, 0)) do
        if alive[1] > 0 then
          most = { saved = alive[1], temporary = alive[4] }
          break
        end
      end
      assert.is_true(most.saved > 0)
      assert.is_true(most.temporary <= 0.05 * most.saved)
    end)
  end
end)
