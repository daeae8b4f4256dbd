-- tests/spec/sweep/ranks_spec.lua - sweeps whose trials have ranks: rank 0 keeps the file, and all
-- ranks run the same trials.

local child = dofile "tests/child.lua"

-- arg[1]: the folder, arg[2]: ranks of a trial, arg[3]: processes at once.
local SWEEP = [[
local gp = require "gpipe"
local nn = gp.nn
local s = gp.sweep {
  name = "ranks", dir = arg[1], trials = 4, quiet = true, seed = 3, ranks = tonumber(arg[2]),
  parallel = tonumber(arg[3]), space = { lr = gp.sweep.log(1e-3, 1e-1) }, minimize = "loss",
  stop = arg[4],
}
s:run(function(params, trial)
  gp.seed(1)
  local model = nn.Sequential { nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4) }
  local pipe <close> = gp.pipeline(model, { devices = 2, chunks = 2, loss = nn.MSELoss() })
  pipe:use(gp.optim.SGD(pipe:parameters(), { lr = params.lr }))
  local x, y, loss = gp.randn { 8, 8 }, gp.randn { 8, 4 }, nil
  for step = 1, 6 do
    loss = pipe:step(x, y)
    if trial:report(step, loss) then break end
    if trial.number == 3 and trial.attempt == 1 and os.getenv "KILL" and gp.rank() == 1 then
      os.execute "kill -9 $PPID"
    end
    if trial.number == 2 and step == 3 and os.getenv "FAIL" then error "trial 2 is bad" end
    local alone = os.getenv "FAIL_ALONE"
    if trial.number == 2 and step == 3 and alone and gp.rank() == tonumber(alone) then
      error "trial 2 is bad here"
    end
  end
  return { loss = loss, ranks = gp.ranks(), seen = #gp.all_gather(trial.number) }
end)
for _, t in ipairs(s.trials) do
  print(t.number, t.state, ("%.17g"):format(t.value or 0 / 0), t.values and t.values.ranks,
    t.values and t.values.seen)
  if t.error then print((t.error:match "^[^\n]*")) end
end]]

local script = child.file(SWEEP)

local function run(options)
  local folder = os.tmpname()
  os.remove(folder)
  local words = {}
  for _, word in ipairs(options) do words[#words + 1] = word end
  table.move({ script, folder, options.ranks or "1", options.parallel or "1", options.stop }, 1, 5,
    #words + 1, words)
  local out, err, code = child.run(words, { environment = options.environment })
  child.shell("rm -rf " .. child.quote(folder))
  return out, err, code
end

-- The values of the trials, without how many ranks they had.
local function values_of(out)
  local list = {}
  for number, state, value in out:gmatch "(%d+)\t(%a+)\t(%S+)" do
    list[#list + 1] = number .. " " .. state .. " " .. value
  end
  return list
end

describe("a sweep", function()
  teardown(function() os.remove(script) end)
  local alone = values_of(run {})

  it("runs each trial as a job of its ranks, with the values of one process", function()
    assert.equal(4, #alone)
    local out, err, code = run { ranks = "2" }
    assert.equal("", err)
    assert.equal(0, code)
    assert.same(alone, values_of(out))
    assert.truthy(out:find "1\tcomplete\t%S+\t2\t2\n")
  end)

  it("runs several such jobs at once", function()
    local out, err = run { ranks = "2", parallel = "2" }
    assert.equal("", err)
    assert.same(alone, values_of(out))
  end)

  it("within a job runs its trials on all ranks together", function()
    local out, err = run { "--ranks", "3" }
    assert.equal("", err)
    assert.same(alone, values_of(out))
    assert.truthy(out:find "4\tcomplete\t%S+\t3\t3\n")
  end)

  it("goes on after a trial that fails on all ranks", function()
    local out, err = run { ranks = "2", environment = { FAIL = "1" } }
    assert.equal("", err)
    local values = values_of(out)
    assert.equal(4, #values)
    assert.truthy(values[2]:find "^2 failed")
    assert.equal(alone[3], values[3])
  end)

  for _, rank in ipairs { "0", "1" } do
    it("goes on in a job after a trial that fails on rank " .. rank .. " alone", function()
      local out, err, code = run { "--ranks", "2", environment = { FAIL_ALONE = rank } }
      assert.equal("", err)
      assert.equal(0, code)
      local values = values_of(out)
      assert.equal(4, #values)
      assert.truthy(values[2]:find "^2 failed")
      assert.matches((rank == "1" and "\nrank 1: " or "\n") .. "[^ ]* trial 2 is bad here\n", out)
      assert.equal(alone[3], values[3])
      assert.equal(alone[4], values[4])
    end)
  end

  it("runs a trial again whose rank was killed", function()
    local out, err = run { ranks = "2", environment = { KILL = "1" } }
    assert.equal("", err)
    assert.same(alone, values_of(out))
  end)

  it("stops a trial on all ranks when its rule says so", function()
    local out, err = run { ranks = "2", stop = "median" }
    assert.equal("", err)
    assert.equal(4, #values_of(out))
  end)
end)
