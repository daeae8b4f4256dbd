-- tests/soak/faults.lua here program [--full] - see tests/soak/faults.
local gp = require "gpipe"
local core = require "gpipe.core"

local here, program, full = arg[1], arg[2], arg[3] == "--full"
local place = os.tmpname()
os.remove(place)
assert(core.folder_make(place))

local SOME = 3 -- calls of a kind that fail in turn without --full
local OLD, NEW = 1, 2
local REFUSED = 3 -- exit code of a refused save

local function fail(form, ...)
  io.stderr:write("faults: ", form:format(...), "; what is left is in ", place, "\n")
  os.exit(1)
end

-- ---- files -------------------------------------------------------------------------------------

-- The two things to save: the name, the files that a save touches (PID stands for the process id),
-- and how to read the saved value.
local TARGETS = {
  folder = { name = "checkpoint",
    paths = { "NAME", ".NAME.tmp.PID.0", ".NAME.tmp.PID.0/", ".NAME.tmp.PID.0/stage-0.safetensors",
      ".NAME.tmp.PID.0/.stage-0.safetensors.tmp.PID.0", ".NAME.tmp.PID.0/stage-1.safetensors",
      ".NAME.tmp.PID.0/.stage-1.safetensors.tmp.PID.0", ".NAME.tmp.PID.0/MANIFEST.json",
      ".NAME.tmp.PID.0/.MANIFEST.json.tmp.PID.0" },
    read = function(path)
      local state, tensors = gp.checkpoint.read(path)
      return state and tensors["model.1.weight"], tensors
    end },
  file = { name = "model.safetensors", paths = { "NAME", ".NAME.tmp.PID.0" },
    read = function(path)
      local tensors, message = gp.load(path)
      return tensors and tensors["1.weight"], message
    end },
}

local function path_of(target) return ("%s/%s"):format(place, target.name) end

local function names_in(folder)
  local names = assert(core.folder_names(folder))
  return table.concat(names, " ")
end

-- Returns the value that all elements have, or nil where nothing is saved; fails where it is
-- damaged. A folder that was renamed aside counts, because reading finds it.
local function value_in(target)
  local names = " " .. names_in(place) .. " "
  local there = names:find(" " .. target.name .. " ", 1, true)
    or names:find((" .%s.old "):format(target.name), 1, true)
  if not there then return nil end
  local weight, message = target.read(path_of(target))
  if not weight then fail("%s is damaged: %s", target.name, message) end
  local least, most = weight:min():item(), weight:max():item()
  if least ~= most then fail("%s has values from %g to %g", target.name, least, most) end
  return least
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return "" end
  local text = file:read "a"
  file:close()
  return text
end

-- ---- a save ------------------------------------------------------------------------------------

local function escaped(text) return (text:gsub("%W", "%%%0")) end

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function save(kind, value)
  local line = ("%s %s/fault_save.lua %s %s %d"):format(quote(program), quote(here), kind,
    quote(path_of(TARGETS[kind])), value)
  if not os.execute(line) then fail("a save without faults failed") end
end

