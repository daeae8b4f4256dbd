-- lua/gpipe/plan/least.lua - the fewest rows that a micro-batch of a model may have.
--
-- A batch norm that sees one value per channel refuses to train, so a plan must not cut a batch of
-- such a model into single rows.

local figures = require "gpipe.plan.figures"
local running = require "gpipe.nn.layer.norm.running"

local least = {}

--- The fewest rows with which every layer trains: 1, or 2 where a batch norm wants them. A model
--- that trains with neither has another fault, which planning it reports.
---@param model nn.Sequential
---@param made table figures of the model, or of its profile with a sample
---@return integer
function least.rows(model, made)
  if not made.sample or #running.norms(model) == 0 then return 1 end
  return not figures.train_with(made, 1) and figures.train_with(made, 2) and 2 or 1
end

return least
