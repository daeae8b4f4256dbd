-- tests/spec/ranks/networks_spec.lua - two hosts with a network between them: namespaces that are
-- joined by a pair of interfaces. It needs root and iproute2.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local TRAIN = "tests/support/ranks_train.lua"

-- Names of this process's own, so that specs can run side by side.
local id = require("gpipe.core").process() % 10000
local hosts = { ("gph%da"):format(id), ("gph%db"):format(id) }
local links = { ("gpl%da"):format(id), ("gpl%db"):format(id) }
local MASTER = "10.77.0.1"

local function shell(text) return (select(3, child.shell(text))) == 0 end

local function remove()
  for _, host in ipairs(hosts) do shell("ip netns del " .. host) end
end

-- Makes the two hosts; false where the system does not allow that.
local function make()
  local lines = { "set -e", "ip netns add " .. hosts[1], "ip netns add " .. hosts[2],
    ("ip link add %s netns %s type veth peer name %s netns %s"):format(links[1], hosts[1], links[2], hosts[2]) }
  for i = 1, 2 do
    lines[#lines + 1] = ("ip -n %s addr add 10.77.0.%d/24 dev %s"):format(hosts[i], i, links[i])
    lines[#lines + 1] = ("ip -n %s link set %s up"):format(hosts[i], links[i])
    lines[#lines + 1] = ("ip -n %s link set lo up"):format(hosts[i])
  end
  return shell(table.concat(lines, "\n"))
end

local missing = not child.has "ip" and "no iproute2" or not make() and "no network namespaces: not root"
if missing then remove() end

-- Slows the network down; false where the kernel cannot.
local function slow(what)
  local good = true
  for i = 1, 2 do
    good = good and shell(("ip netns exec %s tc qdisc add dev %s root netem %s"):format(hosts[i], links[i], what))
  end
  return good
end

-- Runs a script on both hosts; rank 0's output, and the exit code of the first host. between: shell
-- text that runs beside them.
local function run(words, variables, between)
  local port, list = jobs.port(), {}
  for i, word in ipairs(words) do list[i] = child.quote(word) end
  local each = ("ip netns exec %%s unshare --uts sh -c 'echo %%s >/proc/sys/kernel/hostname; exec \"$@\"' "
    .. "sh env GPIPE_JOB_KEY=k GPIPE_JOIN_SECONDS=20 %s %s --ranks 1 --node %%d/2 --master %s:%d %s"):format(
    variables or "", child.quote(child.program), MASTER, port, table.concat(list, " "))
  return child.shell(each:format(hosts[2], "hostb", 1) .. " & " .. (between and "(" .. between .. ") & " or "")
    .. each:format(hosts[1], "hosta", 0) .. "; c=$?; wait; exit $c")
end

local FOR_EVER = [[
local gp = require "gpipe"
local model = gp.nn.Sequential { gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 4) }
local pipe <close> = gp.pipeline(model, { devices = 2, chunks = 4, loss = gp.nn.MSELoss(), watchdog = 20 })
while true do pipe:step(gp.ones { 16, 8 }, gp.ones { 16, 4 }) end]]

describe("two hosts with a network between them", function()
  teardown(function()
    if not missing then remove() end
  end)

  it("train with the bits of one process", function()
    if missing then return pending(missing) end
    local words = { TRAIN, "2", "1f1b" }
    local whole, out = child.run(words), run(words)
    assert.truthy(#whole > 1000)
    assert.equal(whole, out)
  end)

  it("end with the name and the host of the lost rank when the network is cut", function()
    if missing then return pending(missing) end
    local script = child.file(FOR_EVER)
    local cut = ("sleep 3; ip -n %s link set %s down"):format(hosts[2], links[2])
    local began = require("gpipe.core").seconds()
    local _, err, code = run({ script }, "GPIPE_HEARTBEAT=2", cut)
    os.remove(script)
    shell(("ip -n %s link set %s up"):format(hosts[2], links[2]))
    assert.truthy(err:find "rank 1 %(process %d+ on hostb%) is gone: no heartbeat for [23]%.%d s; before, ", err)
    assert.equal(1, code)
    assert.truthy(require("gpipe.core").seconds() - began < 20)
  end)

  it("train with the same bits over 1 ms, 1 % loss and 1 Gbit/s", function()
    if missing then return pending(missing) end
    if not slow "delay 1ms loss 1% rate 1gbit" then return pending "this kernel has no netem" end
    local words = { TRAIN, "2", "1f1b" }
    assert.equal(child.run(words), (run(words)))
  end)
end)
