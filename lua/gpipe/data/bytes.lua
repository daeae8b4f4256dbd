-- lua/gpipe/data/bytes.lua - reads files as windows of bytes, for models that predict the next
-- byte.
--
-- The files are joined in the order of their names, so the data depends only on their content.

local files = require "gpipe.data.files"
local options = require "gpipe.options"
local windows = require "gpipe.data.windows"

local bytes = {}

local SPEC = {
  context = { type = "integer", min = 1, required = true },
  stride = { type = "integer", min = 1 },
}
for name, rule in pairs(files.SPEC) do SPEC[name] = rule end

---@class gpipe.BytesOptions one of path, dir and files
---@field path? string a file or a folder
---@field dir? string a folder
---@field files? string[] files and folders
---@field match? string a Lua pattern that paths must contain, e.g. "%.lua$"
---@field context integer bytes of input in a window
---@field stride? integer bytes from one window to the next; default context

--- Open files as windows of `context` + 1 bytes: the inputs are the first `context` bytes, the
--- targets are the last ones, as i64 ids from 0 to 255. Folders are searched for files, without
--- hidden ones, and the files are joined in the order of their names. A single file is mapped, not
--- read: its pages are loaded when they are used.
--- Errors: wrong options raise; nil, message, code for files that cannot be read or hold too
--- little. A file that becomes shorter while it is in use raises at the next batch.
--- ```lua
--- local d = assert(gp.data.bytes{path = "LICENSE", context = 16})
--- local train, valid = d:split(0.9)
--- for x, y in train:shuffle(1):batches(8) do print(x.shape[1], x.shape[2]) end
--- ```
---@param opts gpipe.BytesOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function bytes.open(opts)
  opts = options.check("data.bytes", opts, SPEC)
  local paths, message, code = files.find("data.bytes", opts)
  if not paths then return nil, message, code end
  local all
  all, message, code = files.map(paths)
  if not all then return nil, message, code end
  return windows.new {
    ids = all, width = 1, context = opts.context, stride = opts.stride, unit = "bytes",
    path = #paths == 1 and paths[1] or nil, name = files.name("data.bytes", opts),
    files = #paths,
  }
end

return bytes
