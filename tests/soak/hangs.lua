-- tests/soak/hangs.lua N - see tests/soak/hangs.
local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"
local network = dofile "tests/support/network.lua"

local count = math.tointeger(tonumber(arg[1]))
if not count or count < 1 then
  io.stderr:write("hangs: N is '", tostring(arg[1]), "', expected an integer >= 1\n")
  os.exit(2)
end
math.randomseed(tonumber(os.getenv "SOAK_SEED" or os.time()))

local WATCHDOG, HEARTBEAT = 2, 2 -- seconds; hung.lua has the first
-- Case, devices (one a rank), and the stages of a device.
local CASES = {
  { "1f1b", 3, { "0", "1", "2" } }, { "zb_h1", 3, { "0", "1", "2" } },
  { "replicas", 4, { "0", "1", "0", "1" } }, { "stream", 4, { "0", "1", "0", "1" } },
  { "chimera", 2, { "[01]", "[01]" } },
}
local WAYS = { "unix", "tcp", "mpi" }

local function fail(what, err)
  io.stderr:write(("hangs: %s: %s\n"):format(what, err))
  network.remove()
  os.exit(1)
end

-- What the ranks have printed: the seconds, the time of day and the error of each.
local function reports(err)
  local list = {}
  for took, at, text in err:gmatch "([%d.]+) (%d+) ([^\n]*%.lua:%d+: [^\n]*)" do
    list[#list + 1] = { took = tonumber(took), at = tonumber(at), text = text }
  end
  return list
end

-- An action that hangs: whose and which all ranks say.
local function hang(i)
  local case, way = CASES[math.random(#CASES)], WAYS[i % #WAYS + 1]
  if jobs.missing(way) then way = "unix" end
  local device, op = math.random(0, case[2] - 1), math.random(2) == 1 and "F" or "B"
  local fault = ("device=%d,op=%s,step=%d,action=hang"):format(device, op, math.random(4, 9))
  local what = ("%s over %s, %s"):format(case[1], way, fault)
  local _, err = jobs.run(way, case[2], { "--log-ranks", "tests/soak/hung.lua", case[1] },
    { GPIPE_FAULT = fault, GPIPE_HEARTBEAT = "20" })
  local list = reports(err)
  if #list ~= case[2] then fail(what, ("%d of %d ranks have ended: %s"):format(#list, case[2], err)) end
  local wanted = ("rank %d: no progress[^\n]*: device %d %%(cpu:%d%%) is in %s%s"):format(device, device, device,
    case[3][device + 1], op == "F" and "F" or "[BI]")
  for _, report in ipairs(list) do
    if not report.text:find(wanted) then fail(what, report.text) end
    if report.took > 2 * WATCHDOG then fail(what, ("it took %g s: %s"):format(report.took, report.text)) end
  end
end

-- A network that is cut: both hosts name the other one.
local function cut()
  local place, wait = os.tmpname(), 2 + 2 * math.random()
  local ends = ("ip -n %s link set %s "):format(network.hosts[2], network.links[2])
  local line = network.command { program = child.program, words = { "--log-ranks", "tests/soak/hung.lua", "hosts" },
    port = jobs.port(), master = network.MASTER, variables = "GPIPE_HEARTBEAT=" .. HEARTBEAT,
    between = ("sleep %g; date +%%s >%s; %sdown"):format(wait, place, ends) }
  local _, err = child.shell(line)
  child.shell(ends .. "up")
  local file <close> = assert(io.open(place))
  local when, list, what = file:read "n", reports(err), ("cut after %.2f s"):format(wait)
  os.remove(place)
  if #list ~= 2 then fail(what, err) end
  for _, report in ipairs(list) do
    local rank, host = report.text:match "rank (%d) %(process %d+ on (host%a)%) is gone: no heartbeat for "
    if host ~= (rank == "1" and "hostb" or "hosta") then fail(what, report.text) end
    if report.at - when > 2 * HEARTBEAT + 1 then fail(what, "it took too long: " .. report.text) end
  end
end

local made, why = network.make()
local hung, cuts = 0, 0
for i = 1, count do
  if made and i % 4 == 0 then
    cut()
    cuts = cuts + 1
  else
    hang(i)
    hung = hung + 1
  end
end
network.remove()
print(("hangs: %d actions that hung and %d links that were cut%s: all named"):format(hung, cuts,
  made and "" or " (" .. why .. ")"))