-- Runs a save under strace. -D: the program keeps the process id of the shell, which names its
-- temporary files. strace may end later; it holds the pipe until then.
local function traced(kind, calls, fault, n, also)
  local target, words = TARGETS[kind], { also }
  for _, path in ipairs(target.paths) do
    path = path:gsub("NAME", target.name):gsub("PID", "$$")
    words[#words + 1] = ('-P "%s/%s"'):format(place, path)
  end
  words[#words + 1] = ('-P "%s"'):format(place)
  if fault then words[#words + 1] = ("-e inject=%s:%s:when=%d"):format(calls, fault, n) end
  local log, err = place .. ".log", place .. ".err"
  os.remove(log)
  local line = ("exec strace -D -f -y -s 0 -o %s -e trace=%s,rename,renameat2 %s %s "
    .. "%s/fault_save.lua %s %s %d 2>%s"):format(log, calls, table.concat(words, " "),
      quote(program), quote(here), kind, quote(path_of(target)), NEW, err)
  local pipe = assert(io.popen("exec bash -c " .. quote(line)))
  pipe:read "a"
  local _, how, code = pipe:close()
  return how == "signal" and 128 + code or code, read(log), read(err)
end

-- ---- faults ------------------------------------------------------------------------------------

local NO_EXCHANGE = "-e inject=renameat2:error=EINVAL" -- as on NFS

local FAULTS = {
  { "a full disk", "write", "error=ENOSPC" },
  { "a disk that fails", "fsync", "error=EIO" },
  { "a refused rename", "rename,renameat2", "error=EACCES" },
  { "a close that fails", "close", "error=EIO" },
  { "no more files", "openat", "error=EMFILE" },
  { "a refused folder", "mkdir", "error=ENOSPC", only = "folder" },
  { "a write that does nothing", "write", "retval=100" },
  { "a kill", "write", "signal=KILL" },
  { "a kill", "fsync", "signal=KILL" },
  { "a kill", "rename,renameat2", "signal=KILL" },
  { "a kill", "openat", "signal=KILL" },
  { "a kill", "close", "signal=KILL" },
  { "a kill", "mkdir", "signal=KILL", only = "folder" },
  { "a kill", "unlink,unlinkat,rmdir", "signal=KILL" },
  { "no exchange of folders", "rename", "error=EACCES", only = "folder", also = NO_EXCHANGE },
  { "no exchange of folders and a kill", "rename", "signal=KILL", only = "folder",
    also = NO_EXCHANGE },
  { "no exchange of folders and a kill", "unlinkat,rmdir", "signal=KILL", only = "folder",
    also = NO_EXCHANGE },
}

local counts = { refused = 0, saved = 0, killed = 0 }

-- Has the new save replaced the old one? The failure is reported even then.
local function is_in_place(log, target)
  return log:find('rename[^\n]*%.tmp%.%d+%.%d+"[^"\n]*"[^"\n]*/' .. escaped(target.name)
    .. '"[^"\n]*%) += 0\n') ~= nil
end

-- Checks what must hold after a save that met a fault.
local function check(what, kind, old, code, log, err)
  local target = TARGETS[kind]
  local value = value_in(target)
  if code == 137 then
    counts.killed = counts.killed + 1
    if value ~= old and value ~= NEW then fail("%s left the value %s", what, value) end
    return
  end
  if code ~= 0 and code ~= REFUSED then fail("%s: exit code %d: %s", what, code, err) end
  if code == 0 then
    counts.saved = counts.saved + 1
    if value ~= NEW then fail("%s: saved, but it holds %s", what, value) end
    return
  end
  counts.refused = counts.refused + 1
  if value ~= (is_in_place(log, target) and NEW or old) then fail("%s: refused, but it holds %s", what, value) end
  local named = err:find(path_of(target), 1, true) or err:find(place .. ":", 1, true)
  if not named then fail("%s: the message is %s", what, err) end
  local names = names_in(place)
  if names ~= (value and target.name or "") then fail("%s left %s", what, names) end
end

-- Lets every n-th call of a kind fail, until none is hit; something is saved in that place already,
-- or nothing.
local function sweep(kind, fault, old)
  local target = TARGETS[kind]
  for n = 1, full and 1000 or SOME do
    os.execute(("rm -rf %s; mkdir %s"):format(place, place))
    if old then save(kind, old) end
    local code, log, err = traced(kind, fault[2], fault[3], n, fault.also)
    local hit = log:gsub("renameat2[^\n]*", ""):find("(INJECTED)", 1, true)
      or log:find "killed by SIGKILL"
    hit = hit or fault[2]:find "renameat2" and log:find("(INJECTED)", 1, true)
    if not hit then return end
    local what = ("%s at %s %d of a %s%s"):format(fault[1], fault[2], n, kind,
      old and "" or " that is new")
    check(what, kind, old, code, log, err)
    save(kind, OLD) -- leftovers must not hinder the next save
    if value_in(target) ~= OLD or names_in(place) ~= target.name then
      fail("after %s a save leaves %s", what, names_in(place))
    end
  end
end

-- ---- the order of a save -----------------------------------------------------------------------

-- Returns the calls of a log as {call, path, place of its beginning, of its end}, in order of their
-- ends.
local function calls_of(log)
  local calls, open, at = {}, {}, 0
  for line in log:gmatch "[^\n]+" do
    at = at + 1
    local thread, rest = line:match "^(%d+) +(.*)$"
    local resumed = rest:match "^<%.%.%. %w+ resumed>"
    local call = resumed and open[thread]
      or { name = rest:match "^(%w+)%(", text = rest, from = at }
    if rest:find("<unfinished ...>", 1, true) then
      open[thread] = call
    elseif call and call.name then
      call.to = at
      calls[#calls + 1] = call
    end
  end
  return calls
end

-- Returns the first begin and the last end of the calls of a name whose text matches a pattern.
local function span(calls, name, pattern)
  local from, to
  for _, call in ipairs(calls) do
    if call.name == name and call.text:find(pattern) then
      from, to = math.min(from or call.from, call.from), math.max(to or 0, call.to)
    end
  end
  if not from then fail("the log of a save has no %s of %s", name, pattern) end
  return from, to
end

local function before(what, a, b)
  if a >= b then fail("the order of a save is wrong: %s", what) end
end

local function check_order(kind, old)
  local target = TARGETS[kind]
  os.execute(("rm -rf %s; mkdir %s"):format(place, place))
  if old then save(kind, old) end
  local code, log, err = traced(kind, "write,fsync,rename,renameat2")
  if code ~= 0 then fail("a traced save failed: %s", err) end
  local calls = calls_of(log)
  local into_place = escaped(target.name) .. '"'
  local rename = kind == "folder" and old and "renameat2" or "rename"
  local moved, in_place = span(calls, rename, into_place)
  local files = kind == "file" and { "%.tmp%.%d+%.0>" }
    or { "stage%-0%.saf", "stage%-1%.saf", "MANIFEST" }
  for _, file in ipairs(files) do
    local _, written = span(calls, "write", file)
    local synced, sync_over = span(calls, "fsync", file)
    before(file .. ": last write, fsync", written, synced)
    before(file .. ": fsync, rename of the whole", sync_over, moved)
  end
  if kind == "folder" then
    local _, stages = span(calls, "fsync", "stage%-%d%.saf")
    before("fsync of the stages, the manifest", stages, (span(calls, "write", "MANIFEST")))
    local _, folder = span(calls, "fsync", "%.tmp%.%d+%.0>")
    before("fsync of the new folder, its rename", folder, moved)
  end
  local above = escaped(place) .. ">"
  before("rename, fsync of the folder above", in_place, (span(calls, "fsync", above)))
end

-- ---- all of it ---------------------------------------------------------------------------------

for _, kind in ipairs { "folder", "file" } do
  check_order(kind)
  check_order(kind, OLD)
  for _, fault in ipairs(FAULTS) do
    if not fault.only or fault.only == kind then
      sweep(kind, fault, OLD)
      if full then sweep(kind, fault) end
    end
  end
end
os.execute(("rm -rf %s %s.log %s.err"):format(place, place, place))
print(("%d saves were refused, %d were saved all the same, %d were killed: nothing was lost")
  :format(counts.refused, counts.saved, counts.killed))
