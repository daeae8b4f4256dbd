-- lua/gpipe/pipeline/accuracy.lua - counts the rows whose largest score is at the right class.

local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local IDS = { i64 = true, i32 = true, u8 = true }

local function describe(t)
  return is_tensor(t) and t.dtype .. " " .. table.concat(t.shape, "x") or errors.show(t)
end

local function check(scores, targets)
  if is_tensor(targets) and IDS[targets.dtype] then
    local have, want = targets.shape, scores.shape
    table.remove(want)
    if #want > 0 and table.concat(have, "x") == table.concat(want, "x") then return end
  end
  errors.raise("accuracy: the targets are %s and the scores %s, expected scores [.., classes] and "
    .. "ids (i64, i32 or u8, from 0) of their shape without the last dimension", describe(targets),
    describe(scores))
end

--- See pipe:accuracy.
---@param scores gpipe.Tensor [.., classes]
---@param targets gpipe.Tensor [..] ids
---@param loss any targets equal to its ignore_index do not count
---@return number share
---@return integer right
---@return integer count
return function(scores, targets, loss)
  check(scores, targets)
  local right = scores:classes():eq(targets:to "i64")
  local count, ignored = targets:numel(), type(loss) == "table" and loss.ignore_index or nil
  if ignored then
    local counts = targets:to("i64"):ne(ignored)
    right, count = right:logical_and(counts), counts:sum():item()
  end
  if count == 0 then errors.raise "accuracy: no target counts, expected at least one" end
  local hits = right:sum():item()
  return hits / count, hits, count
end
