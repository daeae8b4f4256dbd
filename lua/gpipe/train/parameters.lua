-- lua/gpipe/train/parameters.lua - reads the parameters given to a part of gp.train: those of a
-- pipeline, of a model, or a list.

local dry_mode = require "gpipe.dry_mode"
local errors = require "gpipe.errors"
local object = require "gpipe.pipeline.object"
local params = require "gpipe.optim.params"
local stream = require "gpipe.pipeline.stream"

local parameters = {}

local function method_of(value, name)
  local good, method = pcall(function() return value[name] end)
  return good and type(method) == "function" and method or nil
end

---@param value any
---@return boolean
function parameters.is_pipeline(value)
  return type(value) == "table" and method_of(value, "load_progress") ~= nil
end

--- Return the entries {name, param, value, grad}, and a function that waits for running updates.
---@param who string
---@param given gpipe.Pipeline|nn.Module|table a list such as pipe:parameters()
---@return table[] entries
---@return fun() settle
function parameters.read(who, given)
  local list = given
  if type(given) == "table" and method_of(given, "parameters") then list = given:parameters() end
  if type(list) ~= "table" or #list == 0 then
    errors.raise("%s: the first argument is %s, expected a pipeline, a model or a list such as "
      .. "pipe:parameters()", who, errors.show(given))
  end
  for i, entry in ipairs(list) do params.check_entry(who, "the list", i, entry) end
  if not parameters.is_pipeline(given) then return list, function() end end
  -- a dry run has no room for another copy of the values
  if dry_mode.is_on() then return {}, function() end end
  local pipe = object.inside(given)
  return list, function()
    if pipe.core then stream.settle(pipe) end
  end
end

--- A copy on the host, which a checkpoint can hold.
---@param tensor gpipe.Tensor
---@return gpipe.Tensor
function parameters.host_copy(tensor)
  return tensor.device == "cpu" and tensor:clone() or tensor:to "cpu"
end

return parameters
