-- tests/support/network.lua - two hosts on this machine: network namespaces, joined by a pair of
-- interfaces, and by a slow wire (tests/links/slow_wire.c) where one is asked for. It needs root,
-- iproute2, and /dev/net/tun for the wire.

local network = {}

-- Names of this process's own, so that tests can run side by side.
local id = require("gpipe.core").process() % 10000
network.hosts = { ("gph%da"):format(id), ("gph%db"):format(id) }
network.links = { ("gpl%da"):format(id), ("gpl%db"):format(id) }
local WIRE = "gpw0"

--- The address of the first host over the pair of interfaces, and over the wire.
network.MASTER, network.SLOW_MASTER = "10.77.0.1", "10.78.0.1"

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function shell(text) return (os.execute("sh -c " .. quote(text) .. " >/dev/null 2>&1")) or false end

function network.remove()
  for _, host in ipairs(network.hosts) do shell("ip netns del " .. host) end
end

--- Make the two hosts; false and why where the system does not allow that.
function network.make()
  if not shell "command -v ip" then return false, "no iproute2" end
  local lines = { "set -e" }
  for i, host in ipairs(network.hosts) do
    lines[i + 1] = "ip netns add " .. host
  end
  lines[#lines + 1] = ("ip link add %s netns %s type veth peer name %s netns %s"):format(network.links[1],
    network.hosts[1], network.links[2], network.hosts[2])
  for i, host in ipairs(network.hosts) do
    lines[#lines + 1] = ("ip -n %s addr add 10.77.0.%d/24 dev %s"):format(host, i, network.links[i])
    lines[#lines + 1] = ("ip -n %s link set %s up"):format(host, network.links[i])
    lines[#lines + 1] = ("ip -n %s link set lo up"):format(host)
  end
  if shell(table.concat(lines, "\n")) then return true end
  network.remove()
  return false, "no network namespaces: not root"
end

-- What the wire has printed, once that is something: it says "ready", or what is wrong.
local function first_words(path)
  for _ = 1, 100 do
    local file <close> = assert(io.open(path))
    local words = file:read "l"
    if words then return words end
    shell "sleep 0.05"
  end
  return "it prints nothing"
end

--- Join the hosts by a wire as well, for at most so many minutes. Returns a function that ends it;
--- or false and why it cannot be.
---@param program string slow_wire
---@param o {ms: number, loss: number, mbit: number, minutes: number, pinned: boolean?} loss: per
--- cent. pinned: each host receives on the core that `command` gives it
function network.wire(program, o)
  for i, host in ipairs(network.hosts) do
    local made = shell(("set -e; ip -n %s tuntap add dev %s mode tun; ip -n %s addr add 10.78.0.%d/24 dev %s; "
      .. "ip -n %s link set %s mtu 9000 up"):format(host, WIRE, host, i, WIRE, host, WIRE))
    if not made then return false, "no tun devices" end
  end
  local path = os.tmpname()
  local line = ("timeout %d %s %s %s %s %g %g %g %s >%s 2>&1 </dev/null & echo $!"):format(60 * o.minutes,
    quote(program), network.hosts[1], network.hosts[2], WIRE, o.ms, o.loss, o.mbit, o.pinned and "0 1" or "", path)
  local pipe = assert(io.popen(line))
  local process = pipe:read "n"
  pipe:close()
  local words = first_words(path)
  os.remove(path)
  if words ~= "ready" then return false, words end
  return function() shell(("kill %d"):format(process)) end
end

--- The shell text that runs gpipe-lua with these words as one rank on each host; its output and
--- exit code are those of rank 0. between: shell text that runs beside them. pinned: each host has
--- one core.
---@param o {program: string, words: string[], master: string, port: integer, variables?: string,
--- between?: string, pinned?: boolean}
function network.command(o)
  local list = {}
  for i, word in ipairs(o.words) do list[i] = quote(word) end
  local function on(host, name, node)
    return ("ip netns exec %s unshare --uts sh -c 'echo %s >/proc/sys/kernel/hostname; exec \"$@\"' "
      .. "sh env GPIPE_JOB_KEY=k GPIPE_JOIN_SECONDS=20 %s %s %s --ranks 1 --node %d/2 --master %s:%d %s"):format(
      host, name, o.variables or "", o.pinned and "taskset -c " .. node or "", quote(o.program), node,
      o.master, o.port, table.concat(list, " "))
  end
  return on(network.hosts[2], "hostb", 1) .. " & "
    .. (o.between and "(" .. o.between .. ") & " or "")
    .. on(network.hosts[1], "hosta", 0) .. "; c=$?; wait; exit $c"
end

return network
