-- tests/spec/nn/container_spec.lua - modules side by side: Concat, Sum, Parallel.
local gp = require "gpipe"
local nn = gp.nn

local x = gp.tensor { { -1, 2 }, { 3, -4 } }
local function negative() return nn.Sequential { nn.ReLU() } end

-- {wrong call, text}
local cases = {
  { function() nn.Concat("2", {}) end, 'nn.Concat: dim is "2" (string), expected an integer' },
  { function() nn.Concat(0, { nn.ReLU() }) end, "nn.Concat: dim is 0, expected 1 or more" },
  { function() nn.Concat(2) end, "nn.Concat: the list of modules is nil, expected a list" },
  { function() nn.Sum(nn.ReLU()) end, "nn.Sum: the list of modules is a nn.ReLU, expected a list" },
  { function() nn.Sum {} end, "nn.Sum: the list is empty, expected at least one module" },
  { function() nn.Sum { nn.ReLU } end, "nn.Sum: module 1 is the class nn.ReLU" },
  { function() nn.Sum { a = nn.ReLU(), nn.Tanh() } end, 'nn.Sum: there is a key "a"' },
  { function() nn.Sum { nn.ReLU(), 3 } end, "nn.Sum: module 2 is 3, expected a module" },
  { function() nn.Parallel { nn.ReLU(), nn.ReLU() } (x) end,
    "Parallel: there are 1 inputs, expected 2, one for each module" },
  { function() nn.Sum { nn.Parallel { nn.ReLU(), nn.ReLU() } } (x, x) end,
    "Sum: module 1 (Parallel) returned 2 values, expected one tensor" },
  { function() nn.Sequential { nn.Concat(2, { nn.Linear(3, 2) }) } (x) end, "1.1 (Linear 3 -> 2)" },
}

describe("a container", function()
  it("concatenates", function()
    local y = nn.Concat(2, { nn.ReLU(), negative() })(x)
    assert.same({ { 0, 2, 0, 2 }, { 3, 0, 3, 0 } }, y:totable())
    assert.same({ 4, 2 }, nn.Concat(1, { nn.ReLU(), nn.ReLU() })(x).shape)
    assert.same({ 2, 4 }, nn.Concat(-1, { nn.ReLU(), nn.ReLU() })(x).shape)
  end)

  it("adds", function()
    assert.same({ { -1, 4 }, { 6, -4 } },
      nn.Sum { nn.ReLU(), nn.Sequential {} } (x):totable())
  end)

  it("runs each module on its own input", function()
    local a, b = nn.Parallel { nn.ReLU(), nn.Sequential {} } (x, x * 2)
    assert.same({ { 0, 2 }, { 3, 0 } }, a:totable())
    assert.same((x * 2):totable(), b:totable())
  end)

  it("names its children by position", function()
    local model = nn.Sequential { { "fork", nn.Sum { nn.Linear(2, 2), nn.Linear(2, 2) } } }
    local names = {}
    for i, p in ipairs(model:parameters()) do names[i] = p.name end
    assert.same({ "fork.1.weight", "fork.1.bias", "fork.2.weight", "fork.2.bias" }, names)
  end)

  for i, case in ipairs(cases) do
    it(("wrong call %d says: %s"):format(i, case[2]), function()
      local good, text = pcall(case[1])
      assert.is_false(good)
      assert(text:find(case[2], 1, true), text)
    end)
  end
end)
