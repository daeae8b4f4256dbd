-- gpipe/data/state.lua - the check that every restore(state) of a walk makes first: that the table
-- is complete, as its state() returned it.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

--- Check a state and return it. Errors: something else, or a table that lacks one of the fields.
---@param who string "batches:restore"
---@param state any
---@param spec table<string, gpipe.OptionRule>
---@return table
return function(who, state, spec)
  if type(state) ~= "table" then
    errors.raise("%s: the state is %s, expected what state() gave", who, errors.show(state))
  end
  for name, rule in pairs(spec) do
    if rule.required and rawget(state, name) == nil then
      errors.raise("%s: the state has no '%s', expected what state() gave", who, name)
    end
  end
  return options.check(who, state, spec)
end
