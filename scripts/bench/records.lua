-- scripts/bench/records.lua - how long it takes to draw the log of a million records, from the
-- start of the program.

package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"
local core = require "gpipe.core"

local opt = flags.parse("Draw the log of a long run.", {
  { "--records N", 1000000, "lines of log.jsonl" },
  { "--rounds N", 5, "the median counts" },
}, arg)

-- ---- a run -------------------------------------------------------------------------------------

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function write(name, each)
  local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
  for step = 1, opt.records do
    local line = each(step)
    if line then file:write(line) end
  end
end

math.randomseed(1)
write("log.jsonl", function(step)
  local loss = 2.5 * math.exp(-3 * step / opt.records) + 0.3 * math.random()
  return ('{"step":%d,"loss":%.17g,"lr":%.17g}\n'):format(step, loss, 3e-4 / step)
end)
write("timing.jsonl", function(step)
  return step % 100 == 0 and ('{"step":%d,"time":%.3f,"rate":810.2}\n'):format(step, step * 0.01)
end)
local state <close> = assert(io.open(folder .. "/state.json", "wb"))
state:write '{"state":"finished","step":1}'
state:close()

-- ---- figures -----------------------------------------------------------------------------------

local function median_of(work)
  local list = {}
  for round = 1, opt.rounds do list[round] = figure.seconds(work) end
  return figure.median(list)
end

local program = figure.quote(figure.interpreter())
local function command(more)
  local text = ("COLUMNS=120 %s plot %s loss %s"):format(program, folder, more)
  return function() assert(figure.capture(text), text) end
end

figure.print("records.plot", median_of(command ""), "s", "<=", 1)
figure.print("records.plot_time", median_of(command "--x time --smooth 0.99"), "s", "<=", 1)
figure.print("records.svg", median_of(command("--force --svg " .. folder .. "/x.svg")), "s", "<=", 1)
figure.print("records.html", median_of(command("--force --html " .. folder .. "/x.html")), "s", "<=",
  1)
figure.print("records.read", median_of(function()
  assert(core.records_update(core.records_open(folder .. "/log.jsonl")) == opt.records)
end), "s")
os.execute("rm -r " .. folder)
