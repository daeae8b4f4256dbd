-- lua/gpipe/run_writer/steps.lua - `for step, x, y in run:steps() do`: the steps of a run, from
-- where it stands to its end.
--
-- A run may be interrupted between two steps: the step before is complete, and the next batch is
-- not yet taken from the data.

local errors = require "gpipe.errors"

local function next_batch(data)
  if not data then return true end
  if type(data.next) == "function" then return data:next() end
  return data()
end

local function total_of(run, total)
  if total then return total end
  local data = run.data
  local good, count = pcall(function() return data:steps() end)
  return run.total or good and count or nil
end

local function check(total)
  if total == nil or (math.type(total) == "integer" and total >= 0) then return end
  errors.raise("run:steps: total is %s, expected an integer >= 0", errors.show(total))
end

--- The iterator behind run:steps.
---@param run gpipe.Run
---@param total? integer
---@return function
---@return nil
---@return integer
return function(run, total)
  check(total)
  run.iterates = true
  local step = run:resume()
  total = total_of(run, total)
  run.total = total or run.total
  local inside = false
  return function()
    if inside then run:end_step(step) end
    inside = false
    if run.over or (total and step >= total) then return nil end
    local x, y = next_batch(run.data)
    if x == nil then return nil end
    if not run.data then x = nil end
    run:begin_step(step + 1, x, y)
    step, inside = step + 1, true
    return step, x, y
  end, nil, step
end
