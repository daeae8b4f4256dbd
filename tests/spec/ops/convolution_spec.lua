-- tests/spec/ops/convolution_spec.lua - convolutions whose channels fill vectors, which f32 reads
-- in place, agree with the gathered products of f64, over cuts and threads too.

local gp = require "gpipe"
local core = require "gpipe.core"
local nn = gp.nn

-- The bound of f32 sums of up to 2500 products of order 1, relative to the largest element.
local TOLERANCE = 2e-6

-- Each case has image, weight and options. They cover whole panels, parts of them, groups, strides,
-- and rows that end within a tile.
local CASES = {
  { { 2, 16, 9, 7 }, { 64, 16, 3, 3 }, { padding = { 1, 1, 1, 1 } } },
  { { 1, 32, 5, 5 }, { 80, 32, 1, 1 }, {} },
  { { 3, 16, 11, 8 }, { 48, 16, 3, 2 }, { stride = { 2, 3 }, padding = { 0, 1, 2, 1 } } },
  { { 1, 16, 12, 13 }, { 16, 16, 3, 3 },
    { dilation = { 2, 3 }, stride = { 1, 2 }, padding = { 2, 2, 3, 3 } } },
  { { 2, 32, 6, 6 }, { 64, 16, 3, 3 }, { groups = 2, padding = { 1, 1, 1, 1 } } },
  { { 2, 96, 4, 4 }, { 160, 96, 3, 3 }, { padding = { 1, 1, 1, 1 } } },
  { { 1, 608, 3, 3 }, { 16, 608, 1, 1 }, {} }, -- more channels than a pass
  { { 1, 16, 6, 6 }, { 16, 16, 5, 5 }, { padding = { 2, 2, 2, 2 } } }, -- more taps than a pass
  { { 1, 16, 4, 4 }, { 16, 16, 1, 1 }, { stride = { 3, 2 } } }, -- the stride skips positions
  { { 2, 3, 14, 14 }, { 16, 3, 7, 7 }, { stride = { 2, 2 }, padding = { 3, 3, 3, 3 } } },
  { { 3, 16, 3, 4 }, { 16, 16, 5, 5 }, { padding = { 2, 2, 2, 2 } } }, -- more taps than the image
  { { 1, 16, 3, 3 }, { 32, 16, 2, 2 }, { padding = { 3, 0, 2, 4 } } }, -- positions without any tap
  { { 7, 16, 5, 5 }, { 16, 16, 3, 3 },
    { stride = { 2, 1 }, dilation = { 1, 2 }, padding = { 1, 1, 2, 2 } } },
  { { 1, 1024, 13, 14 }, { 16, 1024, 1, 1 }, {} }, -- rows that lie a page apart
  { { 2, 16, 6, 6 }, { 256, 16, 3, 3 }, { padding = { 1, 1, 1, 1 } } }, -- outputs enough to cut
  { { 2, 48, 5, 5 }, { 48, 1, 3, 3 }, { groups = 48, padding = { 1, 1, 1, 1 } } }, -- gathered
}

local function near(name, want, have)
  local largest, apart = want:abs():max():item(), (have:to("f64") - want):abs():max():item()
  assert(apart <= TOLERANCE * largest,
    ("%s: %g apart, at most %g wanted"):format(name, apart, TOLERANCE * largest))
end

local function run(case, dtype, tensors)
  local x, w, b = tensors.x:to(dtype), tensors.w:to(dtype), tensors.b:to(dtype)
  for _, t in ipairs { x, w, b } do t.requires_grad = true end
  local y = core.conv2d(x, w, b, case[3])
  local seed = tensors.dy or gp.randn(y.shape)
  tensors.dy = seed
  y:backward(seed:to(dtype))
  return { y = y:detach(), dx = x.grad, dw = w.grad, db = b.grad }
end

describe("convolutions in f32", function()
  for i, case in ipairs(CASES) do
    it(("agree with f64 in their result and gradients (%d)"):format(i), function()
      local tensors = { x = gp.randn(case[1]), w = gp.randn(case[2]), b = gp.randn { case[2][1] } }
      local want, have = run(case, "f64", tensors), run(case, "f32", tensors)
      for name, t in pairs(want) do near(name, t, have[name]) end
    end)
  end
end)

describe("a convolution at the edge of an image", function()
  it("gives every row of a batch what it gives that row alone", function()
    local x, w = gp.randn { 7, 16, 5, 6 }, gp.randn { 32, 16, 3, 3 }
    local y = core.conv2d(x, w, { padding = { 1, 1, 1, 1 } })
    for i = 1, 7 do
      local alone = core.conv2d(x:narrow(1, i, 1), w, { padding = { 1, 1, 1, 1 } })
      assert.are.equal(0, (y:narrow(1, i, 1) - alone):abs():max():item())
    end
  end)

  it("multiplies nothing with taps that lie outside", function()
    local x, w = gp.ones { 1, 16, 3, 3 }, gp.ones { 16, 16, 3, 3 }
    w:narrow(3, 1, 1):narrow(4, 1, 1):fill_(math.huge) -- the upper left tap
    local y = core.conv2d(x, w, { padding = { 1, 1, 1, 1 } })
    assert.are.equal(4 * 16, y:narrow(3, 1, 1):narrow(4, 1, 1):max():item())
    assert.are.equal(math.huge, y:narrow(3, 2, 1):narrow(4, 2, 1):max():item())
  end)
end)

local function model()
  gp.seed(7)
  return nn.Sequential {
    nn.Conv2d(3, 16, 3, { padding = 1 }), nn.ReLU(), nn.Conv2d(16, 80, 3, { stride = 2, padding = 1 }),
    nn.ReLU(), nn.Conv2d(80, 32, 3, { padding = 1, groups = 2 }), nn.ReLU(),
    nn.ConvTranspose2d(32, 16, 2, { stride = 2 }),
  }
end

local function losses(options, threads)
  local devices = {}
  for i = 1, #options.balance do devices[i] = { ("cpu:%d"):format(i - 1), threads = threads } end
  options.devices, options.chunks, options.loss = devices, 2, nn.MSELoss()
  gp.seed(8)
  local x, y = gp.randn { 4, 3, 10, 10 }, gp.randn { 4, 16, 10, 10 }
  local pipe <close> = gp.pipeline(model(), options)
  local optimizer, list = gp.optim.SGD(pipe:parameters(), { lr = 0.1 }), {}
  for i = 1, 3 do
    list[i] = pipe:step(x, y)
    optimizer:step()
  end
  return list
end

describe("models of such convolutions", function()
  it("have the same losses over cuts and threads", function()
    local want = losses({ balance = { 7 } }, 1)
    assert.are.same(want, losses({ balance = { 7 } }, 3))
    assert.are.same(want, losses({ balance = { 2, 3, 2 } }, 1))
    assert.are.same(want, losses({ balance = { 1, 1, 1, 1, 1, 1, 1 }, checkpoint = "always" }, 2))
  end)

  it("compute the same with packed and with plain weights", function()
    local m = model()
    local x = gp.randn { 2, 3, 10, 10 }
    local want = m(x)
    local pipe <close> = gp.pipeline(m, { devices = { "cpu:0" } })
    assert.are.equal(0, (pipe:forward(x) - want):abs():max():item())
  end)
end)
