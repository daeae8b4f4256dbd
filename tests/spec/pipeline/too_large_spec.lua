-- tests/spec/pipeline/too_large_spec.lua - parameters that a machine cannot hold, and names that no
-- checkpoint could hold, are refused when the pipeline is made.

local errors = require "gpipe.errors"
local fails = require("tests.support.expect").failure
local gp = require "gpipe"
local nn = gp.nn

-- Returns a side whose parameters and gradients have more bytes than the machine.
local function side_of_too_large()
  return math.ceil(math.sqrt(require("gpipe.core").machine().memory / 8)) + 1024
end

describe("parameters that do not fit", function()
  it("are refused with layer, stage, sizes in units, and what would help", function()
    local n = side_of_too_large()
    local model = nn.Sequential { nn.Linear(4, 8), nn.Linear(n, n), nn.Linear(8, 4) }
    local good, text = pcall(gp.pipeline, model, { balance = { 2, 1 }, loss = nn.MSELoss() })
    assert.is_false(good)
    assert.equal("memory", errors.code_of(text))
    for _, words in ipairs { "gp.pipeline: parameters and gradients take ", "iB of the machine's memory",
      "stage 0 (layers 1-2) ", ("of that layer 2 (Linear %d -> %d)"):format(n, n),
      "more stages do not help" } do
      assert.is_truthy(text:find(words, 1, true), text)
    end
  end)

  it("are counted once where layers share them", function()
    local n = math.ceil(side_of_too_large() * 0.8) -- fits once, but not twice
    local one, other = nn.Linear(n, n, { bias = false }), nn.Linear(n, n, { bias = false })
    other.weight = one.weight
    local parameters = require "gpipe.pipeline.plan.parameters"
    local made = gp.schedule.build("1f1b", { devices = 1, chunks = 1 })
    local devices = { { kind = "cpu", memory = "cpu" } }
    parameters.check_memory(nn.Sequential { one, other }, { 2 }, made, devices)
    local text = fails(parameters.check_memory, nn.Sequential { one, nn.Linear(n, n) }, { 2 }, made,
      devices)
    assert.matches("parameters and gradients take", text)
  end)

  it("do not hinder a dry run", function()
    local n = side_of_too_large()
    local model = nn.Sequential { nn.Linear(n, n) }
    local dry = gp.dry_run(model, { loss = nn.MSELoss(), sample = { gp.zeros { 1, n }, gp.zeros { 1,
      n } } })
    assert.matches("beside parameters, their gradients and the optimizer's state", tostring(dry))
  end)
end)

it("a name that no checkpoint could hold is refused when the pipeline is made", function()
  local Long = nn.class "Long"
  local name = ("x"):rep(5000)
  function Long:init() self[name] = nn.Parameter({ 2 }, 0) end
  function Long:forward(x) return x + self[name] end
  local text = fails(gp.pipeline, nn.Sequential { Long() }, { loss = nn.MSELoss() })
  assert.matches("has 5002 bytes, expected at most 4096", text)
  assert.is_true(#text < 300)
end)

it("a balance that is not a list is refused with what it is", function()
  for _, balance in ipairs { "auto", 2, true } do
    local text = fails(gp.pipeline, nn.Sequential { nn.Linear(2, 2) }, { balance = balance,
      loss = nn.MSELoss() })
    assert.matches("expected a list of layers per stage, such as {2, 1} %(without it", text)
  end
end)
