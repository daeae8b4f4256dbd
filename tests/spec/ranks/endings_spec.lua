-- tests/spec/ranks/endings_spec.lua - all ways in which a job ends, and with which exit codes: of
-- `gpipe-lua --ranks` and mpirun, and of each command where every rank has a launcher of its own.
--
-- 75 means that the same command goes on from a checkpoint. No case depends on time: what ends a
-- job happens in step 7, after several checkpoints.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

-- The last rank does what the case says, or rank 0, or all of them.
local SCRIPT = [[
local gp = require "gpipe"
local how, folder, every = arg[1], arg[2], tonumber(arg[3])
local rank, last = gp.rank(), gp.ranks() - 1
gp.seed(1)
local model = gp.nn.Sequential {
  gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = gp.ranks(), chunks = 4, loss = gp.nn.CrossEntropyLoss(), watchdog = 2,
})
local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
pipe:use(opt)
local x, y = gp.randn { 16, 8 }, gp.randint(0, 4, { 16 })
local bad = gp.full({ 16 }, 9, { dtype = "i64" })
local run <close> = gp.run(folder, { pipe = pipe, opt = opt, steps = 1000, every = every,
  quiet = true, background = false })
local own = (require "gpipe.core".process())
local launcher = io.open "/proc/self/status":read "a":match "PPid:%s*(%d+)"
local function signal(name, process) -- os.execute would ignore SIGINT meanwhile
  io.popen(("kill -%s %s"):format(name, process)):close()
end
local function twice(name) -- the second one is another request, if it comes 50 ms later
  local core = require "gpipe.core"
  signal(name, launcher)
  while not core.stop_caught() do core.sleep(0.01) end
  core.sleep(0.1)
  signal(name, launcher)
  core.sleep(0.1)
end
local function be_in_c() return (("a"):rep(4000):find(("a-"):rep(9) .. "b")) end

local acts = {
  ["killed"] = function() if rank == last then signal("KILL", own) end end,
  ["rank 0 killed"] = function() if rank == 0 then signal("KILL", own) end end,
  ["all killed"] = function() signal("KILL", own) end,
  ["crash"] = function() if rank == last then signal("SEGV", own) end end,
  ["stopped"] = function() if rank == last then signal("STOP", own) end end,
  ["stopped while the others end"] = function()
    if rank == last then signal("STOP", own) end
    os.exit(0)
  end,
  ["error in Lua"] = function() if rank == last then error "too much" end end,
  ["os.exit"] = function() if rank == last then os.exit(3) end end,
  ["endless loop"] = function() if rank == last then while true do end end end,
  ["in C"] = function() if rank == last then be_in_c() end end,
  ["rank 0 in C"] = function() if rank == 0 then be_in_c() end end,
  ["killed beside one in C"] = function()
    if rank == last then signal("KILL", own) end
    be_in_c()
  end,
  ["launcher killed"] = function() if rank == 0 then signal("KILL", launcher) end end,
  ["launcher INT"] = function() if rank == 0 then signal("INT", launcher) end end,
  ["launcher TERM"] = function() if rank == 0 then signal("TERM", launcher) end end,
  ["launcher INT, twice"] = function() if rank == 0 then twice "INT" end end,
  ["launcher TERM, twice"] = function() if rank == 0 then twice "TERM" end end,
  ["launcher USR1"] = function() if rank == 0 then signal("USR1", launcher) end end,
}
for step in run:steps() do
  if step == 7 and acts[how] then acts[how]() end
  local loss = pipe:step(x, how == "error in C" and step == 7 and bad or y)
  run:log(step, { loss = loss })
end]]

local HANG = { GPIPE_FAULT = "device=1,step=9,op=B,micro=2,action=hang" }
local NEVER_BACK = { GPIPE_FAULT = "device=1,step=9,op=B,micro=2,action=sleep:1000" }
-- The address sanitizer would take the signal of a crash and end the rank with 1.
local UNCAUGHT = { ASAN_OPTIONS = (os.getenv "ASAN_OPTIONS" or "") .. ":handle_segv=0" }

-- What happens, the way of the job, its exit code with checkpoints, and without (if that is a case
-- of its own). With a launcher for each rank: their codes, in order.
local CASES = {
  { "killed", "unix", 75, 137 },
  { "killed", "tcp", 75 },
  { "killed", "hosts", "75 75", "1 137" },
  { "killed", "mpi", 137 }, -- mpirun ends the others before they can say more
  { "rank 0 killed", "unix", 75, 137 },
  { "all killed", "unix", 75, 137 },
  { "crash", "unix", 75, 139, variables = UNCAUGHT },
  { "stopped", "unix", 75, 1 },
  { "stopped", "mpi", 75, 1 },
  { "stopped while the others end", "unix", 75, 1 },
  { "error in Lua", "unix", 1 },
  { "error in Lua", "hosts", "1 1" },
  { "error in Lua", "mpi", 1 },
  { "error in C", "unix", 1 },
  { "error in C", "mpi", 1 },
  { "os.exit", "unix", 3 },
  { "endless loop", "unix", 75, 1 },
  { "endless loop", "hosts", "75 75" },
  { "endless loop", "mpi", 75 },
  { "in C", "unix", 75, 1 },
  { "in C", "hosts", "75 75", "1 1" },
  { "in C", "mpi", 75 },
  { "rank 0 in C", "hosts", "75 75" },
  { "killed beside one in C", "unix", 75, 137 },
  { "an action that hangs", "unix", 75, 1, variables = HANG },
  { "an action that hangs", "hosts", "75 75", variables = HANG },
  { "an action that hangs", "mpi", 75, variables = HANG },
  { "an action that never comes back", "unix", 75, 1, variables = NEVER_BACK },
  { "launcher killed", "unix", 137 }, -- as the shell says of it
  { "launcher INT", "unix", 75 },
  { "launcher TERM", "unix", 75 },
  { "launcher USR1", "unix", 75 },
  { "launcher INT, twice", "unix", 130 },
  { "launcher TERM, twice", "unix", 143 },
  { "launcher USR1", "mpi", 75 },
}

local function run(case, every)
  local script, folder = child.file(SCRIPT), os.tmpname()
  os.remove(folder)
  local variables = { GPIPE_HEARTBEAT = "2" }
  for name, value in pairs(case.variables or {}) do variables[name] = value end
  local words = { script, case[1], folder, tostring(every) }
  local code, err, left, _
  if case[2] == "hosts" then
    code, err = jobs.codes(2, words, variables)
  else
    _, err, code = jobs.run(case[2], 2, words, variables)
  end
  for _ = 1, 50 do -- the kernel kills the ranks of a launcher that is gone
    left = child.shell("pgrep -f " .. child.quote("[/]" .. script:sub(2)))
    if left == "" then break end
    require("gpipe.core").sleep(0.1)
  end
  os.remove(script)
  child.shell("rm -rf " .. folder)
  return code, err, left
end

for _, case in ipairs(CASES) do
  local missing = jobs.missing(case[2])
  -- with a launcher of each rank's own, and with mpirun, only under --full: they take long
  local slow = case[2] == "unix" and "" or " #slow"
  describe(("a job over %s: %s%s"):format(case[2], case[1], slow), function()
    for _, with in ipairs { true, case[4] and false } do
      local wanted = with and case[3] or not with and case[4]
      it(("ends with code %s %s a checkpoint"):format(wanted, with and "with" or "without"), function()
        if missing then return pending(missing) end
        local code, err, left = run(case, with and 2 or 0)
        assert.equal(tostring(wanted), tostring(code), err)
        assert.equal("", left) -- no process of the job
      end)
    end
  end)
end
