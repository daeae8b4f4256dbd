-- lua/gpipe/models/init.lua - `gp.models`: networks of the field, each an nn.Sequential that can be
-- cut between any two layers. A file is read when its model is first named.

local errors = require "gpipe.errors"

local NAMES = { "amoebanetd", "resnet", "unet", "vgg" }

local meta = { __name = "gpipe.models" }

function meta.__index(models, name)
  for _, known in ipairs(NAMES) do
    if name == known then
      local made = require("gpipe.models." .. name)
      rawset(models, name, made)
      return made
    end
  end
  if type(name) ~= "string" then return nil end
  local near = errors.suggest(name, NAMES)
  errors.raise("gp.models: there is no '%s'%s", name,
    near and (" (did you mean '%s'?)"):format(near) or "")
end

function meta.__tostring() return require("gpipe.show").names("gp.models", NAMES) end

return setmetatable({}, meta)
