-- lua/gpipe/command/plot.lua - `gpipe-lua plot DIR... NAME...`: curves in the terminal or as files.

local core = require "gpipe.core"
local curves = require "gpipe.run_reader.curves"
local terminal = require "gpipe.draw.terminal"
local groups = require "gpipe.run_reader.groups"
local pictures = require "gpipe.draw.runs"
local runs = require "gpipe.run_reader"
local words = require "gpipe.command.words"

local command = {
  name = "plot", usage = "plot [DIR...] [NAME...]",
  about = "Draws what training runs logged: NAME is one picture, NAME,NAME one of both (default:\n"
    .. "the losses). DIR is the folder of a run or of several (default: runs).",
  flags = {
    { "--x AXIS", "step", "step or time" },
    { "--smooth S", 0.0, "share of the past in each point, below 1" },
    { "--log", false, "logarithmic values" },
    { "--by KEYS", nil, "one curve for the runs that agree in these settings: lr,width" },
    { "--svg FILE", nil, "write a figure" },
    { "--html FILE", nil, "write a page with all curves, zoom and the configs" },
    { "--force", false, "replace FILE if it exists" },
  },
}

local function is_folder(path) return core.folder_names(path) ~= nil end

-- Sort the words into folders and names. A word with a slash is a folder only if it begins or ends
-- like a path, or if there is such a folder: names may hold slashes.
local function sort(operands)
  local folders, names = {}, {}
  for _, word in ipairs(operands) do
    local meant = word:find "^%.?%.?/" or word:find "/$" or is_folder(word)
    local list = meant and folders or names
    list[#list + 1] = word
  end
  if #folders == 0 then folders[1] = "runs" end
  return folders, names
end

-- The runs of all folders, each once.
local function open(folders)
  local list, seen = {}, {}
  for _, path in ipairs(folders) do
    local found, message = runs.open(path)
    if not found then return nil, message end
    for _, run in ipairs(found) do
      if not seen[run.path] then seen[run.path], list[#list + 1] = true, run end
    end
  end
  if #list == 0 then return nil, ("there are no runs in %s"):format(table.concat(folders, ", ")) end
  return list
end

local function check(values, list, names)
  if values.x ~= "step" and values.x ~= "time" then
    return ("--x is '%s', expected step or time"):format(values.x)
  end
  if values.smooth >= 1 or values.smooth ~= values.smooth then
    return ("--smooth is %g, expected a number of at least 0 and below 1"):format(values.smooth)
  end
  local _, fault = curves.panels(list, names)
  if not fault and values.by then _, fault = groups.of(list, values.by) end
  return fault
end

local function tell_faults(list)
  for _, run in ipairs(list) do
    for _, fault in ipairs(run.faults) do
      io.stderr:write("gpipe-lua plot: ", terminal.clean(fault), "\n")
    end
  end
end

-- Draw what the flags ask for; nil and the fault where a file cannot be written.
local function draw(values, list, names)
  local figure = { x = values.x, smooth = values.smooth, log = values.log,
    by = values.by }
  if not values.svg and not values.html then
    print(pictures.text("plot", list, names, figure))
    return true
  end
  if values.svg then
    figure.force = values.force
    local good, message = pictures.svg("plot", list, values.svg, names, figure)
    if not good then return nil, message end
  end
  if values.html then return pictures.html("plot", list, values.html, { force = values.force }) end
  return true
end

return function(given)
  local values, operands = words.read(command, given)
  if not values then return operands end
  local folders, names = sort(operands)
  local list, fault = open(folders)
  fault = fault or check(values, list, names)
  if fault then return words.refuse(command, fault) end
  local good, message, code = pcall(draw, values, list, names)
  tell_faults(list)
  if not good then return words.fail(command, tostring(message)) end
  return message and 0 or words.fail(command, code)
end
