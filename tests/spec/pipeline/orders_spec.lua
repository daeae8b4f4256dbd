-- tests/spec/pipeline/orders_spec.lua - values with permuted dimensions: in whatever order a plan
-- keeps them, no cut, schedule or checkpoint mode changes a bit, and eager tensors have the same
-- bits.
local gp = require "gpipe"
local models = require "tests.support.models"
local nn = gp.nn

describe("chains of elementwise ops on permuted values", function()
  it("have the same bits for every cut, schedule and checkpoint mode", function()
    models.check_everywhere(models.regression { model = models.permuting(), steps = 3 })
  end)

  -- There are no products, whose bits depend on the rows of a micro-batch.
  it("have the bits of eager tensors", function()
    local Chain = nn.class("Chain")
    function Chain:init() self.scale = nn.Parameter({ 3 }, nn.init.normal(1, 1)) end
    function Chain:forward(x)
      local last = x:permute(1, 3, 4, 2):relu():gelu() * 2
      local odd = (last * self.scale + 1):permute(4, 1, 3, 2):exp():permute(2, 1, 4, 3)
      return (odd:sigmoid() - x):reshape(x.shape[1], 60):contiguous()
    end
    local x = gp.randn({ 6, 3, 4, 5 }, { seed = 1 })
    local model = nn.Sequential { Chain(), nn.ReLU() }
    local wanted = model(x)
    for _, balance in ipairs { { 2 }, { 1, 1 } } do
      local pipe <close> = gp.pipeline(model, { balance = balance, chunks = 3 })
      assert.is_true(gp.equal(wanted, pipe:eval():forward(x)))
    end
  end)

  it("have the gradients of the same chain of rows", function()
    local function gradient(turned)
      local Chain = nn.class("Chain")
      function Chain:init() self.w = nn.Parameter({ 4, 6 }, nn.init.normal(0, 1)) end
      function Chain:forward(x)
        local y = x + self.w
        if turned then y = y:permute(3, 1, 2) end
        y = (y:relu() * 3):gelu():tanh() * 0.25
        if turned then y = y:permute(2, 3, 1) end
        return y:reshape(x.shape[1], 24)
      end
      gp.seed(5)
      local pipe <close> = gp.pipeline(nn.Sequential { Chain() },
        { chunks = 2, loss = nn.MSELoss() })
      pipe:step(gp.randn({ 5, 4, 6 }, { seed = 1 }), gp.randn({ 5, 24 }, { seed = 2 }))
      return pipe:parameters()[1].grad:clone()
    end
    assert.is_true(gp.equal(gradient(false), gradient(true)))
  end)
end)
