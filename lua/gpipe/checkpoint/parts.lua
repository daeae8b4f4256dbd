-- lua/gpipe/checkpoint/parts.lua - the options that name what a checkpoint holds, with their
-- checks.

local optimizer = require "gpipe.optim.optimizer"

local function has_methods(...)
  local wanted = { ... }
  return function(value)
    for _, name in ipairs(wanted) do
      local good, method = pcall(function() return value[name] end)
      if not good or type(method) ~= "function" then
        return ("an object with the methods %s"):format(table.concat(wanted, " and "))
      end
    end
  end
end

return {
  pipe = { check = has_methods("load_progress", "state_dict") },
  model = { check = has_methods("parameters", "load_state_dict") },
  opt = {
    check = function(value)
      return not optimizer.moments(value) and "an optimizer of gp.optim with moments of its "
        .. "parameters (optim.LBFGS goes into option 'state' of gp.run, or its state into 'extra')"
        or nil
    end,
  },
  data = {
    check = function(value)
      return has_methods("state", "restore")(value)
        and "batches, as gp.data.epochs or d:batches make them (methods state and restore)"
    end,
  },
}
