-- tests/spec/examples/experiments_spec.lua - the published experiments at their smallest: each
-- prints its table, and figures that can be exact are exact.
local run = require "tests.support.example".run

-- Returns the numbers of the table's row that begins with `name`.
local function row(text, name)
  local line = text:match("\n(" .. name:gsub("%p", "%%%0") .. " [^\n]*)")
  local numbers = {}
  for word in line:sub(#name + 1):gmatch "%S+" do numbers[#numbers + 1] = tonumber(word) end
  return numbers
end

local function table_of(name, rows)
  local text, code = run(("experiments/run.lua --scale tiny --only %s --rows %d"):format(name, rows))
  assert.are.equal(0, code, text)
  return text
end

describe("examples/experiments", function()
  it("measures and simulates ResNet-101", function()
    local text = table_of("resnet101-speed", 2)
    assert.are.same({ 1, 1, 95.862, 1, 1 }, table.move(row(text, "baseline"), 1, 5, 1, {}))
    for _, figure in ipairs(row(text, "pipeline-1")) do assert.is_true(figure > 0) end
  end)

  it("measures and simulates AmoebaNet-D", function()
    local text = table_of("amoebanet-speed", 1)
    assert.are.same({ 2, 1, 26.733, 1 }, table.move(row(text, "n2m1"), 1, 4, 1, {}))
  end)

  it("measures and simulates U-Net", function()
    local text = table_of("unet-speed", 3)
    assert.are.equal(35.502, row(text, "pipeline-2")[3])
  end)

  it("plans AmoebaNet-D at its published size", function()
    local text = table_of("amoebanet-memory", 2)
    local figures = row(text, "pipeline-1  (18, 416)")
    assert.are.same({ 1, 319.0, 3.57 }, table.move(figures, 1, 3, 1, {}))
    assert.are.equal(figures[3], figures[6]) -- the model's size is the published one
  end)

  it("plans U-Net at its published size", function()
    local text = table_of("unet-memory", 1)
    assert.are.equal(362.2, row(text, "baseline  (6, 72)")[2])
  end)

  it("takes the timeline apart; skips by hand have the same bits", function()
    local text = table_of("unet-ablation", 1)
    assert.is_truthy(text:find("the same loss to the bit", 1, true), text)
  end)

  it("trains with batch norm over micro-batches", function()
    local text = table_of("resnet101-accuracy", 1)
    assert.are.equal(4, select(2, text:gsub("[%d.]+ +%-  +[%d.]+\n", "")), text)
  end)

  it("refuses a size and a name that it does not know", function()
    local text, code = run "experiments/run.lua --scale huge"
    assert.are.equal(2, code)
    assert.is_truthy(text:find("--scale is 'huge', expected tiny, small or full", 1, true), text)
    text, code = run "experiments/run.lua --only unet"
    assert.are.equal(2, code)
    assert.is_truthy(text:find("--only is 'unet', expected one of resnet101-accuracy", 1, true))
  end)
end)
