-- lua/gpipe/sweep/store/rungs.lua - the queries of the rules that stop trials.

local rungs = {}

local Store = {}

--- Enter a value of a trial at a rung, and list the values of all trials there.
---@param step number
---@param number integer
---@param value number
---@return {trial: integer, value: number}[]
function Store:rung(step, number, value)
  return self.db:transaction(function()
    self.db:run("INSERT OR REPLACE INTO rung (step, trial, value) VALUES (?, ?, ?)", step, number,
      value)
    return self.db:run("SELECT trial, value FROM rung WHERE step = ?", step)
  end)
end

--- The mean of each complete trial's values up to a step.
---@param step number
---@param sign integer
---@return {mean: number}[]
function Store:means(step, sign)
  return self.db:run([[SELECT ? * avg(report.value) AS mean FROM report JOIN trial
    ON trial.number = report.trial WHERE trial.state = 'complete' AND report.step <= ?
    GROUP BY report.trial HAVING count(report.value) > 0]], sign, step)
end

--- The last step that a trial reported, over all attempts.
---@param number integer
---@return number?
function Store:last_step(number)
  return self.db:value("SELECT max(step) FROM report WHERE trial = ?", number)
end

--- All trials with their rungs; is_open is 1 for a trial that runs or is to be run again.
---@param retries integer
---@return {number: integer, state: string, value: number?, rung: integer?, is_open: integer}[]
function Store:rungs(retries)
  return self.db:run([[SELECT number, state, value, rung, state IN ('running', 'interrupted',
    'waiting') OR (state = 'killed' AND attempts <= ?) AS is_open FROM trial]], retries)
end

--- Let a trial run again on a higher rung, with all its attempts.
---@param number integer
---@param rung integer
function Store:promote(number, rung)
  self.db:run([[UPDATE trial SET state = 'waiting', rung = ?, attempts = 0,
    changed = (SELECT max(changed) + 1 FROM trial) WHERE number = ?]], rung, number)
end

--- Let a rule give trials a larger budget, where none is left; whether it did.
---@param rule table?
---@param retries integer
---@return boolean
function Store:promotes(rule, retries)
  if not (rule and rule.promote) then return false end
  return self.db:transaction(function() return rule:promote(retries) end)
end

--- Give a class these methods.
---@param class table
function rungs.add(class)
  for name, method in pairs(Store) do class[name] = method end
end

return rungs
