-- lua/gpipe/command/words.lua - read the words behind a command, as in `gpipe-lua runs DIR`.
--
-- A module gpipe/command/<word>.lua returns a function that takes these words and returns the exit
-- code: 0, 1 where the command failed, 2 where the words are wrong. bindings/cli/run.c calls it.

local terminal = require "gpipe.draw.terminal"
local flags = require "gpipe.flags"

local words = {}

---@class gpipe.Command
---@field name string "runs"
---@field usage string "runs [DIR]": what the words are
---@field about string what the command does, one line or more
---@field flags gpipe.Flag[]

-- Faults quote names and values, which may hold control characters.
local function clean(fault) return (fault:gsub("[^\n]+", terminal.clean)) end

--- Report what is wrong with the words, with the usage; returns the exit code.
---@param command gpipe.Command
---@param fault string
---@return integer
function words.refuse(command, fault)
  io.stderr:write(("gpipe-lua %s: %s\n%s\n"):format(command.name, clean(fault),
    flags.usage(command.about, command.flags, command.usage)))
  return 2
end

--- Report what went wrong; returns the exit code.
---@param command gpipe.Command
---@param fault string
---@return integer
function words.fail(command, fault)
  io.stderr:write(("gpipe-lua %s: %s\n"):format(command.name, clean(fault)))
  return 1
end

--- Open the runs below the folder that the words name, or below `runs`. Where there is no such
--- folder, nil and the exit code.
---@param command gpipe.Command
---@param operands string[]
---@return gpipe.Runs?
---@return integer? code
function words.runs(command, operands)
  if #operands > 1 then
    return nil, words.refuse(command, ("%d folders, expected one"):format(#operands))
  end
  local list, message = require("gpipe.run_reader").open(operands[1])
  if not list then return nil, words.refuse(command, message) end
  return list
end

--- Read the words. If nothing is left to do (--help, or a mistake), nil and the exit code.
---@param command gpipe.Command
---@param given string[]
---@return table<string, any>? values of the flags by name
---@return string[]|integer operands the other words, or the exit code
function words.read(command, given)
  for _, word in ipairs(given) do
    if word == "--" then break end
    if word == "--help" or word == "-h" then
      print(flags.usage(command.about, command.flags, command.usage))
      return nil, 0
    end
  end
  local operands = {}
  local values, fault = flags.read(command.flags, given, operands)
  if not values then return nil, words.refuse(command, fault) end
  return values, operands
end

return words
