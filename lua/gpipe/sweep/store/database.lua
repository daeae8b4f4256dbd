-- lua/gpipe/sweep/store/database.lua - the SQLite file of a sweep: opening, statements,
-- transactions.
--
-- On a local disk the file is in WAL mode: readers do not wait for writers, and a commit needs no
-- flush (synchronous=NORMAL: a process that is killed loses nothing; if the machine loses power,
-- the last commits may be gone, but the file is consistent). WAL keeps its index in memory shared
-- by the processes of one machine. So on a network file system, or an unknown one, the file has
-- SQLite's rollback journal, which relies on file locks alone, and every commit is flushed.
-- Source: https://www.sqlite.org/wal.html, sections 2.2 and 6.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local database = {}

---@class gpipe.SweepDatabase
---@field handle userdata
---@field path string
local Database = {}
Database.__index = Database

-- The magic numbers of local file systems in statfs.
local LOCAL = {
  [0xef53] = "ext4", [0x58465342] = "xfs", [0x9123683e] = "btrfs", [0x01021994] = "tmpfs",
  [0x794c7630] = "overlay", [0x2fc12fc1] = "zfs", [0xf2f52010] = "f2fs", [0xca451a4e] = "bcachefs",
}

--- Run one statement; its values are bound to the `?` in order.
--- Errors: raises with the file's name and the code "io", "format" or "memory".
---@param sql string
---@param ... any nil, numbers, strings, booleans (as 0 and 1)
---@return table[] rows by column
function Database:run(sql, ...)
  local rows, message, code = self.handle:run(sql, ...)
  if not rows then errors.raise_as(code, "gp.sweep: %s", message) end
  return rows
end

--- The first value of the first row, nil without rows.
---@param sql string
---@param ... any
---@return any
function Database:value(sql, ...)
  local row = self:run(sql, ...)[1]
  return row and select(2, next(row))
end

--- How many rows the last statement wrote.
---@return integer
function Database:changes() return self.handle:changes() end

-- Roll back a transaction that an error left open.
local function close(self)
  if self.handle:is_busy() then self.handle:run "ROLLBACK" end
end

local Open = { __close = function(open) close(open.database) end }

--- Call f() in a transaction: no other process writes meanwhile, and all or none of its writes
--- stay.
---@param f function
---@return any ... what f returns
function Database:transaction(f)
  local guard <close> = setmetatable({ database = self }, Open) -- luacheck: ignore guard
  close(self) -- an interrupt may have left one open at its end
  self:run "BEGIN IMMEDIATE"
  local results = table.pack(f())
  self:run "COMMIT"
  return table.unpack(results, 1, results.n)
end

--- Close the file; statements and locks are released.
function Database:close() self.handle:close() end

local TRIES, PAUSE = 200, 0.05

-- Set the journal mode. SQLite does not wait for other processes that are opening the file, so this
-- loop does; a file that is no database fails at once.
local function set_mode(self, mode)
  self:run "SELECT count(*) FROM sqlite_schema"
  for _ = 1, TRIES do
    if self.handle:run("PRAGMA journal_mode=" .. mode) then return end
    core.sleep(PAUSE)
  end
  self:run("PRAGMA journal_mode=" .. mode) -- raises with what is wrong
end

local function folder_of(path) return path:match "^(.*)/[^/]*$" or "." end

--- Open a file; make it if it is missing.
---@param path string
---@return gpipe.SweepDatabase
function database.open(path)
  local handle, message, code = core.database(path)
  if not handle then errors.raise_as(code, "gp.sweep: %s", message) end
  local self = setmetatable({ handle = handle, path = path }, Database)
  self.is_local = LOCAL[core.file_system(folder_of(path)) or 0] ~= nil
  set_mode(self, self.is_local and "WAL" or "DELETE")
  self:run "PRAGMA trusted_schema=OFF" -- the schema of a hostile file must not call functions
  self:run("PRAGMA synchronous=" .. (self.is_local and "NORMAL" or "FULL"))
  return self
end

return database
