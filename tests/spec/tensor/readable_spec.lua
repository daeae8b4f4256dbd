-- tests/spec/tensor/readable_spec.lua - our tables print themselves, and stay plain tables.

local gp = require "gpipe"
local nn = gp.nn

describe("a shape", function()
  local shape = gp.ones({ 2, 3 }).shape

  it("prints its sizes, and is otherwise a plain table", function()
    assert.equal("{2, 3}", tostring(shape))
    assert.equal("{}", tostring(gp.tensor(1).shape))
    assert.same({ 2, 3 }, shape)
    assert.same({ 2, 2, 3 }, { #shape, table.unpack(shape) })
    assert.equal("2x3", table.concat(shape, "x"))
    assert.same({ 2, 3 }, gp.zeros(shape).shape)
    shape[1] = 5
    assert.equal("{5, 3}", tostring(shape))
    assert.same({ 2, 3 }, gp.ones({ 2, 3 }).shape)
  end)

  it("equals another one with the same sizes", function()
    assert.is_true(gp.ones({ 2, 3 }).shape == gp.zeros({ 2, 3 }).shape)
    assert.is_true(gp.ones({ 2, 3 }).shape == { 2, 3 })
    assert.is_false(gp.ones({ 2, 3 }).shape == gp.zeros({ 3, 2 }).shape)
    assert.is_false(gp.ones({ 2, 3 }).shape == gp.zeros({ 2 }).shape)
  end)

  it("may be saved, and kept in a module", function()
    local tables = require "gpipe.io.tables"
    local tensors, text = tables.encode { shape = gp.ones({ 2, 3 }).shape }
    assert.same({ 2, 3 }, tables.decode(text, tensors).shape)
    local Layer = nn.class "Layer"
    function Layer:init() self.sizes = gp.ones({ 2, 3 }).shape end
    function Layer:forward(x) return x * self.sizes[2] end
    assert.equal(3, Layer()(gp.ones { 1 })[1])
  end)
end)

describe("figures", function()
  it("print their contents", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(2, 2) }, { loss = nn.MSELoss() })
    pipe:step(gp.ones { 4, 2 }, gp.ones { 4, 2 })
    assert.matches("seconds = %d", tostring(pipe.stats))
    assert.matches("bubble = {", tostring(pipe.stats))
    assert.matches('unit = "s"', tostring(pipe:costs()))
    assert.matches("live = %d", tostring(gp.memory()))
    assert.matches("live = %d", tostring(gp.memory().cpu))
  end)
end)
