-- lua/gpipe/command/runs.lua - `gpipe-lua runs [DIR]`: which runs there are and how they go.

local terminal = require "gpipe.draw.terminal"
local groups = require "gpipe.run_reader.groups"
local json = require "gpipe.io.json"
local screen = require "gpipe.screen"
local words = require "gpipe.command.words"

local command = {
  name = "runs", usage = "runs [DIR]",
  about = "Lists the training runs below DIR (runs), the one that wrote last first.",
  flags = {
    { "--json", false, "one JSON object a line, with all fields" },
    { "--by KEYS", nil, "a line for the runs that agree in these settings: lr,width" },
  },
}

local FIELDS = { "name", "path", "state", "reason", "step", "steps", "loss", "best", "rate", "unit",
  "seconds", "created", "updated", "config", "faults" }

local function print_json(list)
  for _, run in ipairs(list) do
    local object = {}
    for _, field in ipairs(FIELDS) do object[field] = run[field] end
    if #run.faults == 0 then object.faults = nil end -- an empty table would be an object
    print(json.encode(object))
  end
end

-- Print why runs ended: the first line of each reason (a traceback may follow), once for all runs
-- with the same reason.
local function tell_reasons(list)
  local order, names = {}, {}
  for _, run in ipairs(list) do
    local reason = run.state ~= "finished" and run.reason and run.reason:match "^[^\n]*"
    if reason then
      if not names[reason] then order[#order + 1], names[reason] = reason, {} end
      table.insert(names[reason], run.name)
    end
  end
  for _, reason in ipairs(order) do
    local of = names[reason]
    local rest = #of > 2 and (" and %d more"):format(#of - 1) or of[2] and ", " .. of[2] or ""
    print(screen.fold(("%s: %s"):format(terminal.clean(of[1] .. rest), terminal.clean(reason))))
  end
end

local function tell_faults(list)
  for _, run in ipairs(list) do
    for _, fault in ipairs(run.faults) do
      io.stderr:write("gpipe-lua runs: ", terminal.clean(fault), "\n")
    end
  end
end

local function print_table(list)
  print(require("gpipe.run_reader.table").text(list, { colour = screen.has_colours(io.stdout) }))
  tell_reasons(list)
end

return function(given)
  local values, operands = words.read(command, given)
  if not values then return operands end
  local list, code = words.runs(command, operands --[[@as string[] ]])
  if not list then return code end
  if values.by then
    local found, fault = groups.of(list, values.by)
    if not found then return words.refuse(command, fault) end
    print(require("gpipe.run_reader.table").groups(found))
  elseif values.json then
    print_json(list)
  else
    print_table(list)
  end
  tell_faults(list)
  return 0
end
