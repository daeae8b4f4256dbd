-- tests/soak/ranks.lua N here program way case - see tests/soak/ranks.
local core = require "gpipe.core"

local strikes, here, program, way, case = math.tointeger(tonumber(arg[1])), arg[2], arg[3], arg[4], arg[5]
local RANKS = { pipeline = 3, zero = 4, stream = 4, skips = 4, two_copies = 2 }
if not strikes or strikes < 1 or not RANKS[case] then
  io.stderr:write(("ranks: N is '%s' and CASE '%s', expected an integer >= 1 and pipeline, zero, stream, "
    .. "skips or two_copies\n"):format(arg[1], case))
  os.exit(2)
end
local count = RANKS[case]
local place = os.tmpname()
os.remove(place)
assert(core.folder_make(place))
math.randomseed(tonumber(os.getenv "SOAK_SEED" or os.time()))

local STEPS = 400 * strikes
local LONGEST = 1.5 -- seconds of training until a rank is struck
-- Ranks over MPI ask for messages all the time, so they take turns where there are fewer cores.
local HEARTBEAT = way == "mpi" and 10 or 2
local PATIENCE = 60 -- seconds until the job has to be over, on a machine that others use

local function read(name)
  local file <close> = io.open(place .. "/" .. name, "rb")
  return file and file:read "a"
end

local function fail(form, ...)
  io.stderr:write("ranks: ", case, " over ", way, ": ", form:format(...), "; what is left is in ", place, "\n")
  os.exit(1)
end

local function wait_for(what)
  local limit = core.seconds() + PATIENCE
  while core.seconds() < limit do
    local value = what()
    if value then return value end
    core.sleep(0.01)
  end
end

-- ---- the job -----------------------------------------------------------------------------------

local LAUNCH = way == "mpi" and ("mpirun --allow-run-as-root --oversubscribe -n %d %s"):format(count, program)
  or ("%s --restarts %d --ranks %d"):format(program, strikes, count)

-- A job in the background; its exit code will be in the file `code`.
local function start(folder)
  os.remove(place .. "/code")
  os.remove(place .. "/bits")
  os.execute(("(cd %s; GPIPE_HEARTBEAT=%d GPIPE_TRANSPORT=%s %s %s/ranked.lua %s %s %d %s 2>err; "
    .. "echo $? >code.new; mv code.new code) >/dev/null &"):format(place, HEARTBEAT, way, LAUNCH, here, case, folder,
    STEPS, place))
end

local function code() return math.tointeger(tonumber(read "code")) end

-- Waits for the end of the job; returns its exit code.
local function finish()
  local limit = core.seconds() + 600
  while not code() and core.seconds() < limit do core.sleep(0.05) end
  return code()
end

local function train(folder)
  start(folder)
  return finish()
end

-- The processes of the ranks, by rank; nil until all are others than before.
local function processes(before)
  local list = {}
  for r = 0, count - 1 do
    list[r] = read(tostring(r))
    if not list[r] or list[r] == before[r] then return nil end
  end
  return list
end

-- ---- striking ----------------------------------------------------------------------------------

-- Do the errors say which rank it was? mpirun names a rank that is killed, as the launcher does.
local function names(err, rank, process, signal)
  return err:find(("rank %d (process %s"):format(rank, process), 1, true)
    or signal == "KILL" and (err:find(("rank %d was ended by signal 9"):format(rank), 1, true)
    or err:find(("process rank %d with PID "):format(rank), 1, true))
end

local struck = {} ---@type table<integer, string> the processes of the job that was struck last

-- Strikes a rank of the job that runs. Returns the job's exit code, or "again" where the launcher
-- has started it again; nil if it was over before.
local function strike(i)
  local now = wait_for(function() return processes(struck) or code() end)
  if type(now) ~= "table" then return nil end
  core.sleep(math.random() * LONGEST)
  if read "code" then return nil end
  local rank, signal, before = math.random(0, count - 1), i % 4 == 0 and "STOP" or "KILL", #(read "err")
  os.execute(("kill -%s %s 2>/dev/null"):format(signal, now[rank]))
  struck = now
  local outcome = wait_for(function() return code() or processes(now) and "again" end)
  if not outcome then
    fail("strike %d: rank %d got SIG%s, and the job is not over after %d s", i, rank, signal, PATIENCE)
  end
  local err = read "err":sub(before + 1)
  if outcome ~= 0 and not names(err, rank, now[rank], signal) then
    fail("strike %d: rank %d got SIG%s, and is not named: %s", i, rank, signal, err)
  end
  for r = 0, count - 1 do -- mpirun kills the others and does not wait for their ends
    local gone = wait_for(function() return not os.execute(("kill -0 %s 2>/dev/null"):format(now[r])) end)
    if not gone then fail("strike %d: rank %d is left", i, r) end
  end
  return outcome
end

if train(place .. "/whole") ~= 0 then fail("the undisturbed run failed: %s", read "err") end
local whole, outcomes, done = assert(read "bits"), {}, 0
for r = 0, count - 1 do struck[r] = read(tostring(r)) end
start(place .. "/run")
for i = 1, strikes do
  local outcome = strike(i)
  if not outcome or outcome == 0 then break end
  outcomes[outcome], done = (outcomes[outcome] or 0) + 1, i
  if outcome ~= "again" then start(place .. "/run") end
end
if finish() ~= 0 and train(place .. "/run") ~= 0 then fail("the last run failed: %s", read "err") end
if read "bits" ~= whole then fail "the final bytes differ" end
local words = {}
for outcome, n in pairs(outcomes) do
  words[#words + 1] = outcome == "again" and ("%d x started again"):format(n) or ("%d x code %d"):format(n, outcome)
end
table.sort(words)
print(("ranks: %s struck %d times over %s (%s): the same %d bytes"):format(case, done, way,
  table.concat(words, ", "), #whole))
os.execute("rm -rf " .. place)
