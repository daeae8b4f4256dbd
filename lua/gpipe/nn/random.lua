-- lua/gpipe/nn/random.lua - the seed and number that a new parameter is drawn from.
--
-- An initial value is a function of (seed, number): the seed at the time of the declaration, and
-- the number of parameters declared since that seed was set. So the same script makes the same
-- model, whatever the cut and the devices, and a second model built after gp.seed(n) equals the
-- first.

local random = {}

local seed, number = 0, 0

--- Set the seed of the parameters that are declared from now on, and restart the count.
--- `gp.seed(n)` calls this.
--- ```lua
--- require("gpipe.nn.random").seed(1)
--- ```
---@param n integer
---@param declared? integer parameters that count as declared since; 0
function random.seed(n, declared)
  seed, number = n, declared or 0
end

--- The state: the seed and number of the next parameter.
--- ```lua
--- local seed, number = require("gpipe.nn.random").state()
--- ```
---@return integer seed
---@return integer number
function random.state() return seed, number end

--- Take the next number.
---@return integer seed
---@return integer number of parameters declared before this one
function random.next()
  number = number + 1
  return seed, number - 1
end

return random
