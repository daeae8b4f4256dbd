-- tests/spec/ranks/hosts_spec.lua - ranks that meet at an address: how they find each other, and
-- what they say when they do not.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local function has(text, part) assert.truthy(text:find(part, 1, true), text) end

-- One rank of two, as torchrun on two hosts starts it. after: shell text, such as "&".
local function rank(r, port, script, variables)
  return ("env RANK=%d LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%d "
    .. "GPIPE_JOIN_SECONDS=3 %s %s %s"):format(r, port, variables or "", child.quote(child.program),
    script)
end

local HELLO = [[
local gp = require "gpipe"
local core = require "gpipe.core"
local ranks = gp.all_gather(gp.rank())
io.stderr:write(("%d of %d, %s, %s\n"):format(gp.rank(), #ranks, core.rank_transport(), math.random(1 << 40)))
]]

describe("a job at an address", function()
  local script = child.file(HELLO)

  it("is understood by torchrun's variables on two hosts, with the same random numbers", function()
    local port = jobs.port()
    local _, err, code = child.shell(rank(1, port, script) .. " & " .. rank(0, port, script) .. "; c=$?; wait; exit $c")
    local seeds = {}
    for r, seed in err:gmatch "(%d) of 2, tcp, (%d+)\n" do seeds[r] = seed end
    assert.truthy(seeds["0"], err)
    assert.equal(seeds["0"], seeds["1"])
    assert.equal(0, code)
  end)

  it("is understood by SLURM's variables, where the ranks meet at the first host of the step", function()
    local id = tostring(require("gpipe.core").process())
    local each = ("env SLURM_JOB_ID=%s SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_NODES=2 SLURM_LOCALID=0 "
      .. "'SLURM_STEP_NODELIST=localhost,node[2-3]' SLURM_PROCID=%%d %s %s"):format(id,
      child.quote(child.program), script)
    local _, err, code = child.shell(each:format(1) .. " & " .. each:format(0) .. "; c=$?; wait; exit $c")
    has(err, "0 of 2, tcp, ")
    has(err, "1 of 2, tcp, ")
    assert.equal(0, code)
  end)

  it("is started by one command for each host", function()
    local out, _, code = jobs.script("hosts", 2, [[
      local gp = require "gpipe"
      local all = gp.all_gather { gp.rank(), os.getenv "LOCAL_RANK", os.getenv "LOCAL_WORLD_SIZE" }
      for _, one in ipairs(all) do print(table.unpack(one)) end]])
    assert.equal("0\t0\t1\n1\t0\t1\n", out)
    assert.equal(0, code)
  end)

  it("of one host is left alone by another one that was given the same port", function()
    local port = jobs.port()
    local function start(r)
      return ("env RANK=%d LOCAL_RANK=%d LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
        .. "MASTER_PORT=%d %s %s"):format(r, r, port, child.quote(child.program), script)
    end
    local folder = "/tmp/gpipe-ranks-" .. child.shell("id -u"):match "%d+" .. "-" .. port
    local _, err, code = child.shell(start(0) .. (" & until [ -S %s/0 ]; do sleep 0.01; done; "):format(folder)
      .. start(0) .. "; echo second $? >&2; " .. start(1) .. "; c=$?; wait; exit $c")
    has(err, "another process of this host is rank 0 of the job at " .. folder)
    has(err, "second 1\n")
    has(err, "0 of 2, unix, ")
    has(err, "1 of 2, unix, ")
    assert.equal(0, code)
  end)

  it("may have several ranks on each host", function()
    local port, text = jobs.port(), child.file 'print(#require("gpipe").all_gather(1))'
    local each = ("%s --ranks 2 --node %%d/2 --master localhost:%d %s"):format(
      child.quote(child.program), port, text)
    local out, err, code = child.shell(each:format(1) .. " & " .. each:format(0) .. "; c=$?; wait; exit $c")
    os.remove(text)
    assert.equal("4\n", out)
    assert.equal("", err)
    assert.equal(0, code)
  end)

  it("may meet at this host's own name, which may stand for loopback here", function()
    local host, port = require("gpipe").host(), jobs.port()
    if select(3, child.shell("getent hosts " .. host)) ~= 0 then return pending "the host has no name" end
    local at = "MASTER_ADDR=" .. host
    local _, err, code = child.shell(rank(1, port, script, at) .. " & " .. rank(0, port, script, at)
      .. "; c=$?; wait; exit $c")
    has(err, "0 of 2, tcp, ")
    assert.equal(0, code)
  end)

  it("gives each device an even share of its own host's cores", function()
    local out = jobs.script("hosts", 2, [[
      local gp = require "gpipe"
      local hosts = require("gpipe.ranks").hosts()
      assert(#hosts == 2 and hosts[1].machine == hosts[2].machine) -- here they are the same
      hosts[2].machine, hosts[1].cores, hosts[2].cores = "another", 6, 9
      local pipe <close> = gp.pipeline(gp.nn.Sequential { gp.nn.Linear(2, 2), gp.nn.Linear(2, 2) },
        { devices = { "0/cpu:0", "1/cpu:0", "1/cpu:1" }, balance = { 1, 1 } })
      print(pipe)]])
    assert.truthy(out:find("0/cpu:0 (6 threads)", 1, true), out)
  end)

  it("refuses switches that do not fit", function()
    local function message(...) return (select(2, child.run { ... })) end
    has(message("--node", "0/2", "x.lua"), "expected --ranks N with them")
    has(message("--ranks", "2", "--node", "2/2", "--master", "a:1", "x.lua"), "expected K/M")
    has(message("--ranks", "2", "--node", "0/2", "x.lua"), "expected --master HOST:PORT")
    has(message("--ranks", "2", "--node", "0/2", "--master", "a", "x.lua"), "expected HOST:PORT")
  end)

  it("waits so long for a master that does not answer, and says where", function()
    local port = jobs.port()
    local _, err, code = child.shell(rank(1, port, script, "GPIPE_JOIN_SECONDS=1"))
    has(err, ("ranks: rank 1 cannot reach rank 0 within 1 seconds (GPIPE_JOIN_SECONDS): "
      .. "127.0.0.1:%d: "):format(port)) -- it was refused, or had no answer on a busy machine
    assert.equal(1, code)
  end)

  it("waits so long for a rank that does not come, and names it", function()
    local _, err, code = child.shell(rank(0, jobs.port(), script, "GPIPE_JOIN_SECONDS=1"))
    has(err, "ranks: rank 1 did not come within 1 seconds (GPIPE_JOIN_SECONDS), expected 2 ranks")
    assert.equal(1, code)
  end)

  it("says that a port is taken", function()
    local port = jobs.port()
    local _, err = child.shell(("%s 2>/dev/null & sleep 0.5; %s; wait"):format(
      rank(0, port, script, "GPIPE_JOIN_SECONDS=6"),
      rank(0, port, script)))
    has(err, ("ranks: rank 0 cannot listen at 127.0.0.1:%d: Address already in use"):format(port))
  end)

  it("says that a host is not known", function()
    local _, err = child.shell(rank(1, 1, script, "MASTER_ADDR=no.such.host.invalid"))
    has(err, "the host 'no.such.host.invalid' (MASTER_ADDR) is not known here")
  end)

  it("says that there is no such interface", function()
    local _, err = child.shell(rank(0, jobs.port(), script, "GPIPE_INTERFACE=none7"))
    has(err, "GPIPE_INTERFACE is 'none7', expected the name of an interface")
  end)

  it("takes the interface that is named", function()
    local port = jobs.port()
    local _, err, code = child.shell(rank(1, port, script, "GPIPE_INTERFACE=lo") .. " & "
      .. rank(0, port, script, "GPIPE_INTERFACE=127.0.0.1") .. "; c=$?; wait; exit $c")
    has(err, "0 of 2, tcp")
    assert.equal(0, code)
  end)

  it("lets no process in that has another key, and both sides say so", function()
    local port = jobs.port()
    local _, err = child.shell(rank(1, port, script, "GPIPE_JOB_KEY=b") .. " & "
      .. rank(0, port, script, "GPIPE_JOB_KEY=a") .. "; wait")
    has(err, "has another job key, expected the same GPIPE_JOB_KEY")
    has(err, "rank 1 did not come within 3 seconds (GPIPE_JOIN_SECONDS), expected 2 ranks; "
      .. "refused 1 connection, the last from "
      .. "127.0.0.1 port ")
    has(err, "it does not know the key of this job")
  end)

  it("forms in spite of garbage on its port, which is reported", function()
    if not child.has "bash" then return pending "no bash" end
    local port = jobs.port()
    local garbage = ("for i in $(seq 100); do sleep 0.05; bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d && "
      .. "head -c 500 /dev/zero >&3 && sleep 0.2' 2>/dev/null && break; done"):format(port)
    local _, err, code = child.shell(("%s & p=$!; %s; %s; wait $p"):format(
      rank(0, port, script), garbage, rank(1, port, script)))
    has(err, "0 of 2, tcp")
    has(err, "gpipe: ranks: refused 1 connection while the job came together, the last from 127.0.0.1 port ")
    assert.equal(0, code)
  end)

  it("forms in spite of more silent connections than are answered at a time", function()
    if not child.has "bash" then return pending "no bash" end
    local port = jobs.port()
    local silent = ([[until (exec 3<>/dev/tcp/127.0.0.1/%d) 2>/dev/null; do sleep 0.02; done
      for i in $(seq 150); do exec {f}<>/dev/tcp/127.0.0.1/%d; printf g >&$f; done
      %s]]):format(port, port, rank(1, port, script)) -- they stay open as long as this rank
    local _, err, code = child.shell(("%s & p=$!; bash -c %s; wait $p"):format(
      rank(0, port, script), child.quote(silent)))
    has(err, "0 of 2, tcp")
    has(err, "1 of 2, tcp")
    has(err, " connections while the job came together, the last from 127.0.0.1 port ")
    assert.equal(0, code)
  end)

  it("is refused over Unix sockets on several hosts", function()
    local _, err = child.shell(rank(0, 1, script, "GPIPE_TRANSPORT=unix"))
    has(err, "GPIPE_TRANSPORT is unix, expected tcp or mpi for ranks on several hosts")
  end)
end)
