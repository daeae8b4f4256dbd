-- tests/spec/ranks/launcher_spec.lua - gpipe-lua --ranks N: what it starts, shows and returns.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local function run(words, text)
  local script = child.file(text)
  words[#words + 1] = script
  words[#words + 1] = "an argument"
  local out, err, code = child.run(words)
  os.remove(script)
  return out, err, code
end

local OTHERS = {
  { "mpirun of Open MPI", { OMPI_COMM_WORLD_RANK = "1", OMPI_COMM_WORLD_SIZE = "2" } },
  { "mpiexec of MPICH", { PMI_RANK = "1", PMI_SIZE = "2" } },
  { "torchrun", { RANK = "1", WORLD_SIZE = "2", MASTER_ADDR = "localhost", MASTER_PORT = "1" } },
  { "srun of SLURM", { SLURM_PROCID = "1", SLURM_STEP_ID = "0", SLURM_STEP_NUM_TASKS = "2" } },
}

local function has(text, part) assert.truthy(text:find(part, 1, true), text) end

describe("gpipe-lua --ranks", function()
  it("runs the script with its arguments in every process, and shows what rank 0 prints", function()
    local out, err, code = run({ "--ranks", "3" },
      "print(os.getenv 'RANK', os.getenv 'WORLD_SIZE', os.getenv 'LOCAL_RANK', arg[1], arg[2])")
    assert.equal("0\t3\t0\tan argument\tnil\n", out)
    assert.equal("", err)
    assert.equal(0, code)
  end)

  it("shows the lines of the others behind their number where they are asked for", function()
    local out, err = run({ "--log-ranks", "--ranks=2" },
      "print(os.getenv 'RANK') io.stderr:write('to stderr\\n')")
    has(out, "0\n")
    has(out, "[1] 1\n")
    has(err, "[1] to stderr\n")
  end)

  it("keeps the other switches", function()
    local out = run({ "--seed", "4", "--ranks", "2", "-W" }, [[
      print(require("gpipe.config").seed)]])
    assert.equal("4\n", out)
  end)

  it("ends with the code of the rank that failed first, and shows its errors", function()
    local _, err, code = run({ "--ranks", "2" }, [[
      if os.getenv "RANK" == "1" then io.stderr:write "my last words\n" os.exit(7) end]])
    assert.equal(7, code)
    has(err, "[1] my last words")
  end)

  it("stops the others when one has failed and they do not end", function()
    local _, _, code = run({ "--ranks", "2" }, [[
      if os.getenv "RANK" == "1" then os.exit(7) end
      while true do end]])
    assert.equal(7, code)
  end)

  it("refuses a number that is none, and a line without a script", function()
    local _, err, code = child.run { "--ranks", "two", "x.lua" }
    has(err, "--ranks: 'two', expected a number of processes from 1 to 256")
    assert.equal(2, code)
    _, err, code = child.run { "--ranks", "2" }
    has(err, "--ranks: there is no script")
    assert.equal(2, code)
    _, err, code = child.run { "--ranks", "2", "--restarts", "-1", "x.lua" }
    has(err, "--restarts: '-1', expected a number from 0 on")
    assert.equal(2, code)
    _, err = child.run { "--restarts", "1", "x.lua" }
    has(err, "--restarts is for jobs, expected --ranks N with it")
  end)

  it("leaves no process and no folder behind", function()
    local out = run({ "--ranks", "2" }, [[
      require("gpipe").barrier()
      print(os.getenv "GPIPE_RANKS_FOLDER")]])
    assert.is_nil(io.open(out:gsub("\n$", "") .. "/0"))
    assert.equal(2, select(3, child.shell("test -d " .. out:gsub("\n$", "") .. " || exit 2")))
  end)

  it("passes a signal on to all ranks", function()
    local script = child.file "while true do end"
    local _, _, code = child.shell(("%s --ranks 2 %s & sleep 1; kill -INT $!; wait $!"):format(
      child.quote(child.program), script))
    os.remove(script)
    assert.equal(130, code)
  end)
end)

describe("gpipe-lua --ranks in a process of another launcher", function()
  for _, case in ipairs(OTHERS) do
    it("is refused where it is one of several: " .. case[1], function()
      local _, err, code = child.run({ "--ranks", "2", "-e", "" }, { environment = case[2] })
      has(err, ("--ranks: %s has started this process as rank 1 of 2, expected the same command "
        .. "without --ranks; or --node K/M"):format(case[1]))
      assert.equal(2, code)
    end)
  end

  it("starts a job in the shell of a batch script, and where GPIPE_ALONE is 1", function()
    local line = { "--ranks", "2", "-e", "print(require 'gpipe'.ranks())" }
    for _, environment in ipairs {
      { SLURM_JOB_ID = "1", SLURM_PROCID = "0", SLURM_NTASKS = "8" },
      { GPIPE_ALONE = "1", RANK = "1", WORLD_SIZE = "3", MASTER_PORT = "1" },
    } do
      local out, err = child.run(line, { environment = environment })
      assert.equal("2\n", out, err)
    end
  end)

  it("may start the ranks of one host of several", function()
    local each = "OMPI_COMM_WORLD_RANK=%d OMPI_COMM_WORLD_SIZE=2 " .. child.quote(child.program)
      .. " --ranks 1 --node %d/2 --master localhost:" .. jobs.port()
      .. " -e 'print(#require(\"gpipe\").all_gather(1))'"
    local out, err = child.shell(each:format(1, 1) .. " & " .. each:format(0, 0) .. "; wait")
    assert.equal("", err)
    assert.equal("2\n", out)
  end)
end)

describe("a launcher that cannot start a rank", function()
  local function start(files, ranks)
    -- those that the test itself was started with do not count
    local line = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n %d; "
      .. "exec timeout -s KILL 20 %s --ranks %d -e 'require(\"gpipe\").barrier()'"
    return select(2, child.shell(line:format(files, child.quote(child.program), ranks)))
  end

  it("says what is missing, and ends those that run", function()
    local err, code = start(24, 48)
    assert.matches("%-%-ranks: no pipes for rank %d+ of 48: Too many open files, expected two open files", err)
    assert.equal(1, code)
  end)

  it("says so as well where it has no files for itself", function()
    local err, code = start(4, 2)
    assert.matches("%-%-ranks: [^\n]*: Too many open files\n", err)
    assert.equal(1, code)
  end)
end)

describe("the folder of a job", function()
  local function is_there(folder) return (select(3, child.shell("test -d " .. folder))) == 0 end

  it("is removed by the next launcher where its own was killed before the ranks had met", function()
    local out, _, code = run({ "--ranks", "2" }, [[
      local folder = os.getenv "GPIPE_RANKS_FOLDER"
      if os.getenv "RANK" == "0" then
        print(folder)
        io.stdout:flush()
        io.open(folder .. "/0", "w"):close()
        local launcher = io.open "/proc/self/status":read "a":match "PPid:%s*(%d+)"
        io.popen("kill -KILL " .. launcher):close()
      end
      while true do end]])
    local folder = out:gsub("\n", "")
    assert.equal(137, code)
    assert.truthy(is_there(folder), folder)
    run({ "--ranks", "1" }, "")
    assert.falsy(is_there(folder), folder)
  end)

  it("is left alone while its launcher runs", function()
    local _, err, code = run({ "--ranks", "2" }, ([[
      if os.getenv "RANK" == "0" then
        assert(os.execute(%q))
        assert(os.execute("test -d " .. os.getenv "GPIPE_RANKS_FOLDER"))
      end
      require("gpipe").barrier()]]):format("GPIPE_ALONE=1 " .. child.quote(child.program)
      .. " --ranks 1 -e ''"))
    assert.equal("", err)
    assert.equal(0, code)
  end)
end)

describe("a job whose ranks are all stopped", function()
  -- Signals go to the launcher once the ranks have stopped.
  local function start(signals)
    return select(3, run({ "--ranks", "2" }, ([[
      local gp = require "gpipe"
      local own = require("gpipe.core").process()
      local all = gp.all_gather(own)
      local launcher = io.open "/proc/self/status":read "a":match "PPid:%%s*(%%d+)"
      if gp.rank() == 0 then
        os.execute(("(for p in %%d %%d; do until grep -q State:.T /proc/$p/status; do sleep 0.05; "
          .. "done; done; for s in %s; do kill -$s %%s; sleep 0.3; done) &"):format(all[1], all[2], launcher))
      end
      os.execute("kill -STOP " .. own)
      while true do end]]):format(signals)))
  end

  it("ends some seconds after a signal, which the ranks cannot take", function()
    assert.equal(143, start "TERM")
  end)

  it("ends at once after two", function()
    local seconds = require("gpipe.core").seconds
    local began = seconds()
    assert.equal(130, start "INT INT")
    assert.truthy(seconds() - began < 5)
  end)
end)

describe("a job of another launcher", function()
  -- Starts two ranks as torchrun does; returns what rank 0 prints.
  local function start(environment, key)
    local script = child.file [[
      local gp = require "gpipe"
      print(gp.rank(), gp.ranks(), #gp.all_gather(gp.rank()))]]
    local each = ("RANK=%%d LOCAL_RANK=%%d WORLD_SIZE=2 %s %s %s"):format(environment,
      child.quote(child.program), script)
    local out, err = child.shell(("TORCHELASTIC_RUN_ID=%s %s >/dev/null & TORCHELASTIC_RUN_ID=a %s; wait")
      :format(key or "a", each:format(1, 1), each:format(0, 0)))
    os.remove(script)
    return out, err
  end

  it("is understood by torchrun's variables", function()
    local out, err = start "MASTER_ADDR=localhost MASTER_PORT=29471"
    assert.equal("", err)
    assert.equal("0\t2\t2\n", out)
    assert.equal(0, (select(3, child.shell "! ls -d ${TMPDIR:-/tmp}/gpipe-ranks-*-29471 2>/dev/null")))
  end)

  it("is understood by Open MPI's variables", function()
    local script = child.file 'print(require("gpipe").rank(), #require("gpipe").all_gather(1))'
    local each = "env GPIPE_TRANSPORT=unix PMIX_NAMESPACE=prterun-test@1 OMPI_COMM_WORLD_SIZE=2 "
      .. "OMPI_COMM_WORLD_LOCAL_SIZE=2 "
      .. "OMPI_COMM_WORLD_RANK=%d OMPI_COMM_WORLD_LOCAL_RANK=%d %s %s"
    local program = child.quote(child.program)
    local out, err = child.shell(each:format(1, 1, program, script) .. " >/dev/null & "
      .. each:format(0, 0, program, script) .. "; wait")
    os.remove(script)
    assert.equal("", err)
    assert.equal("0\t2\n", out)
  end)

  it("is none for commands, and where GPIPE_ALONE is 1", function()
    local job = { RANK = "1", WORLD_SIZE = "2", MASTER_ADDR = "localhost", MASTER_PORT = "1" }
    has(child.run({ "runs", "--help" }, { environment = job }), "runs")
    job.GPIPE_ALONE = "1"
    assert.equal("0\t1\n", (child.run({ "-e", "gp = require 'gpipe' print(gp.rank(), gp.ranks())" },
      { environment = job })))
  end)

  it("may have one process, which is no job", function()
    local out = child.run({ "-e", 'print(require("gpipe").ranks())' },
      { environment = { WORLD_SIZE = "1", RANK = "0", MASTER_ADDR = "far", MASTER_PORT = "1" } })
    assert.equal("1\n", out)
  end)

  it("is refused where it contradicts itself", function()
    local function message(environment)
      return (select(2, child.run({ "-e", 'require("gpipe").barrier()' }, { environment = environment })))
    end
    has(message { WORLD_SIZE = "2", MASTER_ADDR = "localhost", MASTER_PORT = "1" },
      "WORLD_SIZE is 2 and RANK is not set, expected both")
    has(message { WORLD_SIZE = "2", RANK = "2", MASTER_ADDR = "localhost", MASTER_PORT = "1" },
      "RANK is '2', expected a number from 0 to 1")
    has(message { WORLD_SIZE = "2", RANK = "1" },
      "WORLD_SIZE is 2 and MASTER_PORT is not set, expected also MASTER_ADDR and MASTER_PORT")
    has(message { WORLD_SIZE = "2", RANK = "1", MASTER_ADDR = "", MASTER_PORT = "1" },
      "MASTER_ADDR is not set, expected MASTER_ADDR and MASTER_PORT")
    has(message { WORLD_SIZE = "2", RANK = "1", MASTER_ADDR = "localhost", MASTER_PORT = "0" },
      "MASTER_PORT is '0', expected a number from 1 to 65535")
    has(message { WORLD_SIZE = "2", RANK = "1", LOCAL_WORLD_SIZE = "4", MASTER_PORT = "1" },
      "LOCAL_WORLD_SIZE is 4 and WORLD_SIZE is 2, expected no more")
    has(message { WORLD_SIZE = "2", RANK = "1", MASTER_PORT = "1", GPIPE_WATCHDOG = "abc" },
      "ranks: GPIPE_WATCHDOG is 'abc'")
    local text = message { WORLD_SIZE = "2", RANK = "1", MASTER_PORT = "1", GPIPE_TRANSPORT = "foo" }
    has(text, "ranks: GPIPE_TRANSPORT is 'foo', expected unix, tcp or mpi")
    assert.falsy(text:find("ignored", 1, true), text)
  end)
end)
