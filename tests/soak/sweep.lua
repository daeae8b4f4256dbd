-- tests/soak/sweep.lua N program here - see tests/soak/sweep.
local core = require "gpipe.core"

local kills, program, here = math.tointeger(tonumber(arg[1])), arg[2], arg[3]
if not kills or kills < 1 then
  io.stderr:write("sweep: N is '", tostring(arg[1]), "', expected an integer >= 1\n")
  os.exit(2)
end
local place = os.tmpname()
os.remove(place)
math.randomseed(tonumber(os.getenv "SOAK_SEED" or os.time()))

local LONGEST = 0.6 -- seconds until a kill: a few trials of 0.02 s
local TRIALS = kills * 12 + 40

-- Reads the rows of a sweep's file.
local function trials_of(dir)
  local db = assert(core.database(dir .. "/s.db"))
  local rows = assert(db:run "SELECT * FROM trial ORDER BY number")
  db:close()
  return rows
end

local function start(dir, parallel)
  return assert(core.spawn(program, { "gpipe-lua", here .. "/searched.lua", dir, tostring(TRIALS),
    tostring(parallel) }, {}, place .. "/log", 0, 1))
end

local function wait(process)
  local how, code
  repeat
    core.sleep(0.005)
    how, code = process:poll()
  until how
  return how, code
end

-- Returns the trials of a sweep that have ended, by number, and those that run.
local function settled(dir)
  local done, running = {}, 0
  for _, trial in ipairs(trials_of(dir)) do
    if trial.state == "complete" then
      done[trial.number] = ("%s %s %d"):format(trial.params, trial.more, trial.attempts)
    else
      running = running + 1
    end
  end
  return done, running
end

-- Returns a process whose parent is this one, or nil.
local function child_of(pid)
  local pipe <close> = io.popen("pgrep -P " .. pid)
  local list = {}
  for line in pipe:lines() do list[#list + 1] = math.tointeger(tonumber(line)) end
  return #list > 0 and list[math.random(#list)] or nil
end

-- ---- killing -----------------------------------------------------------------------------------

assert(core.folder_make(place))
local alone, killed = place .. "/alone", place .. "/killed"
assert(select(2, wait(start(alone, 1))) == 0, "the sweep that is left alone fails")

local before = {}
for i = 1, kills do
  local parallel = i % 3 == 0 and 1 or 2
  local process = start(killed, parallel)
  core.sleep(0.05 + math.random() * LONGEST)
  local child = i % 3 == 1 and child_of(process:pid())
  if child then
    os.execute("kill -9 " .. child)
    core.sleep(math.random() * 0.2)
  end
  process:kill(9)
  wait(process)
  core.sleep(0.05) -- the children get their signal a little later
  local done, running = settled(killed)
  for number, facts in pairs(before) do
    assert(done[number] == facts, ("kill %d changed trial %d"):format(i, number))
  end
  assert(running <= 2, ("kill %d left %d trials without an end"):format(i, running))
  before = done
end
assert(select(2, wait(start(killed, 2))) == 0, "the sweep does not come to its end")

-- ---- comparing ---------------------------------------------------------------------------------

local one, two = trials_of(alone), trials_of(killed)
assert(#one == TRIALS and #two == TRIALS, ("%d trials, expected %d"):format(#two, TRIALS))
local attempts = 0
for i, trial in ipairs(two) do
  assert(trial.number == i and trial.state == "complete", ("trial %d is %s"):format(i, trial.state))
  assert(trial.params == one[i].params, ("trial %d has other parameters"):format(i))
  assert(trial.value == one[i].value and trial.more == one[i].more, "values differ")
  attempts = attempts + trial.attempts - 1
end
os.execute("rm -r " .. place)
print(("%d kills, %d trials: %d were broken off and run again, none is lost, all values are the same")
  :format(kills, TRIALS, attempts))
