-- tests/spec/nn/sequence/stack_spec.lua - stacks of Transformer layers give the masks to every
-- layer, over cuts too.

local gp = require "gpipe"

local nn = gp.nn

local x = gp.randn({ 4, 5, 8 }, { seed = 1 })
local other = x:clone()
for row = 1, 4 do other[{ row, row, {} }] = 7 end

-- Hides position r of row r: [B, 1, 1, T], true where a query may attend.
local function padding()
  local mask = gp.ones { 4, 1, 1, 5 }
  for row = 1, 4 do mask[{ row, 1, 1, row }] = 0 end
  return mask:gt(0)
end

-- Are the outputs the same except in the rows that read hidden positions?
local function same_where_seen(a, b)
  for row = 1, 4 do
    for place = 1, 5 do
      if place ~= row and not gp.equal(a[row][place], b[row][place]) then return false end
    end
  end
  return true
end

for _, first in ipairs { false, true } do
  local opts = { dropout = 0, norm_first = first }

  describe("a Transformer encoder" .. (first and " with norms in front" or ""), function()
    local encoder = nn.TransformerEncoder(3, 8, 2, 16, opts)

    it("hides what the mask hides in every layer", function()
      local mask = padding()
      assert.is_true(same_where_seen(encoder(x, mask), encoder(other, mask)))
      assert.is_false(same_where_seen(encoder(x), encoder(other)))
    end)

    it("returns one tensor, with a mask and without", function()
      assert.are.equal(1, select("#", encoder(x, padding())))
      assert.are.equal(1, select("#", encoder(x)))
    end)

    it("computes the same bits over cuts", function()
      local want, y = encoder(x, padding()), gp.zeros { 4, 5, 8 }
      local balances = first and { { 4 }, { 1, 1, 2 } } or { { 3 }, { 1, 1, 1 } }
      local losses = {}
      for i, balance in ipairs(balances) do
        local devices = {}
        for k = 1, #balance do devices[k] = "cpu:0" end
        local pipe <close> = gp.pipeline(encoder, { balance = balance, devices = devices,
          chunks = 2, loss = nn.MSELoss() })
        assert.is_true(gp.equal(want, pipe:forward { x, padding() }))
        pipe:backward(gp.ones { 4, 5, 8 })
        losses[i] = pipe:step({ x, padding() }, y)
      end
      assert.are.equal(losses[1], losses[2])
    end)
  end)

  describe("a Transformer decoder" .. (first and " with norms in front" or ""), function()
    local decoder = nn.TransformerDecoder(3, 8, 2, 16, opts)

    it("hides what the memory's mask hides in every layer, with a mask of its own or none", function()
      for _, own in ipairs { false, padding() } do
        local a = decoder(x, x, own or nil, padding())
        local memory = x:clone()
        for row = 1, 4 do memory[{ row, row, {} }] = -3 end
        assert.is_true(gp.equal(a, decoder(x, memory, own or nil, padding())))
      end
    end)

    it("hides what its own mask hides in every layer", function()
      local a, b = decoder(x, x, padding()), decoder(other, x, padding())
      assert.is_true(same_where_seen(a, b))
    end)
  end)
end
