-- tests/spec/ranks/partings_spec.lua - ranks that make different calls: all end within seconds with
-- the same words, which name what each script has called, and where.

local child = dofile "tests/child.lua"
local seconds = require("gpipe.core").seconds

-- Line 10 is rank 0's call, line 11 rank 1's.
local SCRIPT = [[
local gp = require "gpipe"
local nn, r, folder = gp.nn, gp.rank(), arg[1]
local model = nn.Sequential { nn.Linear(3, 2), nn.Linear(2, 2) }
local pipe = gp.pipeline(model, { loss = nn.MSELoss(), watchdog = 20 })
local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
local function batch(rows) return gp.ones { rows, 3 }, gp.ones { rows, 2 } end
pipe:step(batch(4)) opt:step() pipe:evaluate(batch(4)) pipe:forward((batch(4)))
local function part()
  if r == 0 then
    %s
  else %s end
end
local good, message = pcall(part)
print(good, ({ message:gsub("^[^:]*:%%d+: ", "") })[1])]]

local CALLS = { -- name, as others are told; the call
  { "pipe:step", "pipe:step(batch(4))" },
  { "pipe:evaluate", "pipe:evaluate(batch(4))" },
  { "pipe:forward", "pipe:forward((batch(4)))" },
  { "pipe:step", "pipe:step(batch(6))" },
  { "opt:step", "opt:step()" },
  { "pipe:evaluate", "pipe:evaluate(batch(8))" },
  { "gp.optim.clip_grad_norm", "gp.optim.clip_grad_norm(pipe:parameters(), 1)" },
  { "pipe:state_dict", "pipe:state_dict()" },
  { "gp.checkpoint.save", "gp.checkpoint.save(folder, { pipe = pipe, opt = opt })" },
  { "pipe:memory", "pipe:memory()" },
  { "gp.pipeline", "gp.pipeline(nn.Sequential { nn.Linear(3, 2), nn.Linear(2, 2) }, {})" },
  { "gp.plan", "gp.plan(model, gp.ones { 4, 3 }, { devices = { '0/cpu:0', '1/cpu:0' } })" },
  { "gp.profile", "gp.profile(model, gp.ones { 4, 3 })" },
  { "gp.barrier", "gp.barrier()" },
  { "gp.all_gather", "gp.all_gather(1)" },
}

-- The lines that the ranks print, without their labels, and how long it took.
local function part(a, b)
  local script = child.file(SCRIPT:format(a, b))
  local folder, begin = os.tmpname(), seconds()
  os.remove(folder)
  local out, err, code = child.run { "--ranks", "2", "--log-ranks", script, folder }
  local took = seconds() - begin
  os.execute(("rm -rf '%s'"):format(folder))
  os.remove(script)
  assert.equal(0, code, err)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line:gsub("^%[1%] ", "") .. "" end
  return lines, took, script:match "[^/]*$"
end

describe("two ranks that part", function()
  for i, a in ipairs(CALLS) do
    local b = CALLS[i + 1] or CALLS[1]
    it(("hear of %s and %s"):format(a[2]:match "^[^(]*", b[2]), function()
      local lines, took, script = part(a[2], b[2])
      local text = ("false\trank 0 is in '%s' at %s:10, rank 1 in '%s' at %s:11: expected the same "
        .. "calls in the same order on all ranks"):format(a[1], script, b[1], script)
      assert.same({ text, text }, lines)
      assert.is_true(took < 4)
    end)
  end

  it("are told the rows where both have called the same", function()
    local lines, _, script = part("pipe:step(batch(4))", "pipe:step(batch(7))")
    local text = ("false\trank 0 is in 'pipe:step' at %s:10 (step of 4 rows), rank 1 in "
      .. "'pipe:step' at %s:11 (plan for new shapes): expected the same calls in the same order on "
      .. "all ranks"):format(script, script)
    assert.same({ text, text }, lines)
  end)

  it("are told the kinds where both need a plan", function()
    local lines = part("pipe:step(batch(6))", "pipe:evaluate(batch(6))")
    local text = "false\tplan: rank 0 plans for 'step', rank 1 for 'evaluate': expected the same "
      .. "calls in the same order on all ranks"
    assert.same({ text, text }, lines)
  end)
end)

describe("three ranks of which one parts", function()
  it("all name that one and rank 0", function()
    local script = child.file [[
      local gp = require "gpipe"
      gp.barrier()
      local good, message = pcall(function()
        if gp.rank() == 1 then gp.all_gather(1) else gp.barrier() end
      end)
      print(good, message:match "rank.*")]]
    local out = child.run { "--ranks", "3", "--log-ranks", script }
    os.remove(script)
    local name = script:match "[^/]*$"
    local _, count = out:gsub(("rank 0 is in 'gp.barrier' at %s:4, rank 1 in 'gp.all_gather' at "
      .. "%s:4: "):format(name, name):gsub("[%.%-]", "%%%0"), "")
    assert.equal(3, count, out)
  end)
end)

describe("a rank that ends before it has joined the job", function()
  local function early(how, who)
    local script = child.file(([[
      local gp = require "gpipe"
      if gp.rank() == %d then %s end
      gp.barrier()]]):format(who, how))
    local begin = seconds()
    local _, err, code = child.run { "--ranks", "3", "--log-ranks", script }
    os.remove(script)
    assert.is_true(seconds() - begin < 4, err)
    return err, code
  end

  for who = 0, 1 do
    it(("is named with its code, its signal, or what was wrong: rank %d"):format(who), function()
      local err, code = early("os.exit(3)", who)
      local _, count = err:gsub(("ranks: rank %d has ended with exit code 3 before it had joined the "
        .. "job, expected 3 ranks"):format(who), "")
      assert.equal(2, count, err)
      assert.equal(3, code)
      err, code = early("return", who)
      assert.truthy(err:find(("rank %d has ended with exit code 0 before"):format(who), 1, true), err)
      assert.equal(1, code)
      err, code = early("os.execute 'kill -9 $PPID'", who)
      _, count = err:gsub(("rank %d was ended by signal 9 %%(Killed%%) before"):format(who), "")
      assert.equal(2, count, err)
      assert.equal(137, code)
      err = early("error 'too early'", who)
      _, count = err:gsub(("gp.barrier: rank %d: [^\n]*too early"):format(who), "")
      assert.equal(2, count, err)
    end)
  end
end)

describe("a launcher that does not label lines", function()
  it("leaves it to the rank to say which one it is", function()
    local script = child.file [[error "too early"]]
    local _, err = child.run({ script }, { environment = { GPIPE_JOB_KEY = "k", RANK = "1",
      WORLD_SIZE = "2", LOCAL_RANK = "1", LOCAL_WORLD_SIZE = "1", MASTER_ADDR = "127.0.0.1",
      MASTER_PORT = "19", GPIPE_JOIN_SECONDS = "1" } })
    os.remove(script)
    assert.truthy(err:find("gpipe-lua: rank 1 on " .. require("gpipe.ranks").host() .. ": ", 1, true),
      err)
    assert.truthy(err:find("too early", 1, true))
  end)
end)
