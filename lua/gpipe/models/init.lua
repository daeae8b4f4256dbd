-- lua/gpipe/models/init.lua - `gp.models`: well-known networks, each an nn.Sequential that can be
-- cut between any two layers. A file is loaded when its model is first named.

local errors = require "gpipe.errors"

local NAMES = { "amoebanetd", "generate", "gpt2", "mlp_mixer", "resnet", "transformer",
  "transformer_lm", "unet", "vgg", "vit" }

local parts = {}
for _, name in ipairs(NAMES) do
  parts[name] = function() return require("gpipe.models." .. name) end
end

local meta = { __name = "gpipe.models", parts = parts } -- parts: looked up by the interactive mode

function meta.__index(models, name)
  if parts[name] then
    rawset(models, name, parts[name]())
    return rawget(models, name)
  end
  if type(name) ~= "string" then return nil end
  local near = errors.suggest(name, NAMES)
  errors.raise("gp.models: there is no '%s'%s", name,
    near and (" (did you mean '%s'?)"):format(near) or "")
end

function meta.__tostring() return require("gpipe.show").names("gp.models", NAMES) end

return setmetatable({}, meta)
