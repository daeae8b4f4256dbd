-- tests/spec/replicas/sync_faults_spec.lua - replicas that normalise together fail together, and
-- go on from a checkpoint together.

local child = dofile "tests/child.lua"

local FAULTY = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
gp.seed(3)
local model = nn.Sequential {nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 6), nn.BatchNorm1d(6)}
local pipe <close> = gp.pipeline(model, {
  balance = {2, 2}, replicas = 2, chunks = 2, loss = nn.MSELoss(), sync_batch_norm = true,
})
pipe:use(optim.Adam(pipe:parameters(), {lr = 0.1}))
local x, y = gp.randn({8, 4}, {seed = 1}), gp.randn({8, 6}, {seed = 2})
local function bytes()
  local list = {}
  for name, value in pairs(pipe:state_dict()) do list[#list + 1] = name .. value:bytes() end
  table.sort(list)
  return table.concat(list)
end
local before = bytes()
local good, message = pcall(pipe.step, pipe, x, y)
print(good, good and pipe.stats.skipped or message:match "[^\n]*$")
print("unchanged", before == bytes())
if good then print("goes on", pipe:step(x, y) > 0, before ~= bytes()) end
]]

-- What a child with this fault prints, on so many ranks.
local function faulty(fault, ranks)
  local path = child.file(FAULTY)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  words[#words + 1] = path
  local out, err, code = child.run(words, { environment = { GPIPE_FAULT = fault } })
  os.remove(path)
  assert.equal(0, code, err)
  return out
end

describe("a failure on one of the replicas that normalise together", function()
  for _, ranks in ipairs { 1, 2, 4 } do
    it(("is raised with its text and leaves both as they were (%d ranks)"):format(ranks), function()
      for _, fault in ipairs { "device=2,op=F,micro=2", "device=1,op=F,micro=1",
        "device=3,op=B,micro=3", "device=0,op=B,micro=1" } do
        local out = faulty(fault .. ",step=0,action=fail", ranks)
        assert.matches("false\t.*GPIPE_FAULT asked for this failure", out)
        assert.matches("unchanged\ttrue", out)
      end
    end)

    it(("skips the update of both if its values are not finite (%d ranks)"):format(ranks),
      function()
        -- a step that is skipped moves running statistics, as without replicas
        assert.matches("true\t1\nunchanged\tfalse\ngoes on\ttrue\ttrue",
          faulty("device=2,step=0,op=B,micro=2,action=nan", ranks))
      end)
  end

  it("hands the given-up run to the watchdog if a replica hangs", function()
    local path = child.file((FAULTY:gsub("sync_batch_norm = true,",
      "sync_batch_norm = true, watchdog = 0.5,")))
    local out, err, code = child.run({ path },
      { environment = { GPIPE_FAULT = "device=2,op=F,micro=2,step=0,action=hang" } })
    os.remove(path)
    assert.equal(0, code)
    assert.matches("false\t.*no progress for 0%.%d seconds: device 2 %(cpu:2%) is in 0F2 for", out)
    assert.matches("device 0 %(cpu:0%): waiting in 0F0 for 0%.%d s: needs 0F2 from cpu:2 %(a part "
      .. "of what all replicas gather%)", err)
  end)
end)

describe("a checkpoint of replicas that normalise together", function()
  -- Train a step for each cell {ranks, stages}; return what each printed.
  local function train(cells)
    local folder, outputs = os.tmpname(), {}
    os.remove(folder)
    child.shell("mkdir " .. child.quote(folder))
    for step, cell in ipairs(cells) do
      local words = cell[1] > 1 and { "--ranks", tostring(cell[1]) } or {}
      for _, word in ipairs { "tests/support/replicas_resume.lua", folder, step, 2, 4, cell[2],
        "sync" } do
        words[#words + 1] = tostring(word)
      end
      local out, err, code = child.run(words)
      assert.equal("", err:gsub("gpipe: [^\n]*\n", ""))
      assert.equal(0, code)
      outputs[step] = out
    end
    child.shell("rm -rf " .. child.quote(folder))
    return outputs
  end

  it("goes on in another number of processes, with another cut", function()
    assert.same(train { { 1, 1 }, { 1, 1 }, { 1, 1 } }, train { { 2, 2 }, { 1, 3 }, { 2, 1 } })
  end)
end)
