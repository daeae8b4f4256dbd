-- lua/gpipe/run_writer/folder.lua - the folder of a run: its lock, its configuration, its state.
--
--   config.json   what the run is; written once
--   state.json    how far it is; replaced whole every few seconds
--   lock          held by the process that trains; another process is refused, with the holder's
--                 pid
--
-- Records are in records.lua, checkpoints in saves.lua.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local json = require "gpipe.io.json"

local folder = {}

local PATIENCE = 3 -- seconds that a killed process may take to end
local SILENCE = 0.3 -- seconds of waiting for it before a message says so

--- The path of a run: `name` below `dir`; a name with a slash is a path itself.
---@param name string
---@param dir? string
---@return string
function folder.path(name, dir)
  if name:find "/" and not dir then return (name:gsub("(.)/+$", "%1")) end
  return (dir or "runs") .. "/" .. name
end

-- ---- the lock ----------------------------------------------------------------------------------

--- Lock a folder until the process ends; make the folder if it is missing.
--- Errors: raises where another process holds the lock, with its pid, or the system refuses.
---@param path string
---@return userdata lock
function folder.hold(path)
  local made, message = core.folder_make(path)
  if not made then errors.raise("gp.run: %s", message) end
  local pid, host = core.process()
  local who = ("pid %d on %s"):format(pid, host)
  local lock, other = core.lock_take(path .. "/lock", who, SILENCE)
  if lock == false then
    io.stderr:write(("gpipe: %s is held by another process (%s): waiting up to %d seconds, in "
      .. "case it was killed and is ending\n"):format(path, other == "" and "unknown" or other,
        PATIENCE))
    lock, other = core.lock_take(path .. "/lock", who, PATIENCE)
  end
  if lock then return lock end
  if lock == nil then errors.raise("gp.run: %s", other) end
  errors.raise("gp.run: %s is held by another process (%s), expected a folder in which no "
    .. "other process trains", path, other == "" and "of unknown pid" or other)
end

-- ---- what the run is ---------------------------------------------------------------------------

local function first_line(command)
  local pipe <close> = io.popen(command)
  return pipe and pipe:read "l" or nil
end

-- The git commit of the script's folder.
local function git(script)
  local at = script and script:match "^(.*)/[^/]*$" or "."
  local quoted = "'" .. at:gsub("'", "'\\''") .. "'"
  local commit = first_line("git -C " .. quoted .. " rev-parse HEAD 2>/dev/null")
  if not commit or not commit:find "^%x+$" then return nil end
  local changed = first_line("git -C " .. quoted .. " status --porcelain 2>/dev/null")
  return { commit = commit, dirty = changed ~= nil }
end

local function environment()
  local values = {}
  for _, name in ipairs(core.variables "GPIPE_") do values[name] = os.getenv(name) end
  return values
end

local function words_of(list)
  local words = {}
  for i = 1, list and #list or 0 do words[i] = tostring(list[i]) end
  return words
end

--- What a run is, as config.json holds it.
---@param name string
---@param config table
---@return table
function folder.describe(name, config)
  local arg = rawget(_G, "arg")
  local info, script = core.machine(), arg and arg[0] or nil
  local _, host = core.process()
  return {
    gpipe = core.version, name = name, config = config, script = script,
    arguments = words_of(arg), created = os.time(), git = git(script),
    environment = environment(),
    machine = {
      host = host, processor = info.model, cores = info.cores, memory = info.memory, isa = info.isa,
    },
  }
end

--- Write a file of the folder, whole or not at all.
---@param path string
---@param name string
---@param value table
---@return boolean? true
---@return string? message
function folder.write(path, name, value)
  return core.file_write(path .. "/" .. name, json.encode(value) .. "\n")
end

--- Read a file of the folder; nil where there is none.
---@param path string
---@param name string
---@return table?
---@return string? message
function folder.read(path, name) return json.read(path .. "/" .. name) end

-- Whether two values of a configuration are the same in JSON.
local function same(a, b) return json.encode(a) == json.encode(b) end

--- Describe how two configurations differ: "lr 0.1 -> 0.2".
---@param old table
---@param new table
---@return string[]
function folder.differences(old, new)
  local names, list = {}, {}
  for key in pairs(old) do names[tostring(key)] = true end
  for key in pairs(new) do names[tostring(key)] = true end
  for name in pairs(names) do
    if not same(old[name], new[name]) then
      list[#list + 1] = ("%s %s -> %s"):format(name, json.encode(old[name]), json.encode(new[name]))
    end
  end
  table.sort(list)
  return list
end

return folder
