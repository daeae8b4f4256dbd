-- scripts/bench/network.lua - the step that gp.plan foresees for two hosts with a slow network
-- between them, against the step that then runs. The hosts are namespaces of this machine, joined by
-- a wire of 1 ms, 1 % loss and 1 Gbit/s, each with a core of its own; the plan has the links as
-- `gpipe-lua links` measures them.
--
-- Beside the whole forecast (`off`) stands the network's part of it (`wire`): the step against the
-- one that its own actions would take with the measured links (replay.lua); and the fastest of ten
-- steps against the forecast (`fastest`), which tells how much of `off` comes from disturbances.
--
-- It needs root, iproute2 and /dev/net/tun. A machine that others use needs priority over them, too,
-- which nice alone does not give where the kernel groups sessions:
--   setsid -w sh -c 'echo -15 >/proc/self/autogroup; exec nice -n -15 scripts/bench/network'
local here = arg[0]:match("^.*/") or "./"
package.path = here .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"

local opt = flags.parse("Compare a step over a slow network with the one that gp.plan foresees.", {
  { "--rounds N", 3, "jobs; the median of their ratios counts" },
  { "--only NAME", "", "gpt or resnet" },
  { "--ms X", 1.0, "delay" }, { "--loss X", 1.0, "per cent of packets" },
  { "--mbit X", 1000.0, "per second" },
}, arg)

local BOUND = 1.1

local CHILD = [==[
package.path = arg[1] .. "?.lua;" .. package.path
local figure, build, replay = require "figure", require "model", require "replay"
local gp = require "gpipe"
gp.seed(0)
local cases = {
  gpt = function()
    return build.gpt(build.quickstart), build.bytes(build.quickstart), build.bytes(build.quickstart)
  end,
  resnet = function()
    return gp.models.resnet(18, { classes = 10 }), gp.randn { 16, 3, 64, 64 },
      gp.randint(0, 10, { 16 })
  end,
}
local model, x, y = cases[arg[3]]()
local plan = assert(gp.plan(model, { x, y }, {
  devices = { { "0/cpu:0", threads = 1 }, { "1/cpu:0", threads = 1 } }, links = arg[2],
  loss = gp.nn.CrossEntropyLoss(),
}))
if gp.rank() == 0 then io.stderr:write(tostring(plan), "\n") end
local again = replay.new(model, x, y, plan.best, arg[2])
local pipe <close> = gp.pipeline(model, plan)
local times, wire = {}, {}
for i = -2, 10 do
  pipe:step(x, y)
  local events = pipe:timeline()
  if i > 0 then
    times[i] = pipe.stats.seconds
    wire[i] = times[i] / again:seconds(events)
  end
end
table.sort(times)
print(plan.best.seconds, figure.median(times), figure.median(wire), times[1])]==]

local network = dofile(here .. "../../tests/support/network.lua")
local made, why = network.make()
if not made then return figure.skip("network", why) end
local _ <close> = setmetatable({}, { __close = network.remove })
local wire = figure.interpreter():match "^(.*/)[^/]*$" .. "bench_network"
local cut, reason = network.wire(wire,
  { ms = opt.ms, loss = opt.loss, mbit = opt.mbit, minutes = 20, pinned = true })
if not cut then return figure.skip("network", reason) end
local _ <close> = setmetatable({}, { __close = cut })

local script, links = os.tmpname(), os.tmpname()
do
  local file <close> = assert(io.open(script, "w"))
  file:write(CHILD)
end

local port = 21000 + require("gpipe.core").process() % 4000
local function job(words)
  port = port + 1
  local pipe <close> = assert(io.popen(network.command { program = figure.interpreter(),
    words = words, master = network.SLOW_MASTER, port = port, pinned = true }))
  return pipe:read "a"
end

print((job { "links", "--save", links, "--force" }))
for _, name in ipairs { "gpt", "resnet" } do
  if opt.only ~= "" and opt.only ~= name then goto continue end
  local ratios, wires, fastest, foreseen, taken = {}, {}, {}, nil, nil
  for round = 1, opt.rounds do
    local text = job { script, here, links, name }
    local beside, least
    foreseen, taken, beside, least = text:match "(%S+)%s+(%S+)%s+(%S+)%s+(%S+)%s*$"
    assert(foreseen, "the job printed no times:\n" .. text)
    ratios[round], wires[round] = taken / foreseen, tonumber(beside)
    fastest[round] = least / foreseen
  end
  figure.print("network." .. name .. ".foreseen", 1e3 * foreseen, "ms")
  figure.print("network." .. name .. ".taken", 1e3 * taken, "ms")
  figure.print("network." .. name .. ".fastest", figure.median(fastest), "x")
  for which, list in pairs { off = ratios, wire = wires } do
    local ratio = figure.median(list)
    figure.print(("network.%s.%s"):format(name, which), math.max(ratio, 1 / ratio), "x", "<=", BOUND)
  end
  ::continue::
end
os.remove(script)
os.remove(links)
