-- scripts/bench/startup.lua - how long `gpipe-lua -e ""` takes and how much memory it holds.
--
-- A start must be fast enough for small scripts in a shell loop: oneDNN and the training half of
-- the library are not loaded before something needs them.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"

local opt = flags.parse("Time the start of the interpreter.", {
  { "--rounds N", 30, "starts of each kind" },
}, arg)
local program = figure.quote(figure.interpreter())

-- os.execute starts a shell, which becomes the program: what a shell alone costs is subtracted.
local function start(chunk)
  return function() assert(os.execute(("exec %s -e %s"):format(program, figure.quote(chunk)))) end
end

local times = figure.alternate(opt.rounds, {
  shell = function() assert(os.execute(":")) end,
  empty = start "", library = start 'require "gpipe"',
}, { "shell", "empty", "library" })

local function milliseconds(name)
  return 1e3 * (figure.median(times[name]) - figure.median(times.shell))
end

-- Peak resident megabytes of the interpreter after a chunk, as the kernel counts them.
local function resident(chunk)
  local read = chunk .. ' print(io.open("/proc/self/status"):read("a"):match("VmHWM:%s*(%d+)"))'
  local text = figure.capture(("%s -e %s"):format(program, figure.quote(read)))
  return text and tonumber(text)
end

figure.print("startup.time", milliseconds "empty", "ms", "<=", 20)
figure.print("startup.time.library", milliseconds "library", "ms")
local empty, library = resident "", resident 'require "gpipe"'
if not empty then return figure.skip("startup.resident", "no VmHWM in /proc/self/status") end
figure.print("startup.resident", empty / 1024, "MB", "<=", 30)
figure.print("startup.resident.library", library / 1024, "MB")
