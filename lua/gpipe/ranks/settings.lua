-- lua/gpipe/ranks/settings.lua - the settings of an optimizer that runs in Lua, which the ranks of
-- a job must share. Those that run in C compare theirs with the message of each update.

local core = require "gpipe.core"
local ranks = require "gpipe.ranks"

local settings = {}

local function text_of(value)
  if type(value) ~= "table" then return tostring(value) end
  local words = {}
  for i, element in ipairs(value) do words[i] = tostring(element) end
  return table.concat(words, " ")
end

-- "group 1 lr 0.1", one line for each setting, in the order of their names.
local function add_lines(lines, group, given)
  local names = {}
  for name, value in pairs(given) do
    if type(value) ~= "function" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    lines[#lines + 1] = ("group %d %s %s"):format(group, name, text_of(given[name]))
  end
end

local function is_spread(params)
  for _, param in ipairs(params) do
    if core.param_holder(param) then return true end
  end
  return false
end

--- Compare the settings of an update with those of the other ranks, where a pipeline over several
--- ranks has the parameters. Errors: they differ.
---@param who string
---@param params gpipe.Tensor[] of the optimizer
---@param steps integer so far
---@param groups table[] settings of each group
function settings.agree(who, params, steps, groups)
  if ranks.ranks() == 1 or not is_spread(params) then return end
  local lines = { ("update %d"):format(steps + 1) }
  for i, given in ipairs(groups) do add_lines(lines, i, given) end
  ranks.agree(who, table.concat(lines, "\n"))
end

return settings
