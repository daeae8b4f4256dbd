-- lua/gpipe/sweep/store/init.lua - a sweep in its file: trials, reports, the processes that work.
--
-- Every process takes its next trial from the file and writes the outcome there, each in one
-- transaction, so that no trial is given out twice and none is lost. A trial belongs to the process
-- that runs it; if that process dies, the trial is taken from it and may be run again.

local core = require "gpipe.core"
local database = require "gpipe.sweep.store.database"
local errors = require "gpipe.errors"
local rungs = require "gpipe.sweep.store.rungs"
local tables = require "gpipe.sweep.store.tables"
local text = require "gpipe.sweep.text"
local worker = require "gpipe.sweep.store.worker"

local store = {}

---@class gpipe.SweepStore
---@field db gpipe.SweepDatabase
---@field worker? {id: integer, beat: userdata} while this process runs trials
---@field trials table<integer, table> the rows that were read, by number
---@field changed integer the newest change among them
local Store = {}
Store.__index = Store

local CHANGED = "(SELECT coalesce(max(changed), 0) + 1 FROM trial)"

-- ---- opening -----------------------------------------------------------------------------------

--- Open the file of a sweep; make it if it is missing.
---@param path string
---@param sweep {name: string, goal: string, words: table<string, string>}
---@return gpipe.SweepStore
function store.open(path, sweep)
  local db = database.open(path)
  db:transaction(function() tables.settle(db, sweep) end)
  return setmetatable({ db = db, trials = {}, changed = 0, seen = {} }, Store)
end

-- ---- reading -----------------------------------------------------------------------------------

local STATES = { running = true, complete = true, stopped = true, failed = true, timeout = true,
  interrupted = true, killed = true, waiting = true }
local SIMPLE = { number = true, string = true, boolean = true }
local NUMBERS = { number = true, string = true } -- "inf" and "nan" are stored as text

local function decoded(what, json, simple)
  if json ~= nil and type(json) ~= "string" then
    return nil, ("%s are %s, expected a JSON object"):format(what, errors.show(json))
  end
  local values, message = {}, nil
  if json then values, message = core.json_decode(json) end
  if values == nil then return nil, ("%s are no JSON: %s"):format(what, message or "null") end
  if type(values) ~= "table" or #values > 0 then
    return nil, what .. " are no object, expected names with values"
  end
  for name, value in pairs(values) do
    local infinite = type(value) == "number" and value - value ~= 0 -- stored as text, see above
    if type(name) ~= "string" or not simple[type(value)] or infinite then
      return nil, ("'%s' of %s is %s"):format(tostring(name), what, errors.show(value))
    end
  end
  return values
end

-- What is wrong with a row of the file, or nil.
local function fault_of(row)
  if math.type(row.number) ~= "integer" or row.number < 1 then
    return "the number is no integer of at least 1"
  end
  if not STATES[row.state] then return ("the state is %s"):format(errors.show(row.state)) end
  for _, name in ipairs { "value", "step", "seconds" } do
    if row[name] ~= nil and type(row[name]) ~= "number" then
      return ("%s is %s, expected a number"):format(name, errors.show(row[name]))
    end
  end
  if row.state == "complete" and row.value == nil then return "it is complete without a value" end
  if row.error ~= nil and type(row.error) ~= "string" then return "the error is no text" end
end

-- Decode a row of the file. Errors name the file and the trial.
local function read_row(self, row)
  local fault, params, values = fault_of(row), nil, nil
  if not fault then params, fault = decoded("the parameters", row.params, SIMPLE) end
  if not fault then values, fault = decoded("the values", row.more, NUMBERS) end
  if fault then
    errors.raise_as("format", "gp.sweep: %s is damaged: trial %s: %s", self.db.path,
      tostring(row.number), fault)
  end
  row.params, row.values = params, values and text.decode_numbers(row.more)
end

--- Read the rows that changed since the last time, and return all trials by number.
---@param see? fun(row: table) called with each row that changed
---@return table<integer, table>
function Store:refresh(see)
  local rows = self.db:run("SELECT * FROM trial WHERE changed > ? ORDER BY changed", self.changed)
  for _, row in ipairs(rows) do
    read_row(self, row)
    self.trials[row.number], self.changed = row, row.changed
    if see then see(row) end
  end
  return self.trials
end

--- The steps and values that a trial reported, in the order of the steps.
---@param number integer
---@return {step: number, value: number?}[]
function Store:reports(number)
  return self.db:run("SELECT step, value FROM report WHERE trial = ? ORDER BY step", number)
end

--- How many trials there are in each state.
---@return table<string, integer>
function Store:counts()
  local counts = {}
  for _, row in ipairs(self.db:run "SELECT state, count(*) AS n FROM trial GROUP BY state") do
    counts[row.state] = row.n
  end
  return counts
end

-- ---- claiming ----------------------------------------------------------------------------------

-- Mark the trials whose process is gone as killed.
local function take_from_the_dead(self)
  local rows = self.db:run([[SELECT DISTINCT worker.* FROM worker JOIN trial
    ON trial.worker = worker.id WHERE trial.state = 'running' AND worker.id IS NOT ?]],
    self.worker and self.worker.id)
  for _, row in ipairs(rows) do
    if not worker.is_alive(row, self.seen) then
      self.db:run("UPDATE trial SET state = 'killed', error = ?, changed = " .. CHANGED
        .. " WHERE worker = ? AND state = 'running'",
        ("process %d on %s ended"):format(row.pid, row.host), row.id)
    end
  end
end

