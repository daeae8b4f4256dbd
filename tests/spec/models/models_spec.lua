-- tests/spec/models/models_spec.lua - the networks of the field have the right number of
-- parameters, and the same bits wherever they are cut.
--
-- Counts are those of shared/reference/models.md, and for VGG and the small ResNets those that
-- torchvision documents.
local gp = require "gpipe"
local fails_with = require "tests.support.expect".fails_with
local training = require "tests.support.training"
local models = gp.models

local function counts(model)
  local sum, each = 0, {}
  for i = 1, #model do
    each[i] = 0
    for _, p in ipairs(model[i]:parameters()) do each[i] = each[i] + p.value:numel() end
    sum = sum + each[i]
  end
  return sum, each
end

-- Title, model, parameters, layers (nil: the flat lists are our own, so no reference counts them).
local COUNTS = {
  { "resnet(18)", function() return models.resnet(18) end, 11689512 },
  { "resnet(34)", function() return models.resnet(34) end, 21797672 },
  { "resnet(50)", function() return models.resnet(50) end, 25557032, 183 },
  { "resnet(101)", function() return models.resnet(101) end, 44549160, 370 },
  { "resnet(152)", function() return models.resnet(152) end, 60192808, 557 },
  { "resnet({1, 1, 1, 1}, {classes = 10})",
    function() return models.resnet({ 1, 1, 1, 1 }, { classes = 10 }) end, 8036426, 51 },
  { "unet of depth 1", function() return models.unet { depth = 1, convs = 1, channels = 4 } end, 398,
    17 },
  { "unet of depth 2", function() return models.unet { depth = 2, convs = 1, channels = 8 } end,
    6556, 29 },
  { "unet of depth 3", function() return models.unet { depth = 3, convs = 2, channels = 16 } end,
    279800, 69 },
  { "unet(5, 2, 64)", function() return models.unet { convs = 2 } end, 72301280, 109 },
  { "amoebanetd(10, 3, 64)",
    function() return models.amoebanetd { classes = 10, layers = 3, filters = 64 } end, 1541066, 9 },
  { "amoebanetd(10, 6, 64)",
    function() return models.amoebanetd { classes = 10, layers = 6, filters = 64 } end, 2686346, 12 },
  { "amoebanetd(10, 3, 32)",
    function() return models.amoebanetd { classes = 10, layers = 3, filters = 32 } end, 391354, 9 },
  { "vgg(11)", function() return models.vgg(11) end, 132863336 },
  { "vgg(16)", function() return models.vgg(16) end, 138357544 },
}

