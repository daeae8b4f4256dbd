-- lua/gpipe/dry_mode.lua - whether the command line asks for a dry run: `gpipe-lua --dry-run
-- script.lua`. What that does is in plan/script.lua, which is loaded only then.

local dry_mode = {}

local paused = 0

--- Whether pipelines are planned instead of run.
function dry_mode.is_on()
  local found, config = pcall(require, "gpipe.config")
  return found and config.dry_run == true and paused == 0
end

--- The job that a dry run stands for (`gpipe-lua --dry-run --ranks N`, `--node 0/M` for M hosts):
--- ranks on each host, and hosts; nil where it stands for one process.
---@return integer? ranks
---@return integer? hosts
function dry_mode.job()
  if not dry_mode.is_on() then return nil end
  local config = require "gpipe.config"
  if config.ranks and config.ranks * config.hosts > 1 then return config.ranks, config.hosts end
end

local Pause = { __close = function() paused = paused - 1 end }

--- Let pipelines run until the returned value is closed: gp.profile measures also in a dry run.
function dry_mode.pause()
  paused = paused + 1
  return setmetatable({}, Pause)
end

return dry_mode