-- Take a trial that is to be run again; its number of attempts grows by one.
local function take_again(self, retries)
  local row = self.db:run([[SELECT number, attempts FROM trial WHERE state IN ('interrupted',
    'waiting') OR (state = 'killed' AND attempts <= ?) ORDER BY number LIMIT 1]], retries)[1]
  if not row then return nil end
  self.db:run("UPDATE trial SET state = 'running', worker = ?, attempts = attempts + 1, "
    .. "error = NULL, began = ?, changed = " .. CHANGED .. " WHERE number = ?", self.worker.id,
    core.seconds_since_1970(), row.number)
  return row.number
end

local function take_new(self, most)
  local number = self.db:value "SELECT coalesce(max(number), 0) + 1 FROM trial"
  if number > most then return nil end
  self.db:run("INSERT INTO trial (number, state, worker, attempts, began, changed) VALUES (?, "
    .. "'running', ?, 1, ?, " .. CHANGED .. ")", number, self.worker.id,
    core.seconds_since_1970())
  return number
end

--- Take the next trial: one that was interrupted, else a new one up to `most`.
---@param most integer
---@param retries integer how often a trial whose process died is run again
---@param rule? table that may give trials a larger budget where none is left
---@return integer? number nil where no trial can be taken now
function Store:claim(most, retries, rule)
  return self.db:transaction(function()
    local number = take_again(self, retries) or take_new(self, most)
    if number or not (rule and rule.promote and rule:promote(retries)) then return number end
    return take_again(self, retries)
  end)
end

--- Mark trials of processes that died as killed.
function Store:bury()
  self.db:transaction(function() take_from_the_dead(self) end)
end

--- Write how a process of this machine ended into the trial that it ran, even if another process
--- has marked that trial already.
---@param pid integer
---@param how string "signal 9"
function Store:explain(pid, how)
  self:bury()
  self.db:run("UPDATE trial SET error = error || ?, changed = " .. CHANGED .. [[ WHERE state =
    'killed' AND worker IN (SELECT id FROM worker WHERE pid = ? AND machine = ?)]],
    (" (%s)"):format(how), pid, worker.me().machine)
end

--- Whether the process with this pid has entered.
---@param pid integer
---@return boolean
function Store:has_entered(pid)
  return self.db:value("SELECT count(*) FROM worker WHERE pid = ? AND machine = ?", pid,
    worker.me().machine) > 0
end

--- List the trials that run on this machine.
---@return {number: integer, attempts: integer, pid: integer}[]
function Store:running()
  return self.db:run([[SELECT number, attempts, pid FROM trial JOIN worker ON trial.worker =
    worker.id WHERE state = 'running' AND machine = ?]], worker.me().machine)
end

--- Give up a trial that runs too long, in whatever process.
---@param number integer
---@param error string
function Store:expire(number, error)
  self.db:run("UPDATE trial SET state = 'timeout', error = ?, changed = " .. CHANGED
    .. " WHERE number = ? AND state = 'running'", error, number)
end

--- How many trials can be taken now, and how many are being run.
---@param most integer
---@param retries integer
---@return integer left
---@return integer running
function Store:left(most, retries)
  local again = self.db:value([[SELECT count(*) FROM trial WHERE state IN ('interrupted', 'waiting')
    OR (state = 'killed' AND attempts <= ?)]], retries)
  local made = self.db:value "SELECT coalesce(max(number), 0) FROM trial"
  return again + math.max(0, most - made),
    self.db:value "SELECT count(*) FROM trial WHERE state = 'running'"
end

-- ---- writing -----------------------------------------------------------------------------------

-- A trial may have been taken away meanwhile; then it is another process's, and nothing is written.
local OWN = ", changed = " .. CHANGED .. " WHERE number = ? AND worker = ? AND state = 'running'"

--- Write the parameters of a trial.
---@param number integer
---@param params table<string, any>
function Store:set_params(number, params)
  self.db:run("UPDATE trial SET params = ?" .. OWN, text.encode(params), number, self.worker.id)
end

local LONGEST = 65536 -- bytes of an error that are kept

--- Write how a trial ended.
---@param number integer
---@param outcome {state: string, value: number?, values: table?, error: string?, seconds: number,
---  step: number?}
function Store:finish(number, outcome)
  local error = outcome.error and outcome.error:sub(1, LONGEST)
  self.db:run("UPDATE trial SET state = ?, value = ?, more = ?, error = ?, seconds = ?, step = ?"
    .. OWN, outcome.state, outcome.value, outcome.values and text.encode(outcome.values),
    error, outcome.seconds, outcome.step, number, self.worker.id)
end

--- Write a value that a trial reported.
---@param number integer
---@param step number
---@param value number? nil: not a number
function Store:report(number, step, value)
  self.db:run("INSERT OR REPLACE INTO report (trial, step, value) VALUES (?, ?, ?)", number, step,
    value)
end

--- Delete what a trial reported before it was interrupted.
---@param number integer
function Store:forget_reports(number)
  self.db:run("DELETE FROM report WHERE trial = ?", number)
  self.db:run("DELETE FROM rung WHERE trial = ?", number)
end

--- From now on this process runs trials.
function Store:enter() self.worker = worker.enter(self.db) end

--- This process stops running trials; a trial that it has not finished is left to others.
function Store:leave()
  self.db:run("UPDATE trial SET state = 'interrupted', attempts = attempts - 1, changed = "
    .. CHANGED .. " WHERE worker = ? AND state = 'running'", self.worker.id)
  worker.leave(self.db, self.worker)
  self.worker = nil
end

rungs.add(Store)

--- Close the file.
function Store:close() self.db:close() end

return store
