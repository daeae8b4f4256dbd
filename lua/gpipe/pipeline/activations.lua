-- lua/gpipe/pipeline/activations.lua - pipe:activations(): what a micro-batch saves between its
-- forward and its backward pass, why, and how large it is.

local columns = require "gpipe.draw.columns"
local screen = require "gpipe.screen"
local sizes = require "gpipe.sizes"

local activations = {}

local Activations = {}
Activations.__index = Activations
Activations.__name = "gpipe.Activations"

-- "read by linear_dw of 3.fc"
local function why_of(one)
  if not one.reader then return "kept, because it may be made only once" end
  local where = one.reader_name ~= one.name and " of " .. one.reader_name or ""
  return ("read by %s%s%s"):format(one.reader, where, one.away and ", waits on the host" or "")
end

-- Lines may be wider than a narrow terminal, because the reason stands at their end; in a file they
-- are whole.
local LEAST, WHOLE = 100, 1000

-- "h_0.fc (Linear 32 -> 128)" -> "h_0.fc": the op says what the layer does.
local function short(text) return (text:gsub(" %b()$", "")) end

function Activations:__tostring()
  local rows, total = { { "layer", "made by", "shape", "bytes", "why", note = 5 } }, 0
  for i, one in ipairs(self) do
    rows[i + 1] = {
      short(one.name), one.op, one.shape, sizes.text(one.bytes), short(one.why), note = 5,
    }
    total = total + one.bytes
  end
  rows[#rows + 1] = { "total", "", "", sizes.text(total), "" }
  return columns.text(rows, nil,
    screen.is_bounded() and math.max(LEAST, screen.columns()) or WHOLE)
end

--- The saved values of a plan, in the order in which they are made.
---@param core table the runtime's pipeline
---@param handle any its plan
---@return table[] {layer, stage, name, op, shape, bytes, last, why, away}; last: the action that
--- reads it last ("W"); away: it waits in the host's memory
function activations.of(core, handle)
  local list = setmetatable({}, Activations)
  for _, one in ipairs(core:left(handle)) do
    if one.maker == "F" then
      one.why = why_of(one)
      one.maker, one.reader, one.reader_name = nil, nil, nil
      list[#list + 1] = one
    end
  end
  return list
end

return activations
