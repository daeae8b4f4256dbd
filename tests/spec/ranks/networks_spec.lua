-- tests/spec/ranks/networks_spec.lua - two hosts with a network between them: namespaces that are
-- joined by a pair of interfaces, or by a slow wire. It needs root and iproute2.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"
local network = dofile "tests/support/network.lua"

local TRAIN = "tests/support/ranks_train.lua"

local made, missing = network.make()

-- Runs a script on both hosts; rank 0's output, and the exit code of the first host.
local function run(words, o)
  o = o or {}
  return child.shell(network.command { program = child.program, words = words, port = jobs.port(),
    master = o.master or network.MASTER, variables = o.variables, between = o.between })
end

local FOR_EVER = [[
local gp = require "gpipe"
local model = gp.nn.Sequential { gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 4) }
local pipe <close> = gp.pipeline(model, { devices = 2, chunks = 4, loss = gp.nn.MSELoss(), watchdog = 20 })
while true do pipe:step(gp.ones { 16, 8 }, gp.ones { 16, 4 }) end]]

describe("two hosts with a network between them", function()
  teardown(function()
    if made then network.remove() end
  end)

  it("train with the bits of one process", function()
    if not made then return pending(missing) end
    local words = { TRAIN, "2", "1f1b" }
    local whole, out = child.run(words), run(words)
    assert.truthy(#whole > 1000)
    assert.equal(whole, out)
  end)

  it("end with the name and the host of the lost rank when the network is cut", function()
    if not made then return pending(missing) end
    local script = child.file(FOR_EVER)
    local ends = ("ip -n %s link set %s "):format(network.hosts[2], network.links[2])
    local began = require("gpipe.core").seconds()
    local _, err, code = run({ script },
      { variables = "GPIPE_HEARTBEAT=2", between = "sleep 3; " .. ends .. "down" })
    os.remove(script)
    child.shell(ends .. "up")
    local gone = "rank 1 %(process %d+ on hostb%) is gone: no heartbeat for [23]%.%d s; [%d.]+ s before, "
    assert.truthy(err:find(gone), err)
    assert.equal(1, code)
    assert.truthy(require("gpipe.core").seconds() - began < 20)
  end)

  it("train with the same bits over 1 ms, 1 % loss and 1 Gbit/s", function()
    if not made then return pending(missing) end
    local cut, why = network.wire(os.getenv "GPIPE_TEST_WIRE" or "build/slow_wire",
      { ms = 1, loss = 1, mbit = 1000, minutes = 10 })
    if not cut then return pending(why) end
    local words = { TRAIN, "2", "1f1b" }
    local out, err = run(words, { master = network.SLOW_MASTER })
    cut()
    assert.equal(child.run(words), out, err)
  end)
end)
