-- tests/spec/tensor/names_spec.lua - unknown names are errors at the script's line, with the name
-- that was meant where habit or spelling tells it.

local gp = require "gpipe"
local errors = require "gpipe.errors"
local nn = gp.nn
local failure = dofile("tests/support/expect.lua").failure

local t = gp.ones { 2, 3 }

-- Returns what an error suggests, or nil.
local function meant(f) return failure(f):match "did you mean '([^']+)'" end

describe("a name from another library", function()
  local cases = {
    { "transpose", function() return t:swapaxes(1, 2) end },
    { "expand", function() return t:broadcast_to { 2, 3 } end },
    { "reshape", function() return t:resize() end },
    { "matmul", function() return t:linear(t) end },
    { "totable", function() return t:tolist() end },
    { "clone", function() return t:copy() end },
    { "concat", function() return gp.concatenate { t, t } end },
    { "seed", function() return gp.manual_seed(1) end },
    { "f32", function() return gp.zeros({ 2 }, { dtype = "float32" }) end },
    { "i64", function() return t:to "long" end },
  }
  for _, case in ipairs(cases) do
    it("leads to " .. case[1], function()
      assert.equal(case[1], meant(case[2]))
    end)
  end

  it("is answered only where the name that is meant exists", function()
    for word, names in pairs(require "gpipe.habits") do
      for _, name in ipairs(names) do assert.equal(name, errors.suggest(word, { "zzz", name })) end
      assert.is_nil(errors.suggest(word .. "zzzz", names))
    end
  end)
end)

describe("a name for which gpipe has another way", function()
  local ways = require "gpipe.tensor.elsewhere"

  it("is not a name of gpipe, and what the error names exists", function()
    for word, way in pairs(ways) do
      assert.matches(way, failure(function() return t[word] end), 1, true)
      assert.is_nil(rawget(gp, word), word)
      for name in way:gmatch "%f[%w]t:([%w_]+)" do assert.is_function(t[name], word) end
      for name in way:gmatch "gp%.([%w_]+)" do assert.truthy(gp[name], word) end
    end
  end)

  it("is answered for functions and for methods", function()
    assert.matches("no Fourier transforms", failure(function() return gp.fft end))
    assert.matches("a %* b", failure(function() return t:cmul(t) end))
  end)
end)

describe("an option that an op does not have", function()
  it("is an error that names those it has", function()
    local text = failure(function() return t:softplus { bta = 2 } end)
    assert.matches("names_spec%.lua:%d+: softplus: ", text)
    for _, name in ipairs { "bta", "beta", "threshold" } do assert.matches(name, text) end
    assert.matches("none", failure(function() return t:exp { base = 2 } end))
  end)
end)

describe("a name that is not there", function()
  local cases = {
    { "gp.stak", function() return gp.stak end },
    { "gp.nothing_like_it", function() return gp.nothing_like_it end },
    { "optim.SparseAdam", function() return gp.optim.SparseAdam end },
    { "optim.schedule.lambda", function() return gp.optim.schedule.lambda end },
    { "data:pipe", function() return gp.data.tensors(t, t):pipe(print) end },
    { "gp.data.imagenet", function() return gp.data.imagenet end },
    { "gp.schedule.make", function() return gp.schedule.make end },
    { "nn.init.glorot", function() return nn.init.glorot end },
  }
  for _, case in ipairs(cases) do
    it("is an error at the script's line: " .. case[1], function()
      local text = failure(case[2])
      assert.matches("names_spec%.lua:%d+: ", text)
      assert.matches("there is no '", text)
    end)
  end

  it("is suggested by its beginning, and not by chance", function()
    assert.equal("MSELoss", meant(function() return nn.MSE end))
    assert.equal("CrossEntropyLoss", meant(function() return nn.CrossEntropy end))
    assert.is_nil(meant(function() return t:cholesky() end))
    assert.is_nil(meant(function() return t:inverse() end))
  end)
end)

describe("tables of names", function()
  it("list them when they are printed", function()
    for _, table_of_names in ipairs { gp, nn, gp.optim, gp.data, nn.init } do
      for name in pairs(table_of_names) do
        assert.is_truthy(tostring(table_of_names):find(name, 1, true), name)
      end
    end
    assert.is_truthy(tostring(gp):find("pipeline", 1, true))
  end)
end)

describe("a method of PyTorch's modules", function()
  for word, way in pairs(require "gpipe.elsewhere") do
    it("that gpipe lacks is answered with what does the same: " .. word, function()
      local model = nn.Sequential { nn.Linear(2, 2) }
      local text = failure(function() return model[word](model) end)
      assert.is_truthy(text:find("there is no '" .. word .. "'", 1, true), text)
      assert.is_truthy(text:find(way, 1, true), text)
    end)
  end

  it("is answered for pipelines too", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(2, 2) }, { loss = nn.MSELoss() })
    assert.matches("option of gp.pipeline", failure(function() return pipe:cuda() end))
    local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
    assert.equal("groups", meant(function() return opt.param_groups end))
  end)

  it("may be one of a user's class", function()
    local Own = nn.class("Own")
    assert.is_nil(Own().cuda)
    function Own.to(_, x) return x end
    assert.equal(3, Own():to(3))
  end)
end)
