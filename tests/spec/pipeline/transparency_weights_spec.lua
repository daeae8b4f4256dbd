-- tests/spec/pipeline/transparency_weights_spec.lua - weights of 512 KiB and more.
--
-- Some processors have other products for them (runtime/ops/dense/large.h): every product, packed
-- or not, cut over threads or stages, must have the same bits.
local gp = require "gpipe"
local nn = gp.nn

local function build()
  gp.seed(3)
  return nn.Sequential {
    nn.Linear(272, 512), nn.GELU("tanh"), nn.Residual(nn.Linear(512, 512)),
    nn.Linear(512, 272, { bias = false }), nn.Linear(272, 10),
  }
end

local x, y = gp.randn({ 150, 272 }, { seed = 1 }), gp.zeros({ 150 }, { dtype = "i64" })

-- Returns the loss of the third step, and all gradients.
local function train(opts)
  opts.loss, opts.chunks = nn.CrossEntropyLoss(), 2
  local pipe <close> = gp.pipeline(build(), opts)
  local adam, loss = gp.optim.AdamW(pipe:parameters(), { lr = 1e-3 }), nil
  for _ = 1, 3 do
    loss = pipe:step(x, y)
    adam:step()
  end
  local grads = {}
  for i, parameter in ipairs(pipe:parameters()) do grads[i] = parameter.grad:clone() end
  return loss, grads
end

local function devices(count, threads)
  local list = {}
  for i = 1, count do list[i] = { "cpu:" .. i - 1, threads = threads } end
  return list
end

describe("a model with large weights", function()
  local loss, grads = train { devices = devices(1, 1), checkpoint = "never" }
  for _, case in ipairs {
    { name = "three threads", devices = devices(1, 3) },
    { name = "1F1B over two devices", devices = devices(2, 1), schedule = "1f1b" },
    { name = "GPipe over three, recomputing", devices = devices(3, 2), schedule = "gpipe",
      checkpoint = "always" },
    { name = "ops that are not fused", devices = devices(2, 1), fuse = false },
  } do
    it("has the bits of one thread with " .. case.name, function()
      local other, its = train { devices = case.devices, schedule = case.schedule,
        checkpoint = case.checkpoint, fuse = case.fuse }
      assert.equal(loss, other)
      for i, grad in ipairs(grads) do assert.is_true(gp.equal(grad, its[i])) end
    end)
  end

  it("gives the eager layer's outputs", function()
    local model = build()
    local pipe <close> = gp.pipeline(build(), { devices = devices(2, 2) })
    assert.is_true(gp.equal(model(x), pipe:forward(x)))
  end)
end)
