-- tests/soak/searched.lua DIR TRIALS PARALLEL - the sweep that tests/soak/sweep kills.
local gp = require "gpipe"
local core = require "gpipe.core"
local sweep = gp.sweep

local s = sweep { name = "s", dir = arg[1], trials = math.tointeger(tonumber(arg[2])), retries = 1000,
  parallel = math.tointeger(tonumber(arg[3])), method = "random", minimize = "loss", quiet = true,
  space = { x = sweep.uniform(-1, 1), kind = sweep.choice { "a", "b" },
    n = function(p) if p.kind == "a" then return sweep.int(1, 9) end end } }
s:run(function(p, trial)
  for step = 1, 5 do
    core.sleep(0.004)
    trial:report(step, p.x / step)
  end
  return { loss = p.x ^ 2 + (p.n or 0), drawn = gp.rand({ 1 }):item() }
end)
