-- scripts/bench/overlap.lua - how much of the exchange of gradients is hidden: a byte GPT of two
-- stages, with a replica on each of two ranks that a network of a given rate joins.
--
-- The ranks run in network namespaces of this machine, which needs root and iproute2. Hidden is what
-- is over when the last backward pass of any stage is; the rest is the time until the last device
-- has what it adds up. The whole is what the bytes of one direction take at the rate of the network.
-- In a stream (pipedream_2bw) hidden is what is over when both replicas come to the sums of a stage,
-- and nothing but gradients is missing; the stages are added up.

package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"

local BOTH = "1f1b and pipedream_2bw"

local opt = flags.parse("Measure how much of the exchange of gradients is hidden.", {
  { "--rate MBIT", 1000, "of the network, in Mbit/s" },
  { "--layers N", 16, "blocks" }, { "--width N", 256, "width" }, { "--context N", 256, "tokens" },
  { "--batch N", 16, "sequences of both replicas" },
  { "--chunks N", 4, "micro-batches of each replica" },
  { "--stages N", 2, "stages, on two devices of each rank" },
  { "--schedule NAME", BOTH, "schedule" },
  { "--steps N", 6, "timed steps" },
}, arg)

-- Rank 0 prints the exposed seconds of each step, when both replicas had what their first forward
-- pass reads, and the step's length; then what crosses in one direction, in bytes.
local CHILD = [==[
package.path = arg[1] .. "?.lua;" .. package.path
local gp = require "gpipe"
local model = require "model"
local n = {}
for i = 2, 7 do n[i] = tonumber(arg[i]) end
local size = { layers = n[2], width = n[3], heads = math.max(1, n[3] // 64), context = n[4], batch = n[5] }
local devices = {}
for r = 0, 1 do
  for d = 0, 1 do devices[#devices + 1] = { r .. "/cpu:" .. d, threads = 1 } end
end
local balance, layers = {}, size.layers + 3
for s = 1, n[7] do balance[s] = layers * s // n[7] - layers * (s - 1) // n[7] end
local pipe <close> = gp.pipeline(model.gpt(size), { devices = devices, replicas = 2, chunks = n[6],
  balance = balance, schedule = arg[9], loss = gp.nn.CrossEntropyLoss(), checkpoint = "never" })
pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-4 }))
local ids = model.bytes(size)
local BACKWARD, timed = { B = true, W = true }, tonumber(arg[8])
local function say(...)
  if gp.rank() == 0 then print(...) end
end

-- Synchronous: step by step.
local function step_by_step()
  for step = -1, timed do
    pipe:step(ids, ids)
    local line, last, begun, ready = pipe:timeline(), 0, 0, 0
    for d = 1, line.devices do
      local first = true
      for _, event in ipairs(line[d]) do
        if event.op == "F" and event.stage == 0 and first then
          ready, first = math.max(ready, event.begin), false
        end
        if BACKWARD[event.op] then last = math.max(last, event.finish) end
        if event.op == "REDUCE_GRAD" then begun = math.max(begun, event.begin) end
      end
    end
    if step > 0 then say(math.max(0, begun - last), ready, line.makespan) end
  end
end

-- Note, for each stage and its updates, when the last replica had nothing else to do, when the last
-- one had all gradients, and how long one waited for values.
local function note(list, seen)
  local count = {}
  for _, event in ipairs(list) do
    local s = event.stage
    if event.op == "REDUCE_GRAD" then
      count[s] = (count[s] or 0) + 1
      seen[s] = seen[s] or {}
      local one = seen[s][count[s]] or { last = 0, begun = 0, waited = 0 }
      seen[s][count[s]] = one
      one.last, one.begun = math.max(one.last, event.wait), math.max(one.begun, event.begin)
    elseif event.op == "UNSHARD" and count[s] then
      local one = seen[s][count[s]]
      one.waited = math.max(one.waited, event.begin - event.wait)
    end
  end
end

-- A stream: the first two mini-batches fill it, the last two drain it.
local function stream()
  for _ = 1, timed + 4 do pipe:step(ids, ids) end
  pipe:flush()
  local line, seen = pipe:timeline(), {}
  for d = 1, line.devices do note(line[d], seen) end
  for n = 3, timed + 2 do
    local exposed, waited, step = 0, 0, seen[0][n].begun - seen[0][n - 1].begun
    for _, updates in pairs(seen) do
      exposed = exposed + math.max(0, updates[n].begun - updates[n].last)
      waited = math.max(waited, updates[n].waited)
    end
    say(exposed, waited, step)
  end
end

if arg[9]:find "^pipedream" then stream() else step_by_step() end
local bytes = 0 -- each replica owns half of the parameters
for _, p in pairs(pipe:state_dict()) do bytes = bytes + 2 * p:numel() end
if gp.rank() == 0 then print("bytes", bytes) end]==]

