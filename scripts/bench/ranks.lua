-- scripts/bench/ranks.lua - two ranks beside one process with the same two devices: the time of a
-- step that computes, and of one that hardly does, where messages are all.

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
