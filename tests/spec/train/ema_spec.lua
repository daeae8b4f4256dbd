-- tests/spec/train/ema_spec.lua - averages of weights: the rule, the same bits for every cut and
-- after a resume, and weights that are restored exactly.
local gp = require "gpipe"
local nn, optim, train = gp.nn, gp.optim, gp.train

local x, y = gp.randn { 24, 6 }, gp.randn { 24, 3 }

local function made(balance, opts)
  gp.seed(5)
  local model = nn.Sequential { nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 8),
    nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3) }
  local pipe = gp.pipeline(model, { loss = nn.MSELoss(), balance = balance, chunks = 3, seed = 2,
    schedule = opts and opts.schedule })
  return { pipe = pipe, opt = optim.Adam(pipe:parameters(), { lr = 0.02 }),
    ema = train.ema(pipe, { decay = 0.9, warmup = opts and opts.warmup }) }
end

local function run(t, steps)
  for _ = 1, steps do
    t.pipe:step(x, y)
    t.opt:step()
    t.ema:update()
  end
  return t
end

local function same(a, b)
  for name, value in pairs(a) do assert.is_true(value:equal(b[name]), name) end
end

describe("averages of weights", function()
  it("follow the rule", function()
    local layer = nn.Linear(1, 1, { bias = false })
    local weight = layer:parameters()[1].value
    weight:copy_(0)
    local plain, warm = train.ema(layer, { decay = 0.9 }),
      train.ema(layer, { decay = 0.9, warmup = true })
    local expected, grown = 0, 0
    for n, value in ipairs { 1, 4, 2 } do
      weight:copy_(value)
      plain:update()
      warm:update()
      expected = 0.9 * expected + 0.1 * value
      local d = math.min(0.9, (1 + n) / (10 + n))
      grown = d * grown + (1 - d) * value
    end
    assert.near(expected, plain:state_dict().weight:item(), 1e-6)
    assert.near(grown, warm:state_dict().weight:item(), 1e-6)
  end)

  it("are the same for weights that are averaged in slices", function()
    local layer = nn.Linear(300, 301, { bias = false })
    local ema, weight = train.ema(layer, { decay = 0.75 }), layer:parameters()[1].value
    local expected = weight:clone()
    weight:copy_(gp.randn { 301, 300 })
    ema:update()
    expected = expected + (weight - expected) * 0.25
    assert.is_true(expected:equal(ema:state_dict().weight))
  end)

  it("have the same bits for every cut and schedule", function()
    local one = run(made({ 7 }), 6)
    for _, other in ipairs { { { 3, 4 } }, { { 1, 2, 4 } }, { { 1, 1, 1, 1, 1, 1, 1 } },
      { { 3, 4 }, { schedule = "gpipe" } } } do
      same(one.ema:state_dict(), run(made(other[1], other[2]), 6).ema:state_dict())
    end
  end)

  it("go on with the same bits after a resume with another cut", function()
    local whole = run(made({ 7 }, { warmup = true }), 8)
    local half, rest = run(made({ 2, 5 }, { warmup = true }), 3), made({ 4, 3 }, { warmup = true })
    local folder = os.tmpname()
    os.remove(folder)
    assert(gp.checkpoint.save(folder, { pipe = half.pipe, opt = half.opt,
      extra = { ema = half.ema:state() }, background = true }):finish())
    local extra = assert(gp.checkpoint.load(folder, { pipe = rest.pipe, opt = rest.opt }))
    rest.ema:restore(extra.ema)
    os.execute("rm -r " .. folder)
    run(rest, 5)
    same(whole.ema:state_dict(), rest.ema:state_dict())
    same(whole.pipe:state_dict(), rest.pipe:state_dict())
  end)

  it("are in the model during apply, and afterwards the weights are restored exactly", function()
    local t, alone = run(made { 3, 4 }, 4), run(made { 3, 4 }, 4)
    local before, averages = t.pipe:state_dict(), t.ema:state_dict()
    local loss, three = t.ema:apply(function(n)
      for _, entry in ipairs(t.pipe:parameters()) do
        assert.is_true(entry.value:equal(averages[entry.name]))
      end
      return t.pipe:evaluate(x, y), n
    end, 3)
    assert.equal(3, three)
    assert.are_not.equal(t.pipe:evaluate(x, y), loss)
    same(before, t.pipe:state_dict())
    same(averages, t.ema:state_dict())
    same(run(alone, 2).pipe:state_dict(), run(t, 2).pipe:state_dict())
  end)

  it("are taken out again where the function fails", function()
    local t = run(made { 7 }, 2)
    local before = t.pipe:state_dict()
    local good, message = pcall(t.ema.apply, t.ema, function() error "no data" end)
    assert.is_false(good)
    assert.is_truthy(message:find("no data", 1, true))
    same(before, t.pipe:state_dict())
    assert.is_false(t.ema.swapped)
  end)

  it("work with updates that are part of the step, with and without a barrier", function()
    local results = {}
    for i, barrier in ipairs { true, false } do
      local t = made { 3, 4 }
      t.pipe:use(t.opt, { barrier = barrier })
      for _ = 1, 4 do
        t.pipe:step(x, y)
        t.ema:update()
      end
      results[i] = t.ema:state_dict()
    end
    same(results[1], results[2])
  end)

  it("are refused while they are in the model", function()
    local t = made { 7 }
    t.ema:swap()
    for _, name in ipairs { "update", "state", "state_dict" } do
      local good, message = pcall(t.ema[name], t.ema)
      assert.is_false(good)
      assert.is_truthy(message:find("swap", 1, true), message)
    end
  end)

  it("that do not fit are all named at once, and nothing changes", function()
    local ema = train.ema(nn.Sequential { nn.Linear(2, 2) })
    local state = ema:state()
    state.averages["1.weight"], state.averages.more = nil, gp.ones { 1 }
    local before = ema:state_dict()
    local good, message = pcall(ema.restore, ema, state)
    assert.is_false(good)
    assert.is_truthy(message:find("1.weight", 1, true) and message:find("more", 1, true), message)
    same(before, ema:state_dict())
  end)
end)
