-- lua/gpipe/models/patches.lua - an image as a sequence of patches, for models without
-- convolutions.

local errors = require "gpipe.errors"
local nn = require "gpipe.nn"

---@class gpipe.models.Patches: nn.Module
local Patches = nn.class("Patches")

function Patches:init(channels, width, patch)
  self.proj = nn.Conv2d(channels, width, patch, { stride = patch })
end

-- [N, channels, H, W] -> [N, H/patch W/patch, width]
function Patches:forward(x)
  local y = self.proj(x)
  local shape = y.shape
  return y:reshape({ shape[1], shape[2], shape[3] * shape[4] }):permute { 1, 3, 2 }
end

--- How many patches an image has. Errors: a side that patches do not divide.
---@return integer
local function count(who, image, patch)
  if image % patch ~= 0 then
    errors.raise("%s: image is %d and patch is %d, expected patch to divide image", who, image,
      patch)
  end
  return (image // patch) ^ 2 // 1 | 0
end

-- The mean over a sequence: [N, T, C] -> [N, C].
local Mean = nn.class("MeanOfPatches")
function Mean:forward(x) return x:mean(2) end -- luacheck: ignore 212

return { Patches = Patches, Mean = Mean, count = count }
