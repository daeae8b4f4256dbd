-- scripts/bench/schedules.lua - how long a schedule of a thousand devices takes to build, verify
-- and simulate.
--
-- Planning for large machines must stay a matter of seconds on a laptop: 1,024 devices and 4,096
-- micro-batches are 8.4 million actions, which must take under ten seconds and 4 GB together.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"
local gp = require "gpipe"

local opt = flags.parse("Build, verify and simulate a large schedule.", {
  { "--devices N", 1024, "devices" },
  { "--chunks N", 4096, "micro-batches" },
  { "--schedule NAME", "1f1b", "which schedule" },
}, arg)

local schedule
local seconds = {
  { "build", function()
    schedule = gp.schedule.build(opt.schedule, { devices = opt.devices, chunks = opt.chunks })
  end },
  { "verify", function() assert(schedule:verify()) end },
  { "simulate", function() schedule:simulate { B = 2, comm = 0.01 } end },
}

local total = 0
for _, part in ipairs(seconds) do
  local name, work = table.unpack(part)
  local time = figure.seconds(work)
  total = total + time
  figure.print("schedules." .. name, time, "s")
end
figure.print("schedules.time", total, "s", "<=", 10)

-- Peak resident memory of this process, as the kernel counts it.
local file = io.open "/proc/self/status"
local kilobytes = file and tonumber(file:read("a"):match "VmHWM:%s*(%d+)")
if file then file:close() end
if not kilobytes then return figure.skip("schedules.resident", "no VmHWM in /proc/self/status") end
figure.print("schedules.resident", kilobytes / 1e6, "GB", "<=", 4)
