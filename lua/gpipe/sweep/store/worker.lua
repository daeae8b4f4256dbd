-- lua/gpipe/sweep/store/worker.lua - the processes that work on a sweep, and whether they live.
--
-- A process of this machine is looked up by its pid and its start time, because pids are reused. A
-- process of another machine shows only in the file: a thread of it counts heartbeats there, and if
-- the count stands still for a while, by our own clock, the process is dead. Clocks of two machines
-- are never compared.

local core = require "gpipe.core"
local ranks = require "gpipe.ranks"

local worker = {}

local BEAT_SECONDS = 10
local SILENT_SECONDS = 60 -- a busy network file system may delay a heartbeat or two

local function read(path)
  local file <close> = io.open(path)
  return file and file:read "a" or ""
end

-- The fields of a process' state from the third on. They are counted from the last parenthesis,
-- because the process' name may hold anything.
local function fields_of(pid)
  local fields = {}
  local rest = read(("/proc/%s/stat"):format(pid)):match ".*%) (.*)$"
  for field in (rest or ""):gmatch "%S+" do fields[#fields + 1] = field end
  return fields
end

-- When a process started, in clock ticks since boot; nil if it is gone or a zombie.
local function start_of(pid)
  local fields = fields_of(pid)
  local state = fields[1]
  return state and state ~= "Z" and state ~= "X" and math.tointeger(tonumber(fields[20])) or nil
end

-- The process that this one stands for: rank 0 of a trial's own job for the one that has started
-- the job, which the sweep has started and watches.
local function own_pid()
  local starts = os.getenv "GPIPE_SWEEP_WORKER" and ranks.ranks() > 1
  local text = starts and fields_of "self"[2] or read "/proc/self/stat":match "^%d+"
  return math.tointeger(tonumber(text)) or 0
end

local me

--- The row that describes this process.
---@return {machine: string, host: string, pid: integer, started: integer}
function worker.me()
  if me then return me end
  local host = read "/proc/sys/kernel/hostname":match "%S*"
  local boot = read "/proc/sys/kernel/random/boot_id":match "%S*"
  local pid = own_pid()
  me = { machine = host .. " " .. boot, host = host, pid = pid, started = start_of(pid) or 0 }
  return me
end

--- Enter this process; its heartbeat runs until `leave`.
---@param db gpipe.SweepDatabase
---@return {id: integer, beat: userdata}
function worker.enter(db)
  local self = worker.me()
  local id = db:transaction(function()
    return db:value("INSERT INTO worker (machine, host, pid, started, beat) VALUES (?, ?, ?, ?, 0) "
      .. "RETURNING id", self.machine, self.host, self.pid, self.started)
  end)
  local sql = ("UPDATE worker SET beat = beat + 1 WHERE id = %d"):format(id)
  return { id = id, beat = core.heartbeat(db.path, sql, BEAT_SECONDS) }
end

--- Stop the heartbeat and remove this process.
---@param db gpipe.SweepDatabase
---@param entered {id: integer, beat: userdata}
function worker.leave(db, entered)
  if entered.beat then entered.beat:close() end
  db:run("UPDATE worker SET ended = 1 WHERE id = ?", entered.id)
end

--- Whether the process of a row lives. `seen` remembers the heartbeats of other machines.
---@param row table of the table worker
---@param seen table<integer, {beat: integer, at: number}>
---@return boolean
function worker.is_alive(row, seen)
  if row.ended then return false end
  if row.machine == worker.me().machine then return start_of(row.pid) == row.started end
  local last = seen[row.id]
  if not last or last.beat ~= row.beat then
    seen[row.id] = { beat = row.beat, at = core.seconds() }
    return true
  end
  return core.seconds() - last.at < SILENT_SECONDS
end

return worker
