-- tests/spec/pipeline/transparency_rows_spec.lua - models whose graph depends on the number of
-- rows.
--
-- Eleven rows in four pieces give pieces of three and of two rows. Where forward branches on that,
-- the larger pieces send other values across the cuts than the smaller ones.
local gp = require "gpipe"
local nn = gp.nn

local function build()
  gp.seed(3)
  local Fork, Join = nn.class("Fork"), nn.class("Join")
  local kept
  function Fork.forward(_, v)
    kept = v
    return v * 2
  end
  function Join.forward(_, v) return v.shape[1] > 2 and v + kept or v end
  return nn.Sequential {
    nn.Linear(4, 4), Fork(), Join(), nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 3),
  }
end

local x, y = gp.randn({ 11, 4 }, { seed = 1 }), gp.zeros({ 11 }, { dtype = "i64" })

-- Returns loss and first gradient after three steps.
local function train(opts)
  opts.chunks, opts.loss = 4, nn.CrossEntropyLoss()
  local pipe <close> = gp.pipeline(build(), opts)
  local loss
  for _ = 1, 3 do loss = pipe:step(x, y) end
  return loss, pipe:parameters()[1].grad:clone()
end

describe("a model that branches on the number of rows", function()
  local loss, grad = train { balance = { 6 } }
  for _, balance in ipairs { { 2, 4 }, { 1, 1, 1, 3 }, { 1, 1, 1, 1, 1, 1 } } do
    for _, schedule in ipairs { "naive", "gpipe", "1f1b" } do
      for _, checkpoint in ipairs { "always", "never" } do
        it(("has the bits of one stage over %d stages, %s, %s"):format(#balance, schedule,
          checkpoint), function()
          local other, its = train { balance = balance, schedule = schedule,
            checkpoint = checkpoint }
          assert.equal(loss, other)
          assert.is_true(gp.equal(grad, its))
        end)
      end
    end
  end
end)
