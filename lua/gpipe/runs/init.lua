-- lua/gpipe/runs/init.lua - `gp.runs(dir)`: the training runs of a folder, to look at and compare.

local core = require "gpipe.core"
local find = require "gpipe.runs.find"
local options = require "gpipe.options"

---@class gpipe.Runs: gpipe.RunFolder[]
---@field dir string
local Runs = {}
Runs.__index, Runs.__name = Runs, "gpipe.Runs"

function Runs:__tostring() return require("gpipe.runs.table").text(self) end

local runs = { methods = Runs }

--- The training runs below a folder, as gp.run made them: a list whose text is a table. Each has
--- name, path, state ("running", "killed", "finished", "stopped", "failed" or "unknown"), reason,
--- step, steps, loss, best, rate, unit, seconds, created, updated, config and faults, and the
--- methods names, column and update. The one that wrote last comes first.
--- Errors: nil, message, code where the folder cannot be read.
---
--- ```lua
--- local runs = gp.runs "runs" or {}
--- for _, r in ipairs(runs) do print(r.name, r.state, r.loss) end
--- ```
---@param dir? string "runs" where it is left out; may be the folder of one run
---@return gpipe.Runs?
---@return string? message
---@return string? code "io"
function runs.open(dir)
  dir = options.argument("gp.runs", "dir", dir, { type = "string", default = "runs" })
  local found, message, code
  core.plain_numbers(function() found, message, code = find.runs(dir) end)
  if not found then return nil, message, code end
  found.dir = dir
  return setmetatable(found, Runs)
end

return runs
