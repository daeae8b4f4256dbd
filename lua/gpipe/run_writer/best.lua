-- lua/gpipe/run_writer/best.lua - `run:best()`: the best value of a measure so far, and the
-- checkpoint that had it.

local contents = require "gpipe.run_writer.contents"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local standing = require "gpipe.run_writer.standing"

-- A value that is no number is never the best.
local function is_better(value, old, mode)
  if value ~= value then return false end
  if not old then return true end
  if mode == "max" then return value > old.value end
  return value < old.value
end

--- What run:best does.
---@param run gpipe.Run
---@param name string
---@param value number
---@param mode? "min"|"max"
---@return boolean better
return function(run, name, value, mode)
  if type(name) ~= "string" then
    errors.raise("run:best: name is %s, expected a word", errors.show(name))
  end
  if type(value) ~= "number" then
    errors.raise("run:best: value of '%s' is %s, expected a number", name, errors.show(value))
  end
  standing.begin(run, "run:best")
  mode = options.argument("run:best", "mode", mode, { choices = { "min", "max" },
    default = "min" })
  if not is_better(value, run.best_of[name], mode) then return false end
  run.best_of[name] = { name = name, value = value, step = standing.current(run) }
  run.best_last = run.best_of[name]
  if run.saves then
    run.saves:best(name, contents.of(run, "run:best"), run.background)
    standing.write_state(run)
  end
  return true
end
