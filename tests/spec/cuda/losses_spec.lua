-- tests/spec/cuda/losses_spec.lua - scores of a vocabulary on a GPU: their loss and their gradient
-- come from one op, and odd rows are padded.
--
-- The op has the bits of the two that it replaces; padded rows are added up in another order, so
-- they are near those of rows side by side.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local training = require "tests.support.training"

local nn = gp.nn
local on_gpu = gpu.spec(it)

local ODD, EVEN = 1035, 1048 -- of the widths that a block works on
local SHORT = 517            -- of those that a warp works on

-- Nothing in it is fused but the loss.
local function setup(vocabulary, fields)
  local made = {
    model = function()
      gp.seed(4)
      return nn.Sequential { nn.Embedding(vocabulary, 16), nn.Tanh(),
        nn.Linear(16, vocabulary, { bias = false }) }
    end,
    x = gp.randint(0, vocabulary, { 4, 3 }, { seed = 1 }),
    y = gp.randint(0, vocabulary, { 4, 3 }, { seed = 2 }),
    loss = nn.CrossEntropyLoss(), steps = 3, -- enough to be captured and replayed
  }
  for key, value in pairs(fields or {}) do made[key] = value end
  return made
end

local function run(of, options)
  local all = { devices = { "cuda:0" }, chunks = 3 }
  for key, value in pairs(options) do all[key] = value end
  return training.run(of, all)
end

local function same(a, b, what)
  assert.are.equal(nil, training.difference(a, b), what)
end

-- Sums over rows in another order, then Adam: losses relative, first gradients relative plus a
-- hundredth of it absolute.
local NEAR = { bf16 = { 1e-2, 6e-2 }, f16 = { 2e-3, 1e-2 } }

local function near(a, b, precision)
  local bounds = NEAR[precision]
  for step, loss in ipairs(b.losses) do
    assert(math.abs(a.losses[step] - loss) <= bounds[1] * math.abs(loss), "loss of step " .. step)
  end
  local distance = training.distance(a.first, b.first, bounds[2], bounds[2] / 100)
  assert(distance <= 1, ("gradients are %.3g times as far as allowed"):format(distance))
end

local LOSSES = {
  { "", nn.CrossEntropyLoss() }, { " with smoothing", nn.CrossEntropyLoss { label_smoothing = 0.1 } },
  { " with ignored ids", nn.CrossEntropyLoss { ignore_index = 3 } },
  { " of sums", nn.CrossEntropyLoss { reduction = "sum" } },
}

describe("the loss and the gradient of scores in one op", function()
  for _, precision in ipairs { "f32", "bf16", "f16" } do
    for _, case in ipairs(LOSSES) do
      on_gpu(("have the bits of two ops in %s%s"):format(precision, case[1]), function()
        for _, vocabulary in ipairs(precision == "bf16" and { EVEN, 520, 11 } or { EVEN }) do
          local of = setup(vocabulary, { loss = case[2] })
          same(run(of, { precision = precision, fuse = false }), run(of, { precision = precision }))
        end
      end)
    end
  end

  on_gpu("have the same bits for every cut, schedule and checkpoint mode", function()
    for _, precision in ipairs { "f32", "bf16" } do
      local of = setup(ODD)
      local wanted = run(of, { precision = precision, checkpoint = "never" })
      for _, options in ipairs {
        { checkpoint = "always" }, { checkpoint = "selective" }, { schedule = "gpipe" },
        { devices = { "cuda:0", "cuda:0" }, balance = { 1, 2 } },
        { devices = { "cuda:0", "cuda:0" }, balance = { 2, 1 }, schedule = "zb_h1" },
        { devices = { "cuda:0" }, balance = { 1, 2 }, schedule = "interleaved_1f1b" },
      } do
        options.precision = precision
        same(wanted, run(of, options), options.schedule or options.checkpoint)
      end
    end
  end)

  on_gpu("leave a wrong id to the error that names it", function()
    local of = setup(EVEN)
    local pipe <close> = gp.pipeline(of.model(), { devices = { "cuda:0" }, loss = of.loss, chunks = 2 })
    local y = of.y:clone()
    y[3][2] = EVEN
    local ok, text = pcall(pipe.step, pipe, of.x, y)
    assert.is_false(ok)
    assert.matches(("class %d at row 3, position 2 is outside 0..%d"):format(EVEN, EVEN - 1),
      text, 1, true)
  end)

  on_gpu("keep the gradient where the scores were", function()
    local bytes = {}
    for i, fuse in ipairs { false, true } do
      local of = setup(EVEN)
      local pipe <close> = gp.pipeline(of.model(), {
        devices = { "cuda:0" }, loss = of.loss, chunks = 1, fuse = fuse, checkpoint = "never",
      })
      pipe:step(of.x, of.y)
      bytes[i] = pipe:memory()[1].planned
    end
    assert(bytes[2] <= bytes[1], ("%d bytes, %d with two ops"):format(bytes[2], bytes[1]))
  end)
end)

describe("scores of an odd vocabulary on a GPU", function()
  for precision in pairs(NEAR) do
    on_gpu("are near those in rows side by side in " .. precision, function()
      for _, vocabulary in ipairs { ODD, SHORT } do
        for _, case in ipairs(LOSSES) do
          local of = setup(vocabulary, { loss = case[2] })
          near(run(of, { precision = precision }), run(of, { precision = precision, fuse = false }),
            precision)
        end
      end
    end)
  end

  on_gpu("leave a pipeline as they are where they are computed", function()
    local of = setup(ODD)
    local outputs = {}
    for i, fuse in ipairs { false, true } do
      local pipe <close> = gp.pipeline(of.model(), {
        devices = { "cuda:0" }, loss = of.loss, chunks = 2, fuse = fuse, precision = "bf16",
      })
      pipe:step(of.x, of.y)
      outputs[i] = pipe:forward(of.x)
      assert.are.same({ 4, 3, ODD }, outputs[i].shape)
    end
    assert.is_true(gp.equal(outputs[1], outputs[2]))
  end)

  on_gpu("are not looked at behind their ends", function()
    local of = setup(ODD)
    local pipe <close> = gp.pipeline(of.model(), {
      devices = { "cuda:0" }, loss = of.loss, chunks = 2, precision = "bf16", finite = true,
    })
    assert(pipe:step(of.x, of.y))
  end)
end)
