-- scripts/bench/ranks.lua - two ranks beside one process with the same two devices: the time of a
-- step that computes, and of one that hardly does, where messages are all; and what a message costs
-- over each transport, beside MPI alone.

package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"

local opt = flags.parse("Compare two ranks with one process.", {
  { "--width N", 512, "of sixteen layers of width x width" },
  { "--rounds N", 5, "turns; the median ratio counts" },
}, arg)

-- The child prints the median of its steps, in seconds.
local CHILD = [[
local gp = require "gpipe"
local nn = gp.nn
local clock, width = require("gpipe.core").seconds, tonumber(arg[1])
local layers = {}
for i = 1, 8 do
  layers[2 * i - 1], layers[2 * i] = nn.Linear(width, width), nn.ReLU()
end
local pipe <close> = gp.pipeline(nn.Sequential(layers), {
  devices = { { "cpu:0", threads = 1 }, { "cpu:1", threads = 1 } }, chunks = 8,
  loss = nn.MSELoss(), checkpoint = "never",
})
pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 1e-3 }))
local x, y, times = gp.randn { 256, width }, gp.randn { 256, width }, {}
for step = 1, 40 do
  local begin = clock()
  pipe:step(x, y)
  times[step] = clock() - begin
end
table.sort(times)
print(times[20])]]

local script = os.tmpname()
do
  local file <close> = assert(io.open(script, "w"))
  file:write(CHILD)
end

-- The time of a step in a child with these options.
local function child(options, width)
  local pipe = assert(io.popen(("%s %s %s %d"):format(figure.interpreter(), options,
    figure.quote(script), width)))
  local value = tonumber(pipe:read "l")
  pipe:close()
  return assert(value, "the child printed no time")
end

local function compare(width)
  return figure.alternate(opt.rounds, {
    one = function() return child("", width) end,
    two = function() return child("--ranks 2", width) end,
  }, { "one", "two" })
end

local wide, narrow = compare(opt.width), compare(32)
figure.print("ranks.step", figure.median(figure.ratios(wide.one, wide.two)), "x one process", ">=",
  0.97)
figure.print("ranks.messages", 1e6 * (figure.median(narrow.two) - figure.median(narrow.one)),
  "us more for a step with eight values each way")
os.remove(script)

-- ---- messages ----------------------------------------------------------------------------------

local folder_of_programs = figure.interpreter():match "^(.*/)[^/]*$"
local MPIRUN = "mpirun --allow-run-as-root --oversubscribe -n 2 "

-- Two processes in a folder of their own, over sockets.
local function sockets(way)
  return ([[d=$(mktemp -d); e="GPIPE_RANKS_FOLDER=$d GPIPE_RANKS_KEY=bench WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 ]]
    .. [[MASTER_PORT=29%03d GPIPE_TRANSPORT=%s"; env $e RANK=1 %s & env $e RANK=0 %s; wait; rm -rf $d]]):format(
    require("gpipe.core").process() % 1000, way, folder_of_programs .. "bench_ranks",
    folder_of_programs .. "bench_ranks")
end

-- The numbers that a command prints: microseconds (of an answer by the thread that moves messages,
-- then by a thread that it wakes), and GB/s.
local function measure(command)
  local pipe = assert(io.popen(command .. " 2>/dev/null"))
  local list = {}
  for number in (pipe:read "a"):gmatch "%d+%.%d+" do list[#list + 1] = tonumber(number) end
  pipe:close()
  return #list >= 2 and list or nil
end

local function column(list, i)
  local values = {}
  for k, one in ipairs(list) do values[k] = one[i] end
  return values
end

local commands = { unix = sockets "unix", tcp = sockets "tcp", mpi = MPIRUN .. folder_of_programs .. "bench_ranks",
  alone = MPIRUN .. folder_of_programs .. "bench_mpi" }
local order = {}
for _, way in ipairs { "unix", "tcp", "mpi", "alone" } do
  if measure(commands[way]) then order[#order + 1] = way else figure.skip("ranks." .. way, "it does not run here") end
end
local turns = {}
for _, way in ipairs(order) do
  turns[way] = function() return assert(measure(commands[way])) end
end
local found = figure.alternate(opt.rounds, turns, order)

local function report(way, bounds)
  local small, woken, rate = column(found[way], 1), column(found[way], 2), column(found[way], 3)
  figure.print(("ranks.%s.latency"):format(way), figure.median(small), "us for 8 bytes one way")
  figure.print(("ranks.%s.woken"):format(way), figure.median(woken), "us if a waiting thread answers")
  figure.print(("ranks.%s.rate"):format(way), figure.median(rate), "GB/s of 1 MiB messages")
  if not bounds then return end
  figure.print(("ranks.%s.latency_share"):format(way), figure.median(figure.ratios(small, column(found.alone, 1))),
    "x MPI alone", "<=", 2)
  figure.print(("ranks.%s.rate_share"):format(way), figure.median(figure.ratios(rate, column(found.alone, 2))),
    "x MPI alone", ">=", 0.9)
end

for _, way in ipairs(order) do
  if way ~= "alone" then
    report(way, way == "mpi" and found.alone ~= nil)
  else
    figure.print("ranks.alone.latency", figure.median(column(found.alone, 1)), "us, MPI alone")
    figure.print("ranks.alone.rate", figure.median(column(found.alone, 2)), "GB/s, MPI alone")
  end
end
