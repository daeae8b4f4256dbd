-- lua/gpipe/nn/layer/shape/identity.lua - `nn.Identity`: what comes in goes out.

local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"

--- Returns what it is given, all of it: where a model wants a layer and none is to be there.
--- ```lua
--- local x = gp.ones {2}
--- assert(nn.Identity()(x) == x)
--- ```
---@class nn.Identity: nn.Module
local Identity = class.new("Identity", Module, true)

function Identity.forward(_, ...) return ... end

return Identity
