-- lua/gpipe/optim/in_use.lua - the optimizers that are in use.

local fields = require("gpipe.optim.group").fields

local in_use = {}

local before = setmetatable({}, { __mode = "k" }) -- [optimizer] = how many were made before it
local count = 0

--- Note a new optimizer.
---@param opt table
function in_use.note(opt)
  before[opt], count = count, count + 1
end

local function has_one_of(opt, boxes)
  for _, group in ipairs(fields[opt].groups) do
    for _, entry in ipairs(group.params) do
      if boxes[entry.param] then return true end
    end
  end
  return false
end

--- The optimizers in use that update some of these parameters, in the order in which they were
--- made: what a dry run takes for a pipeline's.
---@param boxes table<gpipe.Tensor, any>
---@return gpipe.Optimizer[]
function in_use.all_of(boxes)
  local list = {}
  for opt in pairs(before) do
    if has_one_of(opt, boxes) then list[#list + 1] = opt end
  end
  table.sort(list, function(a, b) return before[a] < before[b] end)
  return list
end

return in_use
