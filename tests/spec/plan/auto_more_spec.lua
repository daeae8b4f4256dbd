-- tests/spec/plan/auto_more_spec.lua - checkpoint = "auto" makes some dear values of a layer again
-- and keeps the dearest, where that takes less time than making all of it again.
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local LAYERS = 4

-- A layer whose second product takes four times the FLOP of the first for each byte that it makes.
local function blocks()
  gp.seed(3)
  local list = {}
  for i = 1, LAYERS do
    list[i] = nn.Sequential {
      nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
    }
  end
  return nn.Sequential(list)
end

gp.seed(1)
local x, y = gp.randn { 512, 64 }, gp.randn { 512, 64 }

local function train(checkpoint, memory)
  local pipe <close> = gp.pipeline(blocks(), {
    balance = { LAYERS }, devices = { { "cpu:0", memory = memory } }, chunks = 2,
    schedule = "gpipe", checkpoint = checkpoint, loss = nn.MSELoss(), seed = 5,
  })
  local opt, parts = optim.SGD(pipe:parameters(), { lr = 1e-2 }), {}
  for i = 1, 3 do
    parts[i] = ("%a"):format(pipe:step(x, y))
    opt:step()
  end
  for _, entry in ipairs(pipe:parameters()) do parts[#parts + 1] = entry.param:bytes() end
  return table.concat(parts, "\n"), pipe:memory()[1], pipe:activations()
end

local function work_of(one)
  local sum = 0
  for _, name in ipairs { "saved", "recomputed", "carried", "transient", "waste" } do
    sum = sum + (one.areas[name] or 0)
  end
  return sum
end

-- What a dry run of a GPT with a share of the work area of "never" saves. Its context is long, so
-- that attention is dearer for its bytes than products.
local function saved_of(share)
  local ids = gp.randint(0, 64, { 2, 512 })
  local model = gp.models.gpt2 { layers = 4, width = 64, heads = 2, context = 512, vocabulary = 64 }
  local function dry(checkpoint, memory)
    return gp.dry_run(model, {
      balance = { #model }, devices = { { own = false, memory = memory } }, chunks = 1,
      checkpoint = checkpoint, loss = nn.CrossEntropyLoss(), sample = { ids, ids },
    })
  end
  local never = dry("never"):memory()[1]
  local made = dry("auto", never.planned - math.floor((1 - share) * work_of(never)))
  assert.is_true(made.fits)
  return made:activations()
end

describe("checkpoint = \"auto\" between selective and all of a layer", function()
  local wanted, full = train("never", "1GiB")

  for _, share in ipairs { 0.8, 0.65, 0.5, 0.4 } do
    it(("gives the bits of never in %d %% of its work area"):format(100 * share), function()
      local cap = full.planned - math.floor((1 - share) * work_of(full))
      local got, one = train("auto", cap)
      assert.is_true(got == wanted)
      assert.equal(one.planned, one.measured)
      assert.is_true(one.measured <= cap)
    end)
  end

  it("keeps the dearest values of a layer and not the other dear ones", function()
    local seen, found = {}, false
    for _, one in ipairs(saved_of(0.4)) do
      seen[one.layer] = seen[one.layer] or {}
      seen[one.layer][one.op] = true
    end
    for layer = 2, 5 do
      found = found or seen[layer].attention_qkv and not seen[layer].linear
    end
    assert.is_true(found)
  end)

  it("takes residual blocks of small layers as wholes, so that little memory is enough", function()
    local model, sample = gp.models.resnet(18, { classes = 10 }),
      { gp.randn { 2, 3, 32, 32 }, gp.randint(0, 10, { 2 }) }
    local function dry(checkpoint, memory)
      return gp.dry_run(model, {
        devices = { { own = false, memory = memory } }, chunks = 1, checkpoint = checkpoint,
        loss = nn.CrossEntropyLoss(), sample = sample, deferred_batch_norm = true,
      })
    end
    local never = dry("never"):memory()[1]
    local work = work_of(never)
    local made = dry("auto", never.planned - math.floor(0.45 * work))
    assert.is_true(made.fits)
    assert.is_true(work_of(made:memory()[1]) <= 0.55 * work)
  end)
end)
