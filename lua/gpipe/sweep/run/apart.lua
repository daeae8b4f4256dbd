-- lua/gpipe/sweep/run/apart.lua - run the trials of a sweep in child processes.
--
-- Each child runs the same script with the same arguments. It reaches the same sweep and works
-- there until no trial is left; children know of each other only through the file. This process
-- runs no trial: it starts the children, restarts those that die, ends those that hang, and shows
-- progress. Children share the cores, and devices are dealt out among them. They end when this
-- process does.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local machine = require "gpipe.machine"

local apart = {}

local LOOK = 0.05 -- seconds between two looks
local GRACE = 5   -- seconds after its timeout that a trial has to end by itself
local FAILURES = 3 -- of a child in a row, with no trial ended between, before the sweep is given up
local SIGINT, SIGKILL = 2, 9

-- ---- the command line --------------------------------------------------------------------------

local function first_word()
  local first = 0
  while arg[first - 1] do first = first - 1 end
  return first
end

-- The devices of child k of n: every n-th device from the k-th on. With fewer devices than children
-- several children share one.
local function devices_of(sweep, child, count)
  local given = sweep.options.devices or machine.configured() or machine.gpus()
  local list = {}
  for i = child, #given, count do list[#list + 1] = given[i] end
  if #list == 0 and #given > 0 then list[1] = given[(child - 1) % #given + 1] end
  return #list > 0 and table.concat(list, ",") or nil
end

-- The command line of a child: that of this process, with the child's devices. A trial with ranks
-- is a job of its own.
local function words_of(sweep, child, count)
  local first = first_word()
  local words, devices = { arg[first] }, devices_of(sweep, child, count)
  if devices then table.move({ "--devices", devices }, 1, 2, 2, words) end
  if sweep.options.ranks > 1 then
    table.move({ "--ranks", tostring(sweep.options.ranks) }, 1, 2, #words + 1, words)
  end
  local i = first + 1
  while i <= #arg do
    local is_devices = i < 0 and arg[i]:match "^%-%-devices(.?)"
    if is_devices == "" then i = i + 1
    elseif not is_devices then words[#words + 1] = arg[i]
    end
    i = i + 1
  end
  return words
end

local function check_script(sweep)
  if type(arg) ~= "table" or first_word() == 0 or arg[0] == "-" then
    errors.raise("gp.sweep: %s is %d, expected 1 without a script in a file: child "
      .. "processes run the script again", sweep.options.parallel > 1 and "parallel" or "ranks",
      math.max(sweep.options.parallel, sweep.options.ranks))
  end
end

-- ---- children ----------------------------------------------------------------------------------

local function output_of(sweep, child)
  return ("%s.worker-%d.txt"):format(sweep.path:gsub("%.db$", ""), child)
end

local function start(state, child)
  local sweep = state.sweep
  local process, message, code = core.spawn("/proc/self/exe", words_of(sweep, child, state.count),
    { "GPIPE_SWEEP_WORKER=" .. sweep.path, "GPIPE_ALONE=1" }, output_of(sweep, child), child - 1,
    state.count)
  if not process then errors.raise_as(code, "gp.sweep: %s", message) end
  state.children[child] = { process = process, pid = process:pid() }
end

local function last_line(path)
  local file <close> = io.open(path)
  local last = ""
  for line in file and file:lines() or function() end do
    if line:find "%S" and not line:find "^%s" and line ~= "stack traceback:" then last = line end
  end
  return last
end

-- Handle a child that ended before the last trial: its trial becomes free again. A child that fails
-- again and again, or before it reaches the sweep, means a mistake in the script.
local function see_end(state, child, how, code)
  local pid, path = state.children[child].pid, output_of(state.sweep, child)
  state.children[child] = nil
  if how == "exit" and code == 0 then return end
  state.sweep.store:explain(pid, how .. " " .. code)
  state.failures = state.failures + 1
  local early = how == "exit" and not state.sweep.store:has_entered(pid)
  if early or state.failures > FAILURES * state.count + state.sweep.options.retries then
    errors.raise("gp.sweep: a process of '%s' ended with %s %d%s: %s (its output is in %s)",
      state.sweep.name, how, code, early and " before it reached the sweep" or "",
      last_line(path), path)
  end
end

local function poll(state)
  for child = 1, state.count do
    local how, code
    if state.children[child] then how, code = state.children[child].process:poll() end
    if how then see_end(state, child, how, code) end
  end
end

-- Kill the processes of trials that did not end by themselves after their timeout.
local function watch(state)
  local seconds = state.sweep.options.timeout
  if not seconds then return end
  local now, since = core.seconds(), {}
  for _, row in ipairs(state.sweep.store:running()) do
    local key = row.number .. "." .. row.attempts
    since[key] = state.since[key] or now
    for _, child in pairs(state.children) do
      if child.pid == row.pid and now - since[key] > seconds + GRACE then
        state.sweep.store:expire(row.number,
          ("it ran for more than %g seconds, and its process was ended"):format(seconds))
        child.process:kill(SIGKILL)
      end
    end
  end
  state.since = since
end

-- Interrupt the children, so that they write what they can, and kill those that do not end.
local function close(state)
  for _, child in pairs(state.children) do child.process:kill(SIGINT) end
  local until_ = core.seconds() + GRACE
  while next(state.children) and core.seconds() < until_ do
    for number, child in pairs(state.children) do
      if child.process:poll() then state.children[number] = nil end
    end
    core.sleep(LOOK / 5)
  end
  for _, child in pairs(state.children) do child.process:close() end
  state.sweep.store:bury()
end

local State = { __close = close }

-- ---- the sweep ---------------------------------------------------------------------------------

local function fill(state, open)
  local there = 0
  for _ in pairs(state.children) do there = there + 1 end
  for child = 1, state.count do
    if not state.children[child] and there < math.min(state.count, open) then
      start(state, child)
      there = there + 1
    end
  end
end

--- Run the trials that are left in `parallel` child processes.
--- Errors: there is no script that they could run; the script fails before it reaches its sweep.
---@param sweep gpipe.Sweep
---@param see fun(row: table?)
function apart.run(sweep, see)
  check_script(sweep)
  local store, retries = sweep.store, sweep.options.retries
  local state <close> = setmetatable({ sweep = sweep, count = sweep.options.parallel, failures = 0,
    children = {}, since = {} }, State)
  store:refresh()
  store:bury()
  while true do
    poll(state)
    local left, running = store:left(sweep.most, retries)
    if left + running == 0 and not store:promotes(sweep.rule, retries) then break end
    fill(state, left + running)
    watch(state)
    core.sleep(LOOK)
    store:refresh(function(row)
      if row.state == "running" or row.state == "waiting" then return end
      state.failures = row.state == "killed" and state.failures or 0
      see(row)
    end)
    see()
  end
  for _, child in pairs(state.children) do -- no trial is left: they end by themselves
    while not child.process:poll() do core.sleep(LOOK / 5) end
  end
  state.children = {}
  store:refresh(see)
end

return apart
