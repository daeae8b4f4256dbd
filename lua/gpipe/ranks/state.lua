-- lua/gpipe/ranks/state.lua - values that lie with several ranks, brought to all of them.

local create = require "gpipe.tensor.create"
local ranks = require "gpipe.ranks"

local state = {}

--- Copy the values of a list of entries on all ranks. An entry that is another rank's comes from
--- there; all ranks have the same list in the same order.
---@param entries {name: string, value: gpipe.Tensor?, shape: integer[], dtype: string, rank: integer}[]
---@return table<string, gpipe.Tensor>
function state.collect(entries)
  local own, copies = ranks.rank(), {}
  for _, entry in ipairs(entries) do
    local here = entry.rank == own
    local text = here and entry.value():contiguous():bytes() or ""
    local all = ranks.gather("state_dict", text)
    copies[entry.name] = here and entry.value():clone()
      or create.frombytes(all[entry.rank + 1], entry.shape, entry.dtype)
  end
  return copies
end

return state
