-- tests/spec/ranks/prompt_spec.lua - the interactive mode of a job: what is typed at rank 0 runs on
-- all ranks.

local child = dofile "tests/child.lua"

-- Type lines at rank 0 of a job; returns what it prints, without the tracebacks of errors.
local function type_lines(count, lines)
  local out, err, code = child.run({ "--ranks", tostring(count), "-i" },
    { input = table.concat(lines, "\n") .. "\n" })
  assert.equal(0, code, err)
  return out, err
end

local PIPE = [[pipe = gp.pipeline(nn.Sequential {nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)}, ]]
  .. [[{loss = nn.MSELoss(), chunks = 2})]]
local STEPS = {
  "gp.seed(1)", PIPE, "x, y = gp.randn({8, 4}, {seed = 1}), gp.randn({8, 2}, {seed = 2})",
  "local _ = pipe:use(gp.optim.SGD(pipe:parameters(), {lr = 0.1}))",
  "for _ = 1, 3 do print(pipe:step(x, y)) end",
}

describe("the interactive mode of a job", function()
  it("runs what is typed on all ranks, and shows what rank 0 prints", function()
    local out = type_lines(3, { "gp.rank(), gp.ranks()", "local a = 5",
      "gp.all_gather(gp.rank() + a)", "function f()", "  return _2", "end",
      "gp.all_gather(f())", "_" })
    assert.equal("0\t3\n{5, 6, 7}\n{3, 3, 3}\n{3, 3, 3}\n", out)
  end)

  it("trains a pipeline over the ranks as one process does", function()
    local over = type_lines(2, STEPS)
    local alone = type_lines(1, STEPS)
    assert.truthy(#over > 20)
    assert.equal(alone, over)
  end)

  it("goes on after an error on one rank or on all, and shows it", function()
    local out, err = type_lines(2, {
      "if gp.rank() == 1 then error 'only at one' end",
      "if gp.rank() == 0 then error 'only at zero' end gp.barrier()",
      "nosuch.x",
      "for _ = 1, 3 do pcall(gp.barrier) end",
      "if gp.rank() == 1 then gp.barrier() end",
      "gp.all_gather(gp.rank())",
    })
    assert.equal("{0, 1}\n", out)
    assert.truthy(err:find("[1] stdin:1: only at one", 1, true), err)
    assert.truthy(err:find("stdin:2: only at zero", 1, true), err)
    assert.truthy(err:find("stdin:3: attempt to index a nil value", 1, true), err)
    assert.truthy(err:find("rank 0 is in 'the prompt', rank 1 in 'gp.barrier' at stdin:5", 1, true), err)
  end)

  it("ends on all ranks with rank 0, also where nothing was run", function()
    assert.equal("", type_lines(2, { "exit" }))
    assert.equal("", type_lines(2, {}))
    assert.equal("1\n", type_lines(2, { "?gp.seed", "print(1)", "exit" }):match "1\n$")
  end)

  it("goes on from a script", function()
    local script = child.file "state = {gp = require 'gpipe'} number = state.gp.rank() + 1"
    local out, err = child.run({ "--ranks", "2", "-i", script },
      { input = "gp.all_gather(number)\n" })
    os.remove(script)
    assert.equal("{1, 2}\n", out, err)
  end)

  it("ends with an error where rank 0 is killed", function()
    local _, err, code = child.run({ "--ranks", "2", "-i" },
      { input = "gp.barrier()\n$ kill -9 $PPID\n" })
    assert.equal(137, code)
    assert.truthy(err:find("rank 0 was ended by signal 9", 1, true), err)
  end)
end)

describe("gpipe-lua --ranks without a script", function()
  it("runs the words of -e on all ranks", function()
    local out, err, code = child.run { "--ranks", "2", "-e",
      "local gp = require 'gpipe' local all = gp.all_gather(gp.rank()) print(#all, all[2])" }
    assert.equal("2\t1\n", out, err)
    assert.equal(0, code)
  end)
end)
