-- tests/spec/nn/golden_losses_spec.lua - losses agree with those that PyTorch computed
-- (tests/golden/losses.py), eagerly and in pipelines.

local gp = require "gpipe"
local golden = require "tests.golden.losses"
local expect = require "tests.support.expect"

local nn = gp.nn

local function tensor(given)
  return gp.tensor(given[2], { dtype = given[3] }):reshape(given[1])
end

local function floats(given) return given[3] == "f64" end

local function close(have, want, what)
  local flat = gp.tensor(want, { dtype = "f64" })
  local near = have:detach():reshape(-1):allclose(flat, { rtol = 1e-9, atol = 1e-12 })
  assert.is_true(near, what .. ": " .. tostring(have) .. " against " .. tostring(flat))
end

for i, case in ipairs(golden) do
  local name, opts, inputs, want, grads = table.unpack(case)
  it(("%s (%d) agrees with PyTorch's"):format(name, i), function()
    local made, leaves = {}, {}
    for k, given in ipairs(inputs) do
      made[k] = tensor(given)
      if floats(given) then
        made[k].requires_grad = true
        leaves[#leaves + 1] = made[k]
      end
    end
    -- PyTorch's gradient by logarithms holds only right behind a log_softmax, and so does ours.
    if name == "CTCLoss" then made[1] = made[1]:log_softmax(-1) end
    local loss = nn[name](opts)(table.unpack(made))
    close(loss, want, "value")
    loss:sum():backward()
    for k, grad in ipairs(grads) do close(leaves[k].grad, grad, "gradient " .. k) end
  end)
end


describe("in a pipeline", function()
  -- The first argument of the loss goes through a layer that changes nothing.
  local Same = nn.class "Same"
  function Same:init(dtype) self.one = nn.Parameter({ 1 }, 1, { dtype = dtype }) end
  function Same:forward(x, ...) return x * self.one, ... end

  for i, case in ipairs(golden) do
    local name, opts, inputs, want = table.unpack(case)
    local is_flat = name == "CTCLoss" and #inputs[2][1] == 1
    if opts.reduction ~= "none" and not is_flat and want[1] < math.huge then
      it(("%s (%d) is the same, in two micro-batches"):format(name, i), function()
        local made = {}
        for k, given in ipairs(inputs) do made[k] = tensor(given) end
        local x, y = made[1], { table.unpack(made, 2) }
        if name == "GaussianNLLLoss" then x, y = { made[1], made[3] }, made[2] end
        local last = name == "CTCLoss" and nn.LogSoftmax() or nn.Identity()
        local pipe <close> = gp.pipeline(nn.Sequential { Same "f64", last }, {
          loss = nn[name](opts), chunks = 2, balance = { 1, 1 }, devices = { "cpu:0", "cpu:0" },
        })
        assert.is_true(math.abs(pipe:step(x, y) - want[1]) < 1e-9)
      end)
    end
  end
end)

describe("wrong calls of losses", function()
  local x, ids = gp.ones { 2, 3 }, gp.tensor({ 0, 3 }, { dtype = "i64" })
  local function of(list) return gp.tensor(list, { dtype = "i64" }) end
  local logs = gp.zeros { 2, 4, 3 }
  local labels = of { { 1, 2 }, { 1, 1 } }
  for text, call in pairs {
    ["ids are 0 to 3, expected 0 to 2"] = function() nn.MultiMarginLoss()(x, ids) end,
    ["target is f32"] = function() nn.MultiMarginLoss()(x, gp.ones { 2 }) end,
    ["target is 2x3, expected 2"] = function() nn.MultiMarginLoss()(x, gp.ones { 2, 3 }) end,
    ["option 'p' is 3, expected 1 or 2"] = function() nn.MultiMarginLoss { p = 3 } end,
    ["weights of 2 classes, expected 3"] = function()
      nn.MultiMarginLoss { weight = { 1, 2 } }(x, of { 0, 1 })
    end,
    ["unknown option 'weight'"] = function() nn.MultiLabelMarginLoss { weight = { 1 } } end,
    ["target is 2, expected 2x3"] = function() nn.MultiLabelSoftMarginLoss()(x, gp.ones { 2 }) end,
    ["the variance has numbers below 0"] = function() nn.GaussianNLLLoss()(x, x, -x) end,
    ["the variance is 3x2, expected 2x3"] = function()
      nn.GaussianNLLLoss()(x, x, gp.ones { 3, 2 })
    end,
    ["input_lengths are 4 to 5, expected 0 to 4"] = function()
      nn.CTCLoss()(logs, labels, { 4, 5 }, { 2, 2 })
    end,
    ["target_lengths are i64 1, expected 2 integers"] = function()
      nn.CTCLoss()(logs, labels, { 4, 4 }, { 2 })
    end,
    ["target_lengths add up to 3, expected 4"] = function()
      nn.CTCLoss()(logs, of { 1, 2, 1, 1 }, { 4, 4 }, { 1, 2 })
    end,
    ["labels are 1 to 3, expected 0 to 2"] = function()
      nn.CTCLoss()(logs, of { { 1, 3 }, { 1, 1 } }, { 4, 4 }, { 2, 2 })
    end,
    ["blank is 3, expected 0 to 2"] = function()
      nn.CTCLoss { blank = 3 }(logs, labels, { 4, 4 }, { 2, 2 })
    end,
    ["log_probs are 2x3"] = function() nn.CTCLoss()(x, labels, { 4, 4 }, { 2, 2 }) end,
  } do
    it("say: " .. text, function() expect.fails_with(text, call) end)
  end
end)
