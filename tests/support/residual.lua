-- tests/support/residual.lua - a small residual network whose layers are flat, as those of
-- gp.models.resnet: a cut may fall between a norm, the sum behind it and the ReLU behind that.

local gp = require "gpipe"
local nn = gp.nn

-- The end of a block, which adds the block's input; down: a module that it goes through.
local function ending(names, down)
  local Ending = nn.class("Ending", nil, { pop = { "x" } })
  function Ending:init() self.down = down end
  function Ending:forward(x)
    local around = self:pop "x"
    return x + (self.down and self.down(around) or around)
  end
  return Ending():isolate(names)
end

--- Return a function that makes 14 layers for images of 3 x 4 x 4, with 2 outputs.
---@param width integer channels of the first block; the second has one more
---@param dtype? string of the parameters
return function(width, dtype)
  local d = { dtype = dtype }
  local function conv(from, to)
    return nn.Conv2d(from, to, 3, { padding = 1, bias = false, dtype = dtype })
  end
  return function()
    gp.seed(6)
    local a, b, wide = nn.namespace(), nn.namespace(), width + 1
    return nn.Sequential {
      conv(3, width), nn.BatchNorm2d(width, d), nn.ReLU(),                               -- 1 to 3
      nn.Stash("x", { namespace = a }), conv(width, width), nn.BatchNorm2d(width, d),    -- 4 to 6
      ending(a), nn.ReLU(),                                                              -- 7, 8
      nn.Stash("x", { namespace = b }), conv(width, wide), nn.BatchNorm2d(wide, d),      -- 9 to 11
      ending(b, nn.Sequential { conv(width, wide), nn.BatchNorm2d(wide, d) }), nn.ReLU(), -- 12, 13
      nn.Sequential {
        nn.GroupNorm(1, wide, d), nn.ReLU(), nn.Flatten(), nn.Linear(16 * wide, 2, d),
      },
    }
  end
end
