-- lua/gpipe/dry_mode.lua - whether the command line asks for a dry run: `gpipe-lua --dry-run
-- script.lua`. What that does is in plan/script.lua, which is loaded only then.

local dry_mode = {}

--- Whether pipelines are planned instead of run.
function dry_mode.is_on()
  local found, config = pcall(require, "gpipe.config")
  return found and config.dry_run == true
end

return dry_mode
