-- lua/gpipe/plan/samples.lua - the sample of a plan with another number of rows.

local core = require "gpipe.core"

local samples = {}

--- Tensors with another number of rows: for plans the first row seen again and again, which takes
--- no memory; for runs the rows of the sample in turn.
---@param tensors gpipe.Tensor[]
---@param rows integer
---@param dense? boolean for runs
function samples.with_rows(tensors, rows, dense)
  local list = {}
  for i, t in ipairs(tensors) do
    local shape = t.shape
    local have = shape[1]
    if rows <= have then
      list[i] = t:narrow(1, 1, rows)
    elseif dense then
      local parts = {}
      for first = 1, rows, have do
        parts[#parts + 1] = t:narrow(1, 1, math.min(have, rows - first + 1))
      end
      list[i] = core.concat(parts, 1)
    else
      shape[1] = rows
      list[i] = t:narrow(1, 1, 1):expand(shape)
    end
  end
  return list
end

--- The sample with so many rows, of which only the shapes may be read.
---@param sample {[1]: gpipe.Tensor[], [2]: gpipe.Tensor[]}
---@param rows integer
function samples.batch(sample, rows)
  return { samples.with_rows(sample[1], rows), samples.with_rows(sample[2], rows) }
end

return samples
