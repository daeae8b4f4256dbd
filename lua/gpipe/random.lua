-- lua/gpipe/random.lua - `gp.seed`, and the streams of random numbers for everything without its
-- own seed.
--
-- A draw is a function of (seed, stream number), where the number counts the draws since the seed
-- was set. So the same script gives the same bits, and one more draw changes none of the earlier
-- ones.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local parameters = require "gpipe.nn.random"

local random = {}

-- Tensors and parameters are numbered separately: the streams of tensors begin here.
local FIRST_STREAM = 1 << 40
-- The first shuffle is stream 0 of its seed, whether the seed was given or comes from gp.seed; the
-- streams of later ones begin here.
local SHUFFLES = 1 << 41

local DEFAULT_SEED = 0
local seed, drawn, shuffled = DEFAULT_SEED, 0, 0

--- Set the seed of everything that is drawn later without its own seed: initial values, dropout,
--- rand, randn, shuffles. Until then the seed is 0, or the command line's `--seed`.
--- ```lua
--- gp.seed(1)
--- local a = gp.randn {3}
--- gp.seed(1)
--- assert(gp.equal(a, gp.randn {3}))
--- ```
---@param n integer
function random.seed(n)
  if core.tracing() then
    errors.raise("gp.seed: it was called in forward, which runs once per batch shape and not in "
      .. "every step; expected it outside (the pipeline has a seed option)")
  end
  seed = options.argument("gp.seed", "n", n, { type = "integer", required = true })
  drawn, shuffled = 0, 0
  parameters.seed(seed)
  core.eager_seed(seed)
end

--- The current seed.
---@return integer
function random.current() return seed end

--- The positions of all streams, as a plain table of numbers for a checkpoint.
--- ```lua
--- local random = require "gpipe.random"
--- local before = random.state()
--- local a = gp.rand {2}
--- random.restore(before)
--- assert(gp.equal(a, gp.rand {2}))
--- ```
---@return table
function random.state()
  local parameter_seed, declared = parameters.state()
  return {
    seed = seed, drawn = drawn, shuffled = shuffled, parameter_seed = parameter_seed,
    declared = declared, clock = core.eager_clock(),
  }
end

local COUNTS = { "seed", "drawn", "shuffled", "parameter_seed", "declared", "clock" }

--- Raise if a value is not a state of random.state().
---@param s any
function random.check(s)
  for _, name in ipairs(COUNTS) do
    if type(s) ~= "table" or math.type(s[name]) ~= "integer" then
      errors.raise("the state of random numbers has %s = %s, expected an integer", name,
        errors.show(type(s) == "table" and s[name] or s))
    end
  end
end

--- Continue from a state.
---@param s table of random.state()
function random.restore(s)
  random.seed(s.seed)
  drawn, shuffled = s.drawn, s.shuffled
  parameters.seed(s.parameter_seed, s.declared)
  core.eager_clock(s.clock)
end

--- Return the seed and stream number of the next draw; a draw with its own seed is always the first
--- one.
---@param own? integer
---@return integer seed
---@return integer stream
function random.next(own)
  if own then return own, FIRST_STREAM end
  drawn = drawn + 1
  return seed, FIRST_STREAM + drawn - 1
end

--- Return the seed and stream number of the next shuffle. Shuffles are counted separately from
--- draws, so that one more shuffle changes no tensor.
---@param own? integer
---@return integer seed
---@return integer stream
function random.next_shuffle(own)
  if own then return own, 0 end
  shuffled = shuffled + 1
  return seed, shuffled == 1 and 0 or SHUFFLES + shuffled - 1
end

-- ---- math.random in forward -------------------------------------------------------------------

local Guard = { __close = function(guard) rawset(math, "random", guard.random) end }

--- Let math.random raise while forward is traced: it would run once, and every step would get that
--- number. This holds until the returned value is closed. A coroutine that stopped inside a forward
--- may never close it; then the library's own function answers.
--- ```lua
--- local _guard <close> = require("gpipe.random").guard()
--- ```
---@return any guard to be closed
function random.guard()
  local guard = setmetatable({ random = math.random }, Guard)
  rawset(math, "random", function(...)
    if not core.tracing() then return guard.random(...) end
    errors.raise("math.random: forward runs once per batch shape, so every step would get the same "
      .. "number; expected nn.Dropout, gp.rand or gp.randn, which draw in every step")
  end)
  return guard
end

-- The command line may have given a seed.
local found, config = pcall(require, "gpipe.config")
random.seed(found and math.tointeger(config.seed) or DEFAULT_SEED)

return random
