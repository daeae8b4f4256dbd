-- tests/spec/train/parts_spec.lua - the small parts of gp.train: their answers, and that they go on
-- from a state as if they had never stopped.
local gp = require "gpipe"
local train = gp.train

local nan, inf = 0 / 0, math.huge

-- Returns what a part says about each value, as one text.
local function answers(part, values)
  local words = {}
  for i, value in ipairs(values) do words[i] = tostring(part(value, i)) end
  return table.concat(words, " ")
end

local T, F = "true", "false"

describe("early stopping", function()
  local cases = {
    { "ends after values that are no better", { patience = 2 }, { 3, 2, 2, 1, 1.5, 1 },
      { F, F, F, F, F, T } },
    { "wants a value to be better by more than min_delta", { patience = 1, min_delta = 0.5 },
      { 3, 2.4, 2 }, { F, F, T } },
    { "takes more for better in mode max", { patience = 1, mode = "max" }, { 1, 2, 1 },
      { F, F, T } },
    { "ends at a value that is good enough", { threshold = 1 }, { 2, 1.5, 1 }, { F, F, T } },
    { "ends at a value that is good enough in mode max", { threshold = 0.9, mode = "max" },
      { 0.5, 0.9 }, { F, T } },
    { "ends at a value that is too bad", { divergence = 10 }, { 2, 10, 11 }, { F, F, T } },
    { "ends at a value that is not a number", {}, { 2, nan }, { F, T } },
    { "ends at a value that is not finite", {}, { 2, inf }, { F, T } },
    { "goes on saying so", { threshold = 1 }, { 1, 5 }, { T, T } },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local stop = train.early_stopping(case[2])
      assert.equal(table.concat(case[4], " "), answers(stop, case[3]))
      assert.string(stop.reason)
    end)
  end

  it("has no reason while training should go on", function()
    local stop = train.early_stopping()
    assert.is_false(stop(1))
    assert.is_nil(stop.reason)
  end)
end)

describe("the best value", function()
  it("is the lowest by default", function()
    local best = train.best()
    assert.equal("true true false false true", answers(best, { 3, 2, 2, nan, 1 }))
    assert.same({ value = 1, step = 5 }, best:state())
  end)
  it("is the highest in mode max", function()
    assert.equal("true false true", answers(train.best "max", { 3, 2, 4 }))
  end)
end)

describe("a smoothed value", function()
  it("is the mean of its values with decreasing weights, from the first on", function()
    local smooth = train.smooth(0.5)
    assert.equal(4, smooth(4))
    assert.equal((0.5 * 4 + 1) / 1.5, smooth(1))
  end)
  it("leaves out infinities and NaN", function()
    local smooth = train.smooth(0.9)
    assert.is_nil(smooth(nan))
    smooth(2)
    for _, value in ipairs { nan, inf, -inf } do assert.equal(2, smooth(value)) end
  end)
end)

