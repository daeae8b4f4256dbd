-- tests/spec/train/accumulate_spec.lua - one update for several mini-batches has the gradients of
-- one batch with all rows.
local gp = require "gpipe"
local nn, optim, train = gp.nn, gp.optim, gp.train

local ROWS = 6 -- rows of a mini-batch
local x, y = gp.randn { 8 * ROWS, 5 }, gp.randn { 8 * ROWS, 2 }

local function made(balance, chunks, opts)
  gp.seed(9)
  local model = nn.Sequential { nn.Linear(5, 7), nn.Tanh(), nn.LayerNorm(7), nn.Linear(7, 2) }
  local pipe = gp.pipeline(model, { loss = nn.MSELoss(), balance = balance, chunks = chunks,
    precision = opts and opts.precision })
  return pipe, optim.Adam(pipe:parameters(), { lr = 0.05 })
end

local function part(i) return x:narrow(1, i * ROWS + 1, ROWS), y:narrow(1, i * ROWS + 1, ROWS) end

-- Feeds mini-batches first .. last.
local function feed(accumulate, opt, first, last)
  local losses = {}
  for i = first, last do
    local loss = accumulate(part(i))
    if loss then
      losses[#losses + 1] = loss
      opt:step()
    end
  end
  return losses
end

local function same(a, b)
  for name, value in pairs(a) do assert.is_true(value:equal(b[name]), name) end
end

describe("gradients of several mini-batches", function()
  it("begin anew after a mini-batch that raised", function()
    local many, one = made({ 2, 2 }, 3), made({ 4 }, 6)
    local accumulate = train.accumulate(many, 2)
    accumulate(part(0))
    assert.is_false(pcall(accumulate, x:narrow(1, 1, ROWS), gp.ones { ROWS, 9 }))
    assert.equal(0, accumulate.count)
    assert.is_nil((accumulate(part(0))))
    assert.is_number((accumulate(part(1))))
    one:step(x:narrow(1, 1, 2 * ROWS), y:narrow(1, 1, 2 * ROWS))
    for i, p in ipairs(one:parameters()) do
      assert.is_true(p.grad:equal(many:parameters()[i].grad), p.name)
    end
  end)

  for _, n in ipairs { 1, 2, 4, 8 } do
    it(("have the same bits as one batch: %d"):format(n), function()
      local many, opt = made({ 2, 2 }, 3)
      local one, other = made({ 4 }, 3 * n)
      local losses = feed(train.accumulate(many, n), opt, 0, 7)
      assert.equal(8 // n, #losses)
      for i = 0, 7, n do
        one:step(x:narrow(1, i * ROWS + 1, n * ROWS), y:narrow(1, i * ROWS + 1, n * ROWS))
        other:step()
      end
      same(one:state_dict(), many:state_dict())
    end)
  end

  it("are near those of one batch where the number is no power of two", function()
    local many, one = made({ 2, 2 }, 3), made({ 4 }, 9)
    local accumulate, loss = train.accumulate(many, 3), nil
    for i = 0, 2 do loss = accumulate(part(i)) end
    assert.near(one:step(x:narrow(1, 1, 3 * ROWS), y:narrow(1, 1, 3 * ROWS)), loss, 1e-6)
    local list = one:parameters()
    for i, entry in ipairs(many:parameters()) do
      assert.is_true(entry.grad:allclose(list[i].grad, { atol = 1e-7, rtol = 1e-5 }), entry.name)
    end
  end)

  it("go on with the same bits within a round, with another cut", function()
    local whole, opt = made({ 4 }, 3)
    feed(train.accumulate(whole, 4), opt, 0, 7)
    for cut = 1, 7 do
      local first, first_opt = made({ 2, 2 }, 3)
      local rest, rest_opt = made({ 1, 3 }, 3)
      local one, two = train.accumulate(first, 4), train.accumulate(rest, 4)
      feed(one, first_opt, 0, cut - 1)
      rest:load_state_dict(first:state_dict())
      rest_opt:load_state_dict(first_opt:state_dict())
      two:restore(one:state())
      feed(two, rest_opt, cut, 7)
      same(whole:state_dict(), rest:state_dict())
    end
  end)

  it("are refused where the pipeline makes the updates itself", function()
    local pipe, opt = made({ 2, 2 }, 3)
    pipe:use(opt)
    local accumulate = train.accumulate(pipe, 2)
    accumulate(part(0))
    local good, message = pcall(accumulate.step, accumulate, part(1))
    assert.is_false(good)
    assert.is_truthy(message:find("pipe:use", 1, true), message)
  end)
end)
