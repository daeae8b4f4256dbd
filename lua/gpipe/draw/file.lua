-- lua/gpipe/draw/file.lua - write a picture into a file: whole or not at all, and over another file
-- only where that is wanted.

local core = require "gpipe.core"
local options = require "gpipe.options"

local file = {}

--- Write what `render` returns. An existing file is replaced only with `force`.
---@param who string the public function, for errors
---@param path string
---@param force boolean
---@param render fun(): string runs with plain numbers, whatever the locale
---@return boolean? true
---@return string? message
---@return string? code "io"; "exists" where there is such a file and force was not given
function file.write(who, path, force, render)
  options.argument(who, "path", path, { type = "string", required = true })
  local there = not force and io.open(path, "rb")
  if there then
    there:close()
    return nil, ("%s is there, expected another path, or force to replace it"):format(path),
      "exists"
  end
  return core.file_write(path, core.plain_numbers(render))
end

return file
