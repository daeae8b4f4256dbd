-- tests/spec/optim/groups_spec.lua - parameter groups that are added during a training.

local gp = require "gpipe"
local expect = require "tests.support.expect"

local nn, optim = gp.nn, gp.optim

local function two()
  gp.seed(3)
  return nn.Sequential { nn.Linear(3, 4), nn.Linear(4, 2) }
end

local x = gp.randn({ 5, 3 }, { seed = 1 })

local function backward(model, step)
  for _, entry in ipairs(model:parameters()) do
    if entry.grad then entry.grad:zero_() end
  end
  (model(x) * step):square():sum():backward()
end

local KINDS = {
  Adam = { lr = 0.01 }, AdamW = { lr = 0.01, amsgrad = true }, SGD = { lr = 0.01, momentum = 0.9 },
  RMSprop = { lr = 0.01 }, Adagrad = { lr = 0.01, lr_decay = 0.1, initial_accumulator_value = 0.1 },
  NAdam = { lr = 0.01 }, RAdam = { lr = 0.01 }, Rprop = { lr = 0.01 }, Adamax = { lr = 0.01 },
  Adadelta = {}, Lion = { lr = 0.01 },
}

for kind, opts in pairs(KINDS) do
  it(kind .. " steps an added group as an optimizer of its own would", function()
    local one, other = two(), two()
    local opt = optim[kind](one[2]:parameters(), opts)
    local late = optim[kind](other[2]:parameters(), opts)
    local own
    for step = 1, 6 do
      if step == 3 then
        opt:add_param_group { params = one[1]:parameters() }
        own = optim[kind](other[1]:parameters(), opts)
      end
      backward(one, step)
      backward(other, step)
      opt:step()
      late:step()
      if own then own:step() end
    end
    for name, value in pairs(one:state_dict()) do
      assert.is_true(gp.equal(value, other:state_dict()[name]), name)
    end
  end)
end

local function named(model, prefix)
  local list = {}
  for i, entry in ipairs(model:parameters()) do
    list[i] = { name = prefix .. entry.name, param = entry.param }
  end
  return list
end

describe("an added group", function()
  it("travels in state_dict with its own count of steps", function()
    local function make()
      local model = two()
      local opt = optim.Adam(named(model[2], "2."), { lr = 0.01 })
      return model, opt
    end
    local model, opt = make()
    for step = 1, 2 do
      backward(model, step)
      opt:step()
    end
    opt:add_param_group { params = named(model[1], "1."), lr = 0.1 }
    backward(model, 3)
    opt:step()
    local other, again = make()
    again:add_param_group { params = named(other[1], "1."), lr = 0.1 }
    other:load_state_dict(model:state_dict())
    again:load_state_dict(opt:state_dict())
    for _, pair in ipairs { { model, opt }, { other, again } } do
      backward(pair[1], 4)
      pair[2]:step()
    end
    for name, value in pairs(model:state_dict()) do
      assert.is_true(gp.equal(value, other:state_dict()[name]), name)
    end
  end)

  it("is refused where none can be added", function()
    local model = two()
    local opt = optim.Adam(model[1]:parameters(), { lr = 0.1 })
    local function add(group) return function() opt:add_param_group(group) end end
    expect.fails_with("is in two groups, 1 and 2", add { params = model[1]:parameters() })
    expect.fails_with("unknown option 'rl'", add { params = {}, rl = 1 })
    expect.fails_with("there is nothing to train", add { params = {} })
    expect.fails_with("missing option 'params'", add {})
    assert.are.equal(1, #opt.groups)
    local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
    local used = optim.Adam(pipe:parameters "^1", { lr = 0.1 })
    pipe:use(used)
    expect.fails_with("expected it before pipe:use", used.add_param_group, used,
      { params = pipe:parameters "^2" })
  end)

  it("is updated in a pipeline", function()
    local model = two()
    local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss(), balance = { 1, 1 },
      devices = { "cpu:0", "cpu:0" } })
    local opt = optim.AdamW(pipe:parameters "^2", { lr = 0.1 })
    local y, before = gp.zeros { 5, 2 }, model:state_dict()
    pipe:step(x, y)
    opt:step()
    assert.is_true(gp.equal(before["1.weight"], model:state_dict()["1.weight"]))
    opt:add_param_group { params = pipe:parameters "^1" }
    opt.lr = 0.01
    pipe:step(x, y)
    opt:step()
    assert.is_false(gp.equal(before["1.weight"], model:state_dict()["1.weight"]))
  end)
end)
