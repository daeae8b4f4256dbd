-- tests/spec/examples/images_spec.lua - the examples that classify or segment images, on generated
-- data.
local run = require "tests.support.example".run

-- A sanitizer checks every access of the convolutions: training did not end in 40 minutes. A few
-- steps run the same code.
local FEW = (os.getenv "GPIPE_SANITIZE" or "") ~= "" and " --steps 3" or nil

-- Command, pattern of the last line with a number, and the least value of that number once trained.
local EXAMPLES = {
  { "resnet101/train.lua --synthetic --size 32 --depth 18 --steps 2",
    "([%d.]+) %% of 48 held%-out images are right", 0 },
  { "unet/train.lua --synthetic", "union on 16 held%-out images: ([%d.]+)", 0.8 },
  { "amoebanet/train.lua --synthetic --filters 16 --steps 2",
    "([%d.]+) %% of 6 held%-out images are right", 0 },
  { "mnist/train.lua --synthetic", "([%d.]+) %% of 359 test images are right", 90 },
  { "cifar10/train.lua --synthetic", "([%d.]+) %% of 128 test images are right", 90 },
}

describe("with --synthetic", function()
  for _, example in ipairs(EXAMPLES) do
    it("examples/" .. example[1]:match "%S+", function()
      local trains = example[3] > 0
      local text, code = run(example[1] .. (trains and FEW or "") .. " --quiet")
      assert.are.equal(0, code, text)
      assert.is_true(tonumber(text:match(example[2])) >= (FEW and 0 or example[3]), text)
    end)
  end
end)

describe("without data, a line says where to get it:", function()
  for name, from in pairs {
    resnet101 = "image-net.org", unet = "carvana", mnist = "mnist",
    cifar10 = "cs.toronto.edu", amoebanet = "image-net.org",
  } do
    it("examples/" .. name, function()
      local text, code = run(name .. "/train.lua")
      assert.are.equal(1, code, text)
      assert.is_truthy(text:find(from, 1, true), text)
      assert.is_truthy(text:find("or try --synthetic", 1, true), text)
      assert.are.equal(1, select(2, text:gsub("\n", "")), text)
    end)
  end
end)