describe("every", function()
  local function due_at(due, last)
    local found = {}
    for n = 1, last do
      if due(n) then found[#found + 1] = n end
    end
    return table.concat(found, " ")
  end
  it("so many steps something is due, and at the last one", function()
    assert.equal("3 6 9 10", due_at(train.every { steps = 3, total = 10 }, 11))
    assert.equal("4 8", due_at(train.every { epochs = 4 }, 9))
  end)
  it("is due once where steps were skipped", function()
    local due = train.every { steps = 10 }
    assert.is_true(due(25))
    assert.is_false(due(25))
    assert.is_false(due(29))
    assert.is_true(due(30))
  end)
  it("so many seconds something is due", function()
    local due = train.every { seconds = 1000 }
    assert.is_false(due(1))
    due:restore { last = 1, waited = 1000 }
    assert.is_true(due(2))
    assert.is_false(due(3))
  end)
end)

describe("divergence", function()
  -- Values around 3 that differ by a hundredth and are not random.
  local function calm(watch, steps)
    for step = 1, steps do assert.is_nil(watch(step, 3 + 0.01 * math.sin(step))) end
  end
  it("is a loss that is not finite, with its step and what to do", function()
    local watch = train.divergence()
    calm(watch, 3)
    for i, value in ipairs { nan, inf, -inf } do
      local trouble = watch(3 + i, value)
      assert.equal("not finite", trouble.kind)
      assert.equal(3 + i, trouble.step)
      assert.equal(i, watch.nonfinite)
      assert.is_truthy(tostring(trouble):find(("step %d"):format(3 + i), 1, true))
      assert.is_truthy(tostring(trouble):find(trouble.suggestion, 1, true))
    end
    calm(watch, 2)
    assert.equal(0, watch.nonfinite)
  end)
  it("is a loss that jumps, also after one that was not a number", function()
    local watch = train.divergence { window = 20 }
    calm(watch, 20)
    watch(21, nan)
    local trouble = watch(22, 3.5)
    assert.equal("jump", trouble.kind)
    assert.near(3, trouble.usual, 0.01)
    assert.is_true(trouble.z > 6)
    assert.equal(1, watch.jumps)
    assert.equal("jump", watch(23, 3.5).kind) -- one spike does not hide the next
  end)
  it("is neither a falling loss nor a small move of a constant one", function()
    local watch = train.divergence()
    for step = 1, 200 do assert.is_nil(watch(step, 10 * 0.97 ^ step)) end
    watch = train.divergence()
    for step = 1, 50 do assert.is_nil(watch(step, 2)) end
    assert.is_nil(watch(51, 2.01))
    assert.is_truthy(watch(52, 2.1))
  end)
  it("is detected by the median and its deviation, whatever the window", function()
    local function median(list)
      table.sort(list)
      local n = #list
      return (list[(n + 1) // 2] + list[n // 2 + 1]) / 2
    end
    for _, window in ipairs { 10, 11, 37 } do
      local watch, seen = train.divergence { window = window, z = 2 }, {}
      for step = 1, 200 do
        local value = step % 3 == 0 and step % 5 or 3 + math.sin(step * step)
        local trouble = watch(step, value)
        if #seen >= 10 then
          local part = table.move(seen, math.max(1, #seen - window + 1), #seen, 1, {})
          local middle = median(part)
          for i, other in ipairs(part) do part[i] = math.abs(other - middle) end
          local z = (value - middle) / math.max(1.4826 * median(part), 1e-3 * middle)
          assert.equal(z > 2, trouble ~= nil)
          if trouble then assert.near(z, trouble.z, 1e-9) end
        end
        seen[#seen + 1] = value
      end
    end
  end)
  it("must also exceed the factor where there is one", function()
    local watch = train.divergence { factor = 2 }
    calm(watch, 20)
    assert.is_nil(watch(21, 5.9))
    assert.is_truthy(watch(22, 6.5))
  end)
end)

describe("a state", function()
  local values = {}
  for i = 1, 60 do values[i] = 3 - i / 30 + math.sin(i * i) end
  values[31], values[44] = nan, 40
  local function value_of(part, value) return part(value) end
  local parts = {
    best = { make = train.best, ask = value_of },
    smooth = { make = train.smooth, ask = value_of },
    early_stopping = {
      make = function() return train.early_stopping { patience = 50 } end, ask = value_of,
    },
    divergence = {
      make = function() return train.divergence { window = 12 } end,
      ask = function(part, value, i) return part(i, value) end,
    },
    every = {
      make = function() return train.every { steps = 7 } end,
      ask = function(part, _, i) return part(i) end,
    },
  }
  for name, part in pairs(parts) do
    it("of " .. name .. " goes on as if it had never stopped, through a file", function()
      local path = os.tmpname()
      for cut = 0, 60, 12 do
        local one, two = part.make(), part.make()
        local function ask(which, from, to)
          local words = {}
          for i = from, to do
            words[#words + 1] = tostring(part.ask(which, values[i], i))
          end
          return table.concat(words, "\n")
        end
        ask(one, 1, cut)
        assert(gp.save(path, { state = one:state() }))
        two:restore(assert(gp.load(path)).state)
        assert.equal(ask(one, cut + 1, 60), ask(two, cut + 1, 60))
      end
      os.remove(path)
    end)
    it("of " .. name .. " that is malformed is refused", function()
      local good, message = pcall(part.make().restore, part.make(), { nonsense = 1 })
      assert.is_false(good)
      assert.is_truthy(message:find("nonsense", 1, true), message)
    end)
  end
end)

describe("a mistake", function()
  local cases = {
    { "a value that is no number", function() train.best()("x") end, { "value", '"x"' } },
    { "a step that is none", function() train.divergence()(1.5, 2) end, { "step", "1.5" } },
    { "two periods", function() train.every { steps = 1, epochs = 1 } end, { "steps", "epochs" } },
    { "no period", function() train.every {} end, { "steps", "epochs", "seconds" } },
    { "a mode that is none", function() train.best "mim" end, { "mode", "mim", "min" } },
    { "a beta of 1", function() train.smooth(1) end, { "beta", "1" } },
    { "a misspelt option", function() train.early_stopping { patiance = 1 } end,
      { "patiance", "patience" } },
    { "a misspelt field", function() return train.early_stopping().reasn end, { "reason" } },
  }
  for _, case in ipairs(cases) do
    it("is refused by name: " .. case[1], function()
      local good, message = pcall(case[2])
      assert.is_false(good)
      for _, word in ipairs(case[3]) do
        assert.is_truthy(message:find(word, 1, true), message)
      end
    end)
  end
end)
