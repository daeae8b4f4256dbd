-- lua/gpipe/sweep/store/tables.lua - the tables of a sweep's file: made where they are missing, and
-- checked where they are there, because the file may be of another sweep or from anywhere.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local space = require "gpipe.sweep.space"
local text = require "gpipe.sweep.text"

local tables = {}

local VERSION = 1
local APPLICATION = 0x67707377 -- "gpsw": tells our files from others

-- States of a trial: running; complete, stopped (by a rule), failed and timeout are final;
-- interrupted, killed and waiting (for a larger budget) are run again.
local TABLES = {
  [[CREATE TABLE sweep (name TEXT NOT NULL, goal TEXT NOT NULL, space TEXT NOT NULL,
    created REAL NOT NULL)]],
  [[CREATE TABLE worker (id INTEGER PRIMARY KEY AUTOINCREMENT, machine TEXT NOT NULL,
    host TEXT NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL, beat INTEGER NOT NULL,
    ended INTEGER)]],
  [[CREATE TABLE trial (number INTEGER PRIMARY KEY, state TEXT NOT NULL, params TEXT, value REAL,
    more TEXT, step REAL, error TEXT, worker INTEGER, attempts INTEGER NOT NULL, rung INTEGER,
    began REAL, seconds REAL, changed INTEGER NOT NULL)]],
  "CREATE INDEX trial_changed ON trial (changed)",
  "CREATE INDEX trial_state ON trial (state)",
  [[CREATE TABLE report (trial INTEGER NOT NULL, step REAL NOT NULL, value REAL,
    PRIMARY KEY (trial, step)) WITHOUT ROWID]],
  [[CREATE TABLE rung (step REAL NOT NULL, trial INTEGER NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (step, trial)) WITHOUT ROWID]],
}

-- ---- making -------------------------------------------------------------------------------------

local function make_tables(db, sweep)
  for _, statement in ipairs(TABLES) do db:run(statement) end
  db:run("INSERT INTO sweep (name, goal, space, created) VALUES (?, ?, ?, ?)", sweep.name,
    sweep.goal, text.encode(sweep.words), core.seconds_since_1970())
  db:run("PRAGMA application_id=" .. APPLICATION)
  db:run("PRAGMA user_version=" .. VERSION)
end

-- ---- checking -----------------------------------------------------------------------------------

local NAMES = { "sweep", "worker", "trial", "report", "rung" }

-- Check that the tables are no views: a view of a hostile file may read for ever.
local function check_tables(db)
  for _, name in ipairs(NAMES) do
    local kind = db:value("SELECT type FROM sqlite_schema WHERE name = ?", name)
    if kind ~= "table" then
      errors.raise_as("format", "gp.sweep: %s is damaged: '%s' is %s, expected a table", db.path,
        name, kind and "a " .. kind or "missing")
    end
  end
end

local function check_kind(db)
  local application, version = db:value "PRAGMA application_id", db:value "PRAGMA user_version"
  if application ~= APPLICATION then
    errors.raise_as("format", "gp.sweep: %s is another program's SQLite file, expected a sweep",
      db.path)
  end
  if version ~= VERSION then
    errors.raise_as("format", "gp.sweep: %s has version %d of the tables, expected %d", db.path,
      version, VERSION)
  end
end

-- Check that the file holds the same sweep: its goal and space cannot change on the way.
local function check_same(db, sweep)
  local was = db:run("SELECT goal, space FROM sweep LIMIT 1")[1]
  if not was or type(was.goal) ~= "string" or type(was.space) ~= "string" then
    errors.raise_as("format", "gp.sweep: %s is damaged: the table 'sweep' has no row of texts, "
      .. "expected what is searched", db.path)
  end
  if was.goal ~= sweep.goal then
    errors.raise("gp.sweep: '%s' is to %s, and %s is to %s, expected the same (or another name)",
      sweep.name, sweep.goal, db.path, was.goal)
  end
  local differs = space.difference(sweep.words, text.decode(was.space))
  if differs then
    errors.raise("gp.sweep: the space of '%s' is not that of %s: %s; expected the same (or another "
      .. "name)", sweep.name, db.path, differs)
  end
end

--- Make the tables, or check that they hold this sweep. Within a transaction.
---
--- Errors: another program's file, another version, a damaged one, another sweep.
---@param db gpipe.SweepDatabase
---@param sweep {name: string, goal: string, words: table<string, string>}
function tables.settle(db, sweep)
  if db:value "SELECT count(*) FROM sqlite_schema" == 0 then return make_tables(db, sweep) end
  check_kind(db)
  check_tables(db)
  check_same(db, sweep)
end

return tables