describe("parameters of", function()
  for _, case in ipairs(COUNTS) do
    it(case[1], function()
      local model = case[2]()
      assert.equal(case[3], (counts(model)))
      if case[4] then assert.equal(case[4], #model) end
    end)
  end

  it("the stages of ResNet-101", function()
    local _, each = counts(models.resnet(101))
    local stages, block = {}, { 3, 4, 23, 3 }
    local at = 4
    for s = 1, 4 do
      stages[s] = 0
      for _ = 1, 11 * block[s] do
        at = at + 1
        stages[s] = stages[s] + each[at]
      end
    end
    assert.same({ 215808, 1219584, 26090496, 14964736 }, stages)
    assert.same({ 9408, 128, 2049000 }, { each[1], each[2], each[370] })
  end)

  it("the layers of AmoebaNet-D", function()
    local _, each = counts(models.amoebanetd { classes = 10, layers = 3, filters = 32 })
    assert.same({ 232, 1336, 5712, 11040, 29216, 45120, 115264, 178304, 5130 }, each)
  end)
end)

-- ---- the same bits -----------------------------------------------------------------------------

-- Returns the losses of two steps, then gradients and buffers.
local function train(make, x, y, options)
  gp.seed(1)
  local o = { chunks = 2, loss = y.dtype == "i64" and gp.nn.CrossEntropyLoss() or gp.nn.MSELoss(),
    seed = 3 }
  for key, value in pairs(options) do o[key] = value end
  local pipe <close> = gp.pipeline(make(), o)
  local result = { gp.tensor { pipe:step(x, y), pipe:step(x, y) } }
  for name, value in pairs(training.gradients(pipe)) do result["gradient of " .. name] = value end
  for name, value in pairs(pipe:state_dict()) do result[name] = value end
  return result
end

local function check_cuts(make, x, y, cuts)
  local whole = train(make, x, y, {})
  for _, options in ipairs(cuts) do
    local cut = train(make, x, y, options)
    assert.is_nil(training.differing(whole, cut))
  end
end

describe("the bits of a cut model are those of the whole one:", function()
  local ids = gp.tensor({ 1, 0, 3, 2 }, { dtype = "i64" })

  it("ResNet, inside of bottlenecks", function()
    local function make() return models.resnet({ 1, 1, 1, 1 }, { classes = 4 }) end
    check_cuts(make, gp.randn({ 4, 3, 32, 32 }, { seed = 2 }), ids, {
      { balance = { 9, 13, 15, 14 } },
      { balance = { 22, 29 }, checkpoint = "always", schedule = "gpipe" },
    })
  end)

  it("ResNet-101 over four devices, as torchgpipe cut it", function()
    local function make() return models.resnet(101, { classes = 4 }) end
    check_cuts(make, gp.randn({ 4, 3, 32, 32 }, { seed = 2 }), ids, {
      { balance = { 44, 92, 124, 110 } },
    })
  end)

  it("ResNet with statistics once a mini-batch", function()
    local function make() return models.resnet({ 1, 1, 1, 1 }, { classes = 4 }) end
    local x, y = gp.randn({ 4, 3, 32, 32 }, { seed = 2 }), ids
    local whole = train(make, x, y, { deferred_batch_norm = true })
    local cut = train(make, x, y, { deferred_batch_norm = true, balance = { 10, 20, 21 },
      checkpoint = "always" })
    assert.is_nil(training.differing(whole, cut))
  end)

  it("AmoebaNet-D, with pairs between the stages", function()
    local function make() return models.amoebanetd { classes = 4, layers = 3, filters = 16 } end
    check_cuts(make, gp.randn({ 2, 3, 223, 223 }, { seed = 2 }), ids:narrow(1, 1, 2), {
      { balance = { 2, 2, 2, 3 } },
    })
  end)

  it("U-Net, of sizes that do not halve evenly", function()
    local function make() return models.unet { depth = 2, convs = 1, channels = 4 } end
    local x = gp.randn({ 4, 3, 13, 10 }, { seed = 2 })
    check_cuts(make, x, gp.randn({ 4, 1, 13, 10 }, { seed = 3 }), {
      { balance = { 7, 9, 13 } }, { balance = { 15, 14 }, checkpoint = "always" },
    })
  end)
end)

-- ---- shapes and mistakes -----------------------------------------------------------------------

describe("a model", function()
  it("gives the shape of its task", function()
    local function shape(model, ...)
      return gp.no_grad(function(...) return model:eval()(gp.zeros { ... }).shape end, ...)
    end
    assert.same({ 2, 7 }, shape(models.resnet(18, { classes = 7 }), 2, 3, 33, 40))
    assert.same({ 1, 2, 9, 8 }, shape(models.unet { depth = 2, convs = 1, channels = 4, input = 1,
      output = 2 }, 1, 1, 9, 8))
    assert.same({ 1, 5 }, shape(models.amoebanetd { classes = 5, layers = 3, filters = 16 }, 1, 3,
      224, 224))
  end)

  it("is refused by name, size and option", function()
    fails_with("gp.models: there is no 'resnt' (did you mean 'resnet'?)",
      function() return models.resnt end)
    fails_with("depth is 20, expected 18, 34, 50, 101, 152, or", models.resnet, 20)
    fails_with("blocks is a table, expected four integers >= 1", models.resnet, { 1, 2 })
    fails_with("unknown option 'clases' (did you mean 'classes'?)", models.resnet, 18, { clases = 1 })
    fails_with("depth is nil, expected 11, 13, 16 or 19", models.vgg)
    fails_with("layers is 4, expected a multiple of 3", models.amoebanetd, { layers = 4 })
    fails_with("option 'depth' is 0, expected an integer >= 1", models.unet, { depth = 0 })
  end)
end)

describe("nn.Dropout2d", function()
  it("drops whole channels, and the same ones for every cut", function()
    gp.seed(5)
    local layer = gp.nn.Dropout2d(0.5)
    local y = layer(gp.ones { 4, 64, 3, 5 })
    local sums = y:reshape({ 256, 15 }):sum(2)
    assert.equal(256, (sums:eq(0):to "f32" + sums:eq(30):to "f32"):sum():item())
    local dropped = sums:eq(0):to("f32"):sum():item()
    assert.is_true(dropped > 80 and dropped < 176)
    assert.is_true(gp.equal(gp.ones { 2, 2, 2, 2 }, layer:eval()(gp.ones { 2, 2, 2, 2 })))
    fails_with("p is 2, expected", gp.nn.Dropout2d, 2)
    fails_with("the input is 3, expected rows and channels", gp.nn.Dropout2d(), gp.ones { 3 })
  end)
end)
