-- lua/gpipe/ranks/state.lua - values that lie with several ranks, brought to all of them.
--
-- An entry {name, value} of a state has its parameter with it: `box`. That tells which rank holds
-- the value, and what it is like where it is not here; a moment of another shape has `shape`, too.

local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local ranks = require "gpipe.ranks"

local state = {}

--- Does another rank hold the entry's value?
---@param entry {box: gpipe.Tensor?}
---@return boolean
function state.is_away(entry)
  return entry.box ~= nil and core.param_away(entry.box) ~= nil
end

--- Something of the value's shape and dtype, also where another rank holds it.
---@param entry {box: gpipe.Tensor?, value: gpipe.Tensor?, shape: integer[]?}
---@return gpipe.Tensor|{shape: integer[], dtype: string}
function state.like(entry)
  if not state.is_away(entry) then return entry.value end
  return entry.shape and { shape = entry.shape, dtype = entry.box.dtype } or entry.box
end

--- Do several ranks hold the values? All ranks get the same answer.
---@param entries {box: gpipe.Tensor?}[]
---@return boolean
function state.are_shared(entries)
  if ranks.ranks() == 1 then return false end
  for _, entry in ipairs(entries) do
    if entry.box and core.param_holder(entry.box) then return true end
  end
  return false
end

-- Bring a value from the rank that holds it; nil if it has none there.
local function bring(entry)
  local holder = entry.box and core.param_holder(entry.box)
  if not holder then return entry.value end
  local here = holder == ranks.rank()
  local text = here and entry.value and entry.value:contiguous():bytes() or ""
  local all = ranks.gather("state_dict", text)
  if here or all[holder + 1] == "" then return entry.value end
  return create.frombytes(all[holder + 1], entry.shape or entry.box.shape, entry.box.dtype)
end

--- The same entries with their values, on all ranks; all ranks have the same entries in the same
--- order. Where one process has all of them, these are the entries that were given.
---@param entries {name: string, value: gpipe.Tensor?, box: gpipe.Tensor?}[]
---@return table[]
function state.collect(entries)
  if not state.are_shared(entries) then return entries end
  local whole = {}
  for i, entry in ipairs(entries) do
    whole[i] = { name = entry.name, stage = entry.stage, value = bring(entry) }
  end
  return whole
end

--- The value of a parameter, on all ranks, which have to call together.
---@param box gpipe.Tensor
---@return gpipe.Tensor
function state.value(box)
  local entry = { box = box }
  if not state.is_away(entry) then entry.value = box:value() end
  return state.collect({ entry })[1].value
end

--- The gradient of a parameter, on all ranks, which have to call together; nil if it has none.
---@param box gpipe.Tensor
---@return gpipe.Tensor?
function state.gradient(box)
  return state.collect({ { box = box, value = box.grad } })[1].value
end

return state
