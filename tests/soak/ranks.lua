-- tests/soak/ranks.lua N here program way - see tests/soak/ranks.
local core = require "gpipe.core"

local strikes, here, program, way = math.tointeger(tonumber(arg[1])), arg[2], arg[3], arg[4]
if not strikes or strikes < 1 then
  io.stderr:write("ranks: N is '", tostring(arg[1]), "', expected an integer >= 1\n")
  os.exit(2)
end
local place = os.tmpname()
os.remove(place)
assert(core.folder_make(place))
math.randomseed(tonumber(os.getenv "SOAK_SEED" or os.time()))

local STEPS = 400 * strikes
local LONGEST = 1.5 -- seconds of training until a rank is struck
local PATIENCE = 20 -- seconds until the job has to be over

local function fail(form, ...)
  io.stderr:write("ranks: ", form:format(...), "; what is left is in ", place, "\n")
  os.exit(1)
end

local function read(name)
  local file <close> = io.open(place .. "/" .. name, "rb")
  return file and file:read "a"
end

-- A job in the background; its exit code will be in the file `code`.
local function start(folder)
  for _, name in ipairs { "0", "1", "2", "code", "bits" } do os.remove(place .. "/" .. name) end
  local script = here .. "/ranked.lua"
  os.execute(([[(cd %s; GPIPE_HEARTBEAT=2 GPIPE_TRANSPORT=%s %s --ranks 3 %s %s %d %s 2>err; ]]
    .. "echo $? >code.new; mv code.new code) >/dev/null &"):format(place, way, program, script, folder,
    STEPS, place))
end

local function wait_for(what, seconds)
  local limit = core.seconds() + seconds
  while not read(what) and core.seconds() < limit do core.sleep(0.01) end
  return read(what)
end

local function train(folder)
  start(folder)
  return math.tointeger(tonumber(wait_for("code", 600)))
end

-- Strikes a rank; returns the job's exit code, or nil if it was over before.
local function strike(folder, i)
  start(folder)
  for r = 0, 2 do wait_for(tostring(r), PATIENCE) end
  core.sleep(math.random() * LONGEST)
  if read "code" then return nil end
  local rank, signal = math.random(0, 2), i % 4 == 0 and "STOP" or "KILL"
  local process = read(tostring(rank))
  os.execute(("kill -%s %s 2>/dev/null"):format(signal, process))
  local code = math.tointeger(tonumber(wait_for("code", PATIENCE)))
  if not code then
    fail("strike %d: rank %d got SIG%s, and the job is not over after %d s", i, rank, signal, PATIENCE)
  end
  local err = read "err"
  local named = rank == 0 and signal == "KILL" and err:find("rank 0 was ended by signal 9", 1, true)
    or err:find(("rank %d (process %s"):format(rank, process), 1, true)
  if code ~= 0 and not named then
    fail("strike %d: rank %d got SIG%s, and is not named: %s", i, rank, signal, err)
  end
  for r = 0, 2 do
    local left = os.execute(("kill -0 %s 2>/dev/null"):format(read(tostring(r))))
    if left then fail("strike %d: rank %d is left", i, r) end
  end
  return code
end

if train(place .. "/whole") ~= 0 then fail("the undisturbed run failed: %s", read "err") end
local whole, codes, done = assert(read "bits"), {}, 0
for i = 1, strikes do
  local code = strike(place .. "/run", i)
  if not code or code == 0 then break end
  codes[code], done = (codes[code] or 0) + 1, i
end
if train(place .. "/run") ~= 0 then fail("the last run failed: %s", read "err") end
if read "bits" ~= whole then fail "the final bytes differ" end
local words = {}
for code, n in pairs(codes) do words[#words + 1] = ("%d x code %d"):format(n, code) end
table.sort(words)
print(("ranks: struck %d times over %s (%s): the same %d bytes"):format(done, way, table.concat(words, ", "), #whole))
os.execute("rm -rf " .. place)
