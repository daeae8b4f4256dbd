-- tests/spec/examples/language_spec.lua - the examples that learn texts, on generated data.
local run = require "tests.support.example".run

-- Command, pattern of the last loss, and the bound that it must be below.
local EXAMPLES = {
  { "char-lm/train.lua --synthetic --steps 60", "validation loss ([%d.]+) nats", 2.8 },
  { "transformer-lm/train.lua --synthetic --steps 60", "validation loss ([%d.]+),", 3 },
  { "gpt2-squad/train.lua --synthetic --steps 30", "validation loss ([%d.]+),", 5 },
}

describe("with --synthetic", function()
  for _, example in ipairs(EXAMPLES) do
    it("examples/" .. example[1]:match "%S+", function()
      local text, code = run(example[1] .. " --quiet --length 5")
      assert.are.equal(0, code, text)
      assert.is_true(tonumber(text:match(example[2])) < example[3], text)
      assert.is_truthy(text:find "%-%-%-%- a sample\nThe[^\n]", text)
    end)
  end

  it("gpt2-squad has the balance of the tutorial and logs every ten steps", function()
    local text, code = run "gpt2-squad/train.lua --synthetic --steps 20 --length 1"
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find("step   10 of 20", 1, true), text)
    assert.is_truthy(text:find("step   20 of 20", 1, true), text)
    assert.is_nil(text:find("step   11 of 20", 1, true), text)
  end)

  it("gpt2-squad gives the same losses and sample over 1, 2 and 4 devices, and saves", function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local results = {}
    for i, balance in ipairs { "14", "7,7", "4,3,3,4" } do
      local text, code = run(("gpt2-squad/train.lua --synthetic --quiet --steps 3 --length 8 "
        .. "--balance %s --save %s"):format(balance, folder))
      assert.are.equal(0, code, text)
      results[i] = text:match "validation.*"
    end
    assert.are.equal(results[1], results[2])
    assert.are.equal(results[1], results[3])
    assert.are.equal(14, #assert(require "gpipe".models.gpt2.load(folder)))
    os.execute("rm -r " .. folder)
  end)
end)

describe("without data, a line says where to get it:", function()
  for name, from in pairs { ["char-lm"] = "char-rnn", ["transformer-lm"] = "wikitext",
    ["gpt2-squad"] = "SQuAD-explorer" } do
    it("examples/" .. name, function()
      local text, code = run(name .. "/train.lua")
      assert.are.equal(1, code, text)
      assert.is_truthy(text:find(from, 1, true), text)
      assert.is_truthy(text:find("or try --synthetic", 1, true), text)
      assert.are.equal(1, select(2, text:gsub("\n", "")), text)
    end)
  end
end)
