-- lua/gpipe/pipeline/passes.lua - figures of the last training pass, whatever ran after it.
--
-- The runtime keeps what the last pass did. A script asks how its training went behind a validation
-- too, so what a training pass left is taken over before a pass that does not train is planned and
-- runs over it: once for a validation, however many passes it makes.

local passes = {}

-- What the runtime knows of the pass that ran last.
local function taken(pipe)
  local kept = { stats = pipe.core:stats(), events = {} }
  for d = 1, #pipe.devices do kept.events[d] = pipe.core:events(d - 1) end
  return kept
end

--- A pass that trains comes next: it is what figures are of.
---@param pipe table
function passes.trains(pipe) pipe.trained, pipe.kept = (pipe.trained or 0) + 1, nil end

--- Training passes that a pipeline was asked for; waits for none.
---@param pipe table
---@return integer
function passes.count(pipe) return pipe.trained or 0 end

--- A pass that does not train comes next.
---@param pipe table
function passes.looks(pipe)
  if pipe.trained and not pipe.kept then pipe.kept = taken(pipe) end
end

--- Events of a device (from 1) in the last training pass, or in the last pass where none trained.
---@param pipe table
---@param d integer
---@return table[]
function passes.events(pipe, d)
  return pipe.kept and pipe.kept.events[d] or pipe.core:events(d - 1)
end

--- The same of the runtime's figures; memory is what all passes so far have taken.
---@param pipe table
---@return table
function passes.stats(pipe)
  local now, kept = pipe.core:stats(), pipe.kept and pipe.kept.stats
  if not kept then return now end
  for d, device in ipairs(kept) do device.peak_bytes = now[d].peak_bytes end
  return kept
end

return passes
