-- tests/spec/cli/completion_spec.lua - what Tab offers for objects of each kind, and what `?` and
-- help print about them.

local child = dofile "tests/child.lua"
local complete = require "gpipe.shell.complete"
local documentation = require "gpipe.shell.documentation"
local gp = require "gpipe"

local nn = gp.nn

-- Returns the candidates for the end of a line.
local function offered(line)
  local list = complete(line, line:match "[%w_]*$") or {}
  table.remove(list, 1)
  return list
end

local function makes(name, value)
  rawset(_G, name, value)
  return name
end

local MADE = {}
setup(function()
  local Net = nn.class "Net"
  function Net:init()
    self.enc = nn.Linear(2, 3)
    self.head = nn.Sequential { { "fc", nn.Linear(3, 2) }, nn.ReLU() }
  end
  function Net:forward(x) return self.head(self.enc(x)) end
  local pipe = gp.pipeline(nn.Sequential { nn.Linear(2, 2) }, { loss = nn.MSELoss() })
  for name, value in pairs {
    gm = Net(), gt = gp.ones { 2 }, gpp = pipe, gopt = gp.optim.AdamW(pipe:parameters()),
    gd = gp.data.tensors(gp.ones { 2 }, gp.ones { 2 }),
    gs = gp.schedule.build("1f1b", { devices = 2, chunks = 2 }), ggp = gp,
  } do
    MADE[#MADE + 1] = makes(name, value)
  end
end)
teardown(function()
  rawget(_G, "gpp"):close()
  for _, name in ipairs(MADE) do rawset(_G, name, nil) end
end)

describe("Tab offers", function()
  for line, want in pairs {
    ["gm.en"] = "enc", ["gm.enc.wei"] = "weight", ["gm.head.f"] = "fc", ["gm.head.fc.bi"] = "bias",
    ["gm.head[1].wei"] = "weight", ["gm:summ"] = "summary", ["gm:forw"] = "forward",
    ["gt.sha"] = "shape", ["gt.dty"] = "dtype", ["gt.gra"] = "grad", ["gt:matm"] = "matmul",
    ["gpp.sta"] = "stats", ["gpp.stats.bub"] = "bubble", ["gpp:evalu"] = "evaluate",
    ["gopt.l"] = "lr", ["gopt.groups[1].weight_d"] = "weight_decay", ["gopt:st"] = "step",
    ["gd:batc"] = "batches", ["gs:simul"] = "simulate", ["ggp.nn.Line"] = "Linear",
  } do
    it(line, function()
      local found = {}
      for _, name in ipairs(offered(line)) do found[name] = true end
      assert.is_true(found[want], table.concat(offered(line), " "))
    end)
  end

  it("no metamethods, and no name twice", function()
    for _, line in ipairs { "ggp.", "gs.", "gm.", "gt.", "gpp." } do
      local seen = {}
      for _, name in ipairs(offered(line)) do
        assert.is_nil(name:find "^__")
        assert.is_nil(seen[name], name)
        seen[name] = true
      end
    end
  end)
end)

describe("help of", function()
  for name, words in pairs {
    gt = { "gpipe.Tensor", "matmul", "shape" }, gm = { "Net", "enc", "summary" },
    gpp = { "gpipe.Pipeline", "stats", "evaluate" }, gopt = { "gpipe.Optimizer", "lr", "step" },
    ["ggp.data"] = { "gp.data", "csv", "?gp.data.bytes" },
  } do
    it(name, function()
      local text = documentation.of_name(name)
      for _, word in ipairs(words) do assert.is_truthy(text:find(word, 1, true), text) end
      assert.is_nil(text:find("without documentation", 1, true))
    end)
  end

  it("what takes a table of options, with the options", function()
    assert.matches("bidirectional%? boolean", documentation.of_name "nn.LSTM")
    assert.matches("dilation%? ", documentation.of_name "nn.Conv2d")
    assert.matches("ns_steps%? integer", documentation.of_name "optim.Muon")
  end)

  it("methods of runs, sweeps and pipelines, and elements by position", function()
    for path, word in pairs {
      ["run:best"] = "checkpoints/best", ["run:log"] = "record", ["trial:report"] = "value",
      ["gp.checkpoint.load"] = "folder", ["flags.parse"] = "--help", ["t[{..}]"] = "range",
      ["pipe:step"] = "loss",
    } do
      assert.is_truthy(documentation.of_name(path):find(word, 1, true), path)
    end
  end)
end)

describe("an error at the prompt", function()
  it("names its line, in an expression too", function()
    local input = "m = nn.Linear(2, 3)\nm(gp.ones {2, 4})\n1, 2 -- two\n(function() return end)()\n"
    local out, err = child.run({ "-i" }, { input = input })
    assert.matches("stdin:2: ", err)
    assert.matches("1\t2", out)
  end)
end)
