-- tests/spec/ranks/loop_parts_spec.lua - the parts of gp.train and all kinds of optimizers give the
-- bits of one process when their parameters lie with several.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local function check(what, replicas, ranks)
  local words = { "tests/support/ranks_parts.lua", what, tostring(replicas) }
  local whole, _, whole_code = child.run(words)
  assert.equal(0, whole_code)
  local shared, err, code = jobs.run("unix", ranks, words)
  assert.equal("", (err:gsub("gpipe: [^\n]*\n", "")))
  assert.equal(0, code)
  assert.truthy(#whole > 0)
  assert.equal(whole, shared)
end

-- Returns what a run of tests/support/ranks_accumulate.lua prints, after a crash in a round.
local function accumulated(ranks)
  local folder = os.tmpname()
  os.remove(folder)
  local function run(...)
    local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
    for _, word in ipairs { "tests/support/ranks_accumulate.lua", folder, ... } do
      words[#words + 1] = word
    end
    return child.run(words)
  end
  local _, err = run "8" -- the last checkpoint is that of step 6, two mini-batches into a round
  assert.truthy(err:find("stopped here", 1, true))
  local out, _, code = run()
  assert.equal(0, code)
  child.shell("rm -rf " .. child.quote(folder))
  return out
end

describe("over ranks", function()
  for _, what in ipairs { "ema", "accumulate", "events" } do
    it(("gp.train.%s has the results of one process"):format(what), function() check(what, 1, 2) end)

    it(("gp.train.%s has them with replicas"):format(what), function() check(what, 2, 2) end)
  end

  for _, what in ipairs { "AdamW", "Adafactor", "Muon", "LBFGS" } do
    it(what .. " updates, saves and goes on with the bits of one process", function()
      check(what, 1, 2)
    end)

    it(what .. " does so with two replicas on three ranks", function() check(what, 2, 3) end)
  end

  it("Adafactor steps where a rank has no parameters", function() check("bare", 1, 2) end)

  it("a run goes on in the middle of a round of gp.train.accumulate with the same bits", function()
    local whole = accumulated(1)
    assert.truthy(whole:find "4.bias")
    assert.equal(whole, accumulated(2))
  end)
end)

describe("gp.checkpoint.save", function()
  it("refuses optim.LBFGS as 'opt' and says where it goes", function()
    local gp = require "gpipe"
    local model = gp.nn.Sequential { gp.nn.Linear(2, 2) }
    local good, message = pcall(gp.checkpoint.save, os.tmpname(), {
      model = model, opt = gp.optim.LBFGS(model:parameters()),
    })
    assert.falsy(good)
    assert.truthy(message:find("option 'opt' is a gpipe.LBFGS", 1, true))
  end)
end)
