-- tests/soak/kill.lua N here program - see tests/soak/kill.
local gp = require "gpipe"
local core = require "gpipe.core"
local is_tensor = require "gpipe.tensor.is"

local kills, here, program, keep = math.tointeger(tonumber(arg[1])), arg[2], arg[3], arg[4]
if not kills or kills < 1 then
  io.stderr:write("kill: N is '", tostring(arg[1]), "', expected an integer >= 1\n")
  os.exit(2)
end
local place = os.tmpname()
os.remove(place)
math.randomseed(tonumber(os.getenv "SOAK_SEED" or os.time()))

local STEPS = 60

-- ---- the data ----------------------------------------------------------------------------------

-- Writes random pixels in the form of CIFAR-10: five files of 20 images.
local function make_data(path)
  assert(core.folder_make(path))
  for i = 1, 5 do
    local bytes = gp.randint(0, 256, { 20, 3073 }, { seed = i }):to "u8"
    for row = 1, 20 do bytes[row][1] = (row + i) % 10 end
    local file <close> = assert(io.open(("%s/data_batch_%d.bin"):format(path, i), "wb"))
    file:write(bytes:bytes())
  end
end

-- ---- runs --------------------------------------------------------------------------------------

-- Starts or resumes the run, and kills it after `seconds`, if given. Returns whether it came to its
-- end.
local function train(folder, seconds)
  local limit = seconds and ("timeout -s KILL %.4f "):format(seconds) or ""
  local line = ("%s'%s' '%s/train.lua' --data '%s/data' --steps %d --run-dir '%s' >>'%s/log' 2>&1")
    :format(limit, program, here, place, STEPS, folder, place)
  local good, how, code = os.execute(line)
  if good then return true end
  if seconds and (how == "signal" and code == 9 or code == 137) then return false end
  error(("%s ended with %s %s; what it printed is in %s/log"):format(folder, how, code, place))
end

-- ---- comparing ---------------------------------------------------------------------------------

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function same(a, b)
  if is_tensor(a) then return a:bytes() == b:bytes() end
  if type(a) ~= "table" or type(b) ~= "table" then return a == b or (a ~= a and b ~= b) end
  for key, value in pairs(a) do if not same(value, b[key]) then return false end end
  for key in pairs(b) do if a[key] == nil then return false end end
  return true
end

-- Returns all of a state that does not depend on the machine: without times and lengths of texts
-- that hold them.
local function facts(state)
  local run = state.extra.run
  return {
    state.progress, state.optimizer, state.random, state.data, state.extra.parts,
    state.extra.script, run.best_of, run.step, run.loss, run.watcher, run.lengths[1], state.pipeline,
  }
end

local function compare(a, b)
  local last = ("/checkpoints/step-%08d"):format(STEPS)
  local one, tensors = assert(gp.checkpoint.read(a .. last))
  local two, others = assert(gp.checkpoint.read(b .. last))
  for name, tensor in pairs(tensors) do
    assert(others[name] and tensor:bytes() == others[name]:bytes(), name .. " differs")
  end
  assert(same(facts(one), facts(two)), "the counters differ")
  assert(read(a .. "/log.jsonl") == read(b .. "/log.jsonl"), "the logs differ")
  assert(os.execute(("cmp -s '%s%s/stage-0.safetensors' '%s%s/stage-0.safetensors'"):format(a, last,
    b, last)), "the files differ")
end

-- ---- all of it ---------------------------------------------------------------------------------

make_data(place .. "/data")
local started = core.seconds()
assert(train(place .. "/whole"))
local whole = core.seconds() - started

local done, runs, longest = 0, 0, 0
while done < kills do
  runs = runs + 1
  local folder, killed = ("%s/run-%d"):format(place, runs), 0
  while done < kills and not train(folder, math.random() * 1.2 * whole) do
    done, killed = done + 1, killed + 1
  end
  assert(train(folder))
  longest = math.max(longest, killed)
  local good, message = pcall(compare, place .. "/whole", folder)
  if not good then
    io.stderr:write(("kill: %s after %d kills: %s\n"):format(folder, killed, message))
    os.exit(1)
  end
  os.execute("rm -r '" .. folder .. "'")
end
if keep ~= "--keep" then os.execute("rm -r '" .. place .. "'") end
print(("killed %d times in %d runs, up to %d times one run: the same bytes"):format(done, runs,
  longest))
