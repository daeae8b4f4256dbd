-- lua/gpipe/pipeline/passes.lua - keeps the figures of the last training pass, whatever ran after
-- it.
--
-- The runtime keeps the figures of the last pass only. A script may ask for those of its training
-- after a validation. So they are copied before a pass that does not train is planned and replaces
-- them: once for a validation, however many passes it makes.

local passes = {}

-- Copy what the runtime knows about the pass that ran last.
local function taken(pipe)
  local kept = { stats = pipe.core:stats(), events = {}, began = pipe.core:began() }
  for d = 1, #pipe.devices do kept.events[d] = pipe.core:events(d - 1) end
  return kept
end

--- Note that the next pass trains, so the figures will be those of that pass.
---@param pipe table
function passes.trains(pipe) pipe.trained, pipe.kept = (pipe.trained or 0) + 1, nil end

--- The number of training passes that were requested; does not wait for any.
---@param pipe table
---@return integer
function passes.count(pipe) return pipe.trained or 0 end

--- Note that the next pass does not train: keep the figures of the last training pass.
---@param pipe table
function passes.looks(pipe)
  if pipe.trained and not pipe.kept then pipe.kept = taken(pipe) end
end

--- The events of a device (from 1) in the last training pass, or in the last pass if none trained.
---@param pipe table
---@param d integer
---@return table[]
function passes.events(pipe, d)
  return pipe.kept and pipe.kept.events[d] or pipe.core:events(d - 1)
end

--- When that pass began, on the clock of core.seconds().
---@param pipe table
---@return number
function passes.began(pipe) return pipe.kept and pipe.kept.began or pipe.core:began() end

--- The runtime's figures for that pass; memory is the most over all passes so far.
---@param pipe table
---@return table
function passes.stats(pipe)
  local now, kept = pipe.core:stats(), pipe.kept and pipe.kept.stats
  if not kept then return now end
  for d, device in ipairs(kept) do device.peak_bytes = now[d].peak_bytes end
  return kept
end

return passes
