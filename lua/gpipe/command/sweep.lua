-- lua/gpipe/command/sweep.lua - `gpipe-lua sweep FILE...`: run the searches that scripts return.

local errors = require "gpipe.errors"
local words = require "gpipe.command.words"

local command = {
  name = "sweep", usage = "sweep FILE...",
  about = "Runs the trials that are left of the sweep that each FILE returns, and prints its "
    .. "table.\n"
    .. "FILE is a Lua script that returns a gp.sweep with an objective, or {sweep, function}.",
  flags = {
    { "--trials N", 0, "trials in all; more than before extend a finished sweep", min = 1 },
    { "--parallel N", 0, "processes at once", min = 1 },
    { "--timeout S", 0.0, "seconds after which a trial is ended" },
    { "--html FILE", nil, "write the page too (of one sweep)", writes = "file" },
    { "--force", false, "replace the FILE of --html, whatever it holds" },
    { "--quiet", false, "print the tables only" },
  },
}

local function is_sweep(value) return getmetatable(value) and value.space and value.store end

-- The sweep and the function that a script returned; nil and why not.
local function parts_of(path, result)
  if type(result) ~= "table" then
    return nil, ("%s returned %s, expected a sweep or {sweep, function}"):format(path,
      errors.show(result))
  end
  if is_sweep(result) then return result, result.options.objective end
  local sweep, f = rawget(result, 1), rawget(result, 2)
  if type(sweep) ~= "table" or not is_sweep(sweep) then
    return nil, ("%s returned a table without a sweep, expected {sweep, function}"):format(path)
  end
  return sweep, f or sweep.options.objective
end

-- Options of the command line replace those of the script.
local function settle(sweep, values)
  if values.trials > 0 then
    sweep.most = math.min(values.trials, sweep.sampler.size or values.trials)
  end
  if values.parallel > 0 then sweep.options.parallel = values.parallel end
  if values.timeout > 0 then sweep.options.timeout = values.timeout end
  sweep.options.quiet = sweep.options.quiet or values.quiet
end

-- Run the script and return its result; its `arg` is as if it had been started alone, without
-- arguments.
local function run_script(path, chunk)
  local before = arg
  _G.arg = { [0] = path }
  for i = -1, -math.huge, -1 do
    if not before[i] then break end
    _G.arg[i] = before[i]
  end
  local result = chunk(path)
  _G.arg = before
  return result
end

-- Run one file: 0, or the exit code.
local function run(path, values)
  local chunk, message = loadfile(path)
  if not chunk then return words.fail(command, message) end
  local sweep, f = parts_of(path, run_script(path, chunk))
  if not sweep then return words.fail(command, f) end
  settle(sweep, values)
  local _, running = sweep.store:left(0, 0)
  if not f and (#sweep.trials < sweep.most or running > 0) then
    return words.fail(command, ("%s returned a sweep that has not ended, without its function; "
      .. "expected {sweep, function}"):format(path))
  end
  if f then sweep:run(f) end
  print(sweep)
  if not values.html then return 0 end
  local written, why = sweep:html(values.html, { force = values.force })
  if not written then return words.fail(command, why) end
  return 0
end

return function(given)
  local values, operands = words.read(command, given)
  if not values then return operands end
  if #operands == 0 then return words.refuse(command, "no file, expected one or more") end
  if values.html and #operands > 1 then
    return words.refuse(command, ("--html with %d files, expected one"):format(#operands))
  end
  local code = 0
  for _, path in ipairs(operands) do code = math.max(code, run(path, values)) end
  return code
end
