-- tests/spec/pipeline/precision_spec.lua - pipelines on CPU devices in bf16 and f16 are near f32,
-- and give the same bits for every cut, schedule, mode and number of threads.

local gp = require "gpipe"
local core = require "gpipe.core"
local inside = require "gpipe.pipeline.object".inside
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn

local HALVES = { "bf16", "f16" }

-- How far losses (relative) and first gradients (relative plus absolute) may be from f32's after
-- three steps with 8 and 11 bits in every value.
local NEAR = { bf16 = { 1e-2, 6e-2 }, f16 = { 2e-3, 1e-2 } }

-- Makes a GPT of four blocks, whose products are larger than one tile and do not divide into tiles.
local function gpt()
  gp.seed(7)
  local layers = { nn.Embedding(models.V, 40) }
  for _ = 1, 4 do
    layers[#layers + 1] = nn.Sequential {
      nn.Residual(nn.Sequential { nn.LayerNorm(40), nn.CausalSelfAttention(40, 2) }),
      nn.Residual(nn.Sequential { nn.LayerNorm(40), nn.Linear(40, 104), nn.GELU("tanh"),
        nn.Linear(104, 40) }),
    }
  end
  layers[#layers + 1] = nn.LayerNorm(40)
  layers[#layers + 1] = nn.Linear(40, models.V, { bias = false })
  return nn.Sequential(layers)
end

local function setup(steps)
  return { model = gpt, x = models.ids(14, 13), y = models.ids(14, 13),
    loss = nn.CrossEntropyLoss(), steps = steps, lr = 1e-3 }
end

-- Convolutions, pools and batch norm need whole operands: threads convert them, piece by piece.
local function pictures()
  gp.seed(11)
  return nn.Sequential {
    nn.Conv2d(3, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 12, 3, { padding = 1, stride = 2 }), nn.GroupNorm(3, 12), nn.ReLU(),
    nn.Flatten(), nn.Linear(12 * 12 * 12, 5),
  }
end

local function picture_setup(steps)
  return { model = pictures, x = gp.randn({ 9, 3, 48, 48 }, { seed = 5 }),
    y = gp.randint(0, 5, { 9 }, { seed = 6 }), loss = nn.CrossEntropyLoss(), steps = steps,
    lr = 1e-3 }
end

local function options(balance, schedule, checkpoint, threads, precision)
  if #balance == 1 then schedule = "gpipe" end
  return { balance = balance, schedule = schedule, checkpoint = checkpoint, chunks = 3,
    devices = training.devices(#balance, threads), precision = precision }
end

-- ---- products ------------------------------------------------------------------------------------

-- A linear layer whose weight is computed from its parameter, so that no plan packs it.
local Unpacked = nn.class("Unpacked")
function Unpacked:init(k, n) self.linear = nn.Linear(k, n) end
function Unpacked:forward(x)
  return core.linear(x, self.linear.weight * 1, self.linear.bias)
end

-- Returns the output of a layer behind another one, and its gradients, in bf16. The gradient of its
-- weight is left out, because it passes through a product in bf16.
local function products(layer, checked)
  gp.seed(4)
  local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(5, 97), layer },
    { devices = training.devices(1, 2), precision = "bf16", chunks = 1 })
  local out = pipe:forward(models.rows_of(131, 5))
  pipe:backward(models.rows_of(131, checked))
  local list = { out }
  for i, p in ipairs(pipe:parameters()) do if i ~= 3 then list[#list + 1] = p.grad:clone() end end
  return list
end

it("a linear layer in bf16 has the same bits packed or not, in any size", function()
  gp.seed(3)
  local packed = products(nn.Linear(97, 101), 101)
  gp.seed(3)
  local plain = products(Unpacked(97, 101), 101)
  for i, tensor in ipairs(packed) do assert.is_true(gp.equal(tensor, plain[i]), "tensor " .. i) end
end)

-- There are more rows than one piece has, and both operands lie in each order.
it("products of stacks of bf16 matrices are those of f64, rounded", function()
  for _, turned in ipairs { { false, false }, { true, false }, { false, true }, { true, true } } do
    local function operand(rows, columns, seed, transposed)
      local shape = transposed and { 2, columns, rows } or { 2, rows, columns }
      return gp.randn(shape, { seed = seed }):to("bf16"):to("f32"), transposed
    end
    local a, b = operand(600, 77, 1, turned[1]), operand(77, 50, 2, turned[2])
    local function product(x, y)
      if turned[1] then x = x:transpose(2, 3) end
      if turned[2] then y = y:transpose(2, 3) end
      return x:matmul(y)
    end
    local Product = nn.class("Product")
    function Product:forward(x, y) return product(x, y) end -- luacheck: ignore 212/self
    local pipe <close> = gp.pipeline(nn.Sequential { Product() },
      { devices = training.devices(1, 2), precision = "bf16" })
    local want = product(a:to("f64"), b:to("f64"))
    local gap = (pipe:forward { a, b }:to("f64") - want):abs()
    assert.is_true((gap / (want:abs() + 1)):max():item() <= 1.01 * 2 ^ -8)
  end
end)

it("pipe:describe names how a CPU device multiplies bf16", function()
  local pipe <close> = gp.pipeline(models.with()(), { devices = { "cpu:0" }, precision = "bf16",
    loss = nn.MSELoss() })
  pipe:step(models.rows_of(4, 6), models.rows_of(4, 3))
  assert.are.equal((core.bf16_path()), pipe:describe().devices[1].paths[1].path)
end)

for _, precision in ipairs(HALVES) do
  describe("a pipeline on CPU devices in " .. precision, function()
    it("has nearly the losses and gradients of f32", function()
      local run = function(p) return training.run(setup(3), options({ 7 }, nil, "never", 1, p)) end
      local wide, narrow, bounds = run("f32"), run(precision), NEAR[precision]
      for step, loss in ipairs(wide.losses) do
        assert(math.abs(narrow.losses[step] - loss) <= bounds[1] * loss,
          ("loss %d is %.9g, in f32 %.9g"):format(step, narrow.losses[step], loss))
      end
      local distance = training.distance(narrow.first, wide.first, bounds[2], bounds[2] / 10)
      assert(distance <= 1, ("gradients are %.3g times as far as allowed"):format(distance))
    end)

    it("gives the same bits for every cut, schedule, mode and number of threads", function()
      local list = { options({ 7 }, nil, "never", 1, precision),
        options({ 7 }, nil, "always", 2, precision) }
      for _, balance in ipairs { { 3, 4 }, { 2, 3, 2 } } do
        for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1" } do
          for _, checkpoint in ipairs { "always", "except_last", "never" } do
            list[#list + 1] = options({ table.unpack(balance) }, schedule, checkpoint, 2, precision)
          end
        end
      end
      training.check_same(setup(2), list)
    end)

    it("gives the same bits for convolutions, whatever the cut and the threads", function()
      local list = { options({ 9 }, nil, "never", 1, precision) }
      for threads = 1, 3 do
        list[#list + 1] = options({ 9 }, nil, "always", threads, precision)
        list[#list + 1] = options({ 2, 4, 3 }, "1f1b", "except_last", threads, precision)
      end
      training.check_same(picture_setup(2), list)
      local wide = training.run(picture_setup(2), options({ 9 }, nil, "never", 1, "f32")).losses
      local narrow = training.run(picture_setup(2), list[1]).losses
      for step, loss in ipairs(wide) do
        assert.is_true(math.abs(narrow[step] - loss) <= 2 * NEAR[precision][1] * loss,
          ("loss %d is %.9g, in f32 %.9g"):format(step, narrow[step], loss))
      end
    end)

    it("gives convolutions of permuted images the bits of permuted copies", function()
      local function turned(copied)
        gp.seed(3)
        local function turn() return nn.Lambda(function(x)
          local y = x:transpose(3, 4)
          return copied and y * 1 or y
        end) end
        local pipe <close> = gp.pipeline(nn.Sequential { nn.Conv2d(3, 4, 3), turn(),
          nn.Conv2d(4, 5, 3), turn(), nn.BatchNorm2d(5), turn(), nn.MaxPool2d(2), nn.Flatten(),
          nn.Linear(5 * 3 * 5, 3) }, { devices = training.devices(1, 2), precision = precision,
          loss = nn.CrossEntropyLoss() })
        local images, classes = gp.randn({ 6, 3, 15, 11 }, { seed = 1 }), gp.zeros({ 6 },
          { dtype = "i64" })
        return pipe:step(images, classes), training.gradients(pipe)
      end
      local loss, gradients = turned(false)
      local same, copies = turned(true)
      assert.are.equal(same, loss)
      assert.is_nil(training.differing(gradients, copies))
    end)

    -- One more thread takes only the scratch of a thread: less than the images and the first
    -- layer's output of a micro-batch in f32, 3 x 11 x 48 x 48 numbers, which are kept once.
    it("keeps the converted operands of convolutions once for all threads", function()
      local given, peaks = picture_setup(1), {}
      for threads = 1, 3 do
        local opts = options({ 9 }, nil, "never", threads, precision)
        opts.loss = nn.CrossEntropyLoss()
        local pipe <close> = gp.pipeline(pictures(), opts)
        pipe:step(given.x, given.y)
        peaks[threads] = pipe.stats.peak_bytes[1]
      end
      local scratch = peaks[2] - peaks[1]
      assert.are.equal(scratch, peaks[3] - peaks[2])
      assert.is_true(scratch < 4 * 3 * 11 * 48 * 48, scratch)
    end)

    it("keeps parameters, gradients and outputs in f32, and sends halves", function()
      local pipe <close> = gp.pipeline(models.with()(), { devices = { "cpu:0", "cpu:1" },
        balance = { 2, 1 }, precision = precision, loss = nn.MSELoss() })
      pipe:step(models.rows_of(4, 6), models.rows_of(4, 3))
      for _, p in ipairs(pipe:parameters()) do
        assert.are.same({ "f32", "f32" }, { p.value.dtype, p.grad.dtype })
      end
      local _, plan = next(pipe.plans)
      for _, edge in ipairs(inside(pipe).core:edges(plan.handle)) do
        assert.are.equal(4 * 8 * 2, edge.bytes)
      end
    end)

    it("names the layer that made a value that is not finite", function()
      local pipe <close> = gp.pipeline(models.with()(), { devices = { "cpu:0" }, finite = true,
        precision = precision, loss = nn.MSELoss() })
      pipe:parameters()[1].value:fill_(precision == "f16" and 6e4 or 3e38) -- the sum is not finite
      local good, message = pcall(pipe.step, pipe, gp.ones { 4, 6 }, models.rows_of(4, 3))
      assert.is_false(good)
      assert.matches("1 %(Linear 6 %-> 8%)", message)
    end)
  end)
end
