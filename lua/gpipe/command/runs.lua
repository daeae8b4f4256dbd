-- lua/gpipe/command/runs.lua - `gpipe-lua runs [DIR]`: which runs there are and how they go.

local fit = require "gpipe.schedule.draw.fit"
local json = require "gpipe.io.json"
local screen = require "gpipe.screen"
local words = require "gpipe.command.words"

local command = {
  name = "runs", usage = "runs [DIR]",
  about = "Lists the training runs below DIR (runs), the one that wrote last first.",
  flags = {
    { "--json", false, "one JSON object a line, with all that is known" },
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

local function print_table(list)
  print(require("gpipe.runs.table").text(list, { colour = screen.has_colours(io.stdout) }))
  for _, run in ipairs(list) do
    if run.reason and run.state ~= "finished" then
      print(screen.fold(("%s: %s"):format(fit.clean(run.name), fit.clean(run.reason))))
    end
    for _, fault in ipairs(run.faults) do
      io.stderr:write("gpipe-lua runs: ", fit.clean(fault), "\n")
    end
  end
end

return function(given)
  local values, operands = words.read(command, given)
  if not values then return operands end
  local list, code = words.runs(command, operands --[[@as string[] ]])
  if not list then return code end
  if values.json then print_json(list) else print_table(list) end
  return 0
end
