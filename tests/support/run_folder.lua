-- tests/support/run_folder.lua - makes folders of training runs as gp.run does, without training.

local run_folder = {}

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

run_folder.write = write

--- Return the name of this machine as the runs' states hold it.
function run_folder.host()
  local file <close> = assert(io.open "/proc/sys/kernel/hostname")
  return file:read "l"
end

--- Make an empty folder for runs; `remove` removes it.
function run_folder.root()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir " .. path))
  return path
end

function run_folder.remove(path) os.execute("rm -r '" .. path .. "'") end

local CONFIG = '{"gpipe":"0.1.0","name":"%s","config":{%s},"script":"train.lua","created":%d}'
local STATE = '{"state":"%s","step":%d,"steps":%d,"created":%d,"updated":%d,"seconds":12.5,'
  .. '"pid":%d,"host":"%s","loss":%s,"best":{"name":"val_loss","value":0.25,"step":20},"rate":810.5,'
  .. '"unit":"rows/s"%s}'

-- Writes the log: "loss" at each step, "val_loss" at each tenth.
local function log_text(o)
  local lines = {}
  for step = 1, o.logged or o.step do
    local value = (o.value or function(s) return 1 / s end)(step)
    local more = step % 10 == 0 and (',"val_loss":%.17g'):format(value * 2) or ""
    lines[step] = ('{"step":%d,"loss":%.17g%s}\n'):format(step, value, more)
  end
  return table.concat(lines) .. (o.half or "")
end

local function timing_text(o)
  local lines = {}
  for step = 1, o.step do
    lines[step] = ('{"step":%d,"time":%.3f,"rate":810,"memory":[%d,2000000]}\n'):format(step,
      1763877000 + step * 0.5, 1000000 + step)
  end
  return table.concat(lines)
end

--- Make the folder of one run. o: name, state, step, steps, updated, pid, host, loss, config (JSON
--- text without braces), reason, value (function of the step), half (text behind the last line).
function run_folder.make(root, place, o)
  local path = root .. "/" .. place
  assert(os.execute(("mkdir -p '%s'"):format(path)))
  local updated = o.updated or 1763877000
  write(path .. "/config.json", CONFIG:format(o.name or place, o.config or "", 1763870000))
  write(path .. "/state.json", STATE:format(o.state or "finished", o.step, o.steps or 100, 1763870000,
    updated, o.pid or 1, o.host or run_folder.host(), o.loss or "0.5",
    o.reason and (',"reason":"%s"'):format(o.reason) or ""))
  write(path .. "/log.jsonl", log_text(o))
  write(path .. "/timing.jsonl", timing_text(o))
  return path
end

return run_folder
