-- lua/gpipe/sweep/run/here.lua - run the trials of a sweep in this process, one after another,
-- until it can take no more.

local core = require "gpipe.core"
local one = require "gpipe.sweep.run.one"
local together = require "gpipe.sweep.run.together"

local here = {}

local WAIT, LONGEST = 0.02, 0.25 -- seconds between two looks at other processes: first, longest

local function leave(guard)
  core.alarm(0)
  guard.sweep.store:leave()
end

local Guard = { __close = leave }

--- Run trials. With `wait` also wait for the trials of other processes: if one of them dies, its
--- trial is taken over.
---@param sweep gpipe.Sweep
---@param f function
---@param wait boolean
---@param see fun(row: table?) called after each trial, and while it waits
function here.run(sweep, f, wait, see)
  local store, most, retries = sweep.store, sweep.most, sweep.options.retries
  store:enter()
  local guard <close> = setmetatable({ sweep = sweep }, Guard) -- luacheck: ignore guard
  store:bury()
  local pause = WAIT
  while true do
    local number = store:claim(most, retries, sweep.rule)
    if number then
      see(one.run(sweep, number, f))
      pause = WAIT
    else
      local left, running = store:left(most, retries)
      if left + running == 0 or not wait then break end
      core.sleep(pause)
      pause = math.min(2 * pause, LONGEST)
      store:bury()
      see()
    end
  end
  together.next(nil)
end

return here