local script = os.tmpname()
do
  local file <close> = assert(io.open(script, "w"))
  file:write(CHILD)
end

-- ---- the network -------------------------------------------------------------------------------

local id = require("gpipe.core").process() % 10000
local hosts, links = { ("gpo%da"):format(id), ("gpo%db"):format(id) }, { "gpo0", "gpo1" }

local function shell(text) return (os.execute("(" .. text .. ") >/dev/null 2>&1")) == true end

local function remove()
  for _, host in ipairs(hosts) do shell("ip netns del " .. host) end
end

local function make()
  local lines = { "set -e", "ip netns add " .. hosts[1], "ip netns add " .. hosts[2],
    ("ip link add %s netns %s type veth peer name %s netns %s"):format(links[1], hosts[1], links[2],
      hosts[2]) }
  for i = 1, 2 do
    lines[#lines + 1] = ("ip -n %s addr add 10.78.0.%d/24 dev %s"):format(hosts[i], i, links[i])
    lines[#lines + 1] = ("ip -n %s link set %s up"):format(hosts[i], links[i])
    lines[#lines + 1] = ("ip -n %s link set lo up"):format(hosts[i])
    lines[#lines + 1] = ("ip netns exec %s tc qdisc add dev %s root tbf rate %dmbit burst 256k "
      .. "latency 100ms"):format(hosts[i], links[i], opt.rate)
  end
  return shell(table.concat(lines, "\n"))
end

-- ---- the figures -------------------------------------------------------------------------------

local function command(schedule)
  local words = { figure.quote(script), figure.quote(arg[0]:match "^.*/" or "./"), opt.layers,
    opt.width, opt.context, opt.batch, opt.chunks, opt.stages, opt.steps, schedule }
  local each = ("ip netns exec %%s unshare --uts sh -c 'echo %%s >/proc/sys/kernel/hostname; "
    .. "exec \"$@\"' sh env GPIPE_JOB_KEY=k %s --ranks 1 --node %%d/2 --master 10.78.0.1:2%04d %s"):format(
    figure.interpreter(), id, table.concat(words, " "))
  return each:format(hosts[2], "hostb", 1) .. " & " .. each:format(hosts[1], "hosta", 0) .. "; wait"
end

local function run(schedule)
  local pipe, seen = assert(io.popen(command(schedule))), { exposed = {}, ready = {}, steps = {} }
  for line in pipe:lines() do
    local exposed, ready, step = line:match "^(%S+)%s+(%S+)%s+(%S+)$"
    seen.bytes = seen.bytes or tonumber((line:match "^bytes%s+(%S+)$"))
    if step then
      table.insert(seen.exposed, tonumber(exposed))
      table.insert(seen.ready, tonumber(ready))
      table.insert(seen.steps, tonumber(step))
    end
  end
  pipe:close()
  return assert(seen.bytes and seen, "the ranks printed no figures")
end

-- bound: of what is hidden, in percent; nil: none.
local function show(name, schedule, bound)
  local good, seen = pcall(run, schedule)
  if not good then return print(seen) end
  local whole, exposed = 8 * seen.bytes / (1e6 * opt.rate), figure.median(seen.exposed)
  local hidden = 100 * (1 - exposed / whole)
  figure.print(name .. ".step", 1e3 * figure.median(seen.steps), "ms")
  figure.print(name .. ".transfer", 1e3 * whole, "ms for the gradients of one direction")
  figure.print(name .. ".exposed", 1e3 * exposed, "ms of that for which devices wait")
  figure.print(name .. ".hidden", hidden, "%", bound and ">=", bound)
  figure.print(name .. ".values", 1e3 * figure.median(seen.ready),
    "ms before the passes that read them, for values that another replica updates")
end

if not make() then
  print "overlap skipped: no network namespaces with a rate (needs root, iproute2 and tbf)"
elseif opt.schedule ~= BOTH then
  show("overlap", opt.schedule, 90)
else
  show("overlap", "1f1b", 90)
  show("overlap.stream", "pipedream_2bw")
end
remove()
os.remove(script)
