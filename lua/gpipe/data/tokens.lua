-- lua/gpipe/data/tokens.lua - reads files of ids of two or four bytes each as windows.

local core = require "gpipe.core"
local files = require "gpipe.data.files"
local options = require "gpipe.options"
local windows = require "gpipe.data.windows"

local tokens = {}

local WIDTH = { u16 = 2, u32 = 4 }

local SPEC = {
  context = { type = "integer", min = 1, required = true },
  stride = { type = "integer", min = 1 },
  dtype = { type = "string", choices = { "u16", "u32" }, default = "u16" },
}
for name, rule in pairs(files.SPEC) do SPEC[name] = rule end

---@class gpipe.TokensOptions one of path, dir and files
---@field path? string a file or a folder
---@field dir? string a folder
---@field files? string[] files and folders
---@field match? string a Lua pattern that paths must contain, e.g. "train.*%.bin$"
---@field context integer ids of input in a window
---@field stride? integer ids from one window to the next; default context
---@field dtype? string "u16" (the default) or "u32", the lowest byte first

--- Open files of ids, as `array.tofile` of NumPy writes them (nanoGPT's train.bin), as windows of
--- `context` + 1 ids: the inputs are the first `context` ids, the targets are the last ones, i64. A
--- single file is mapped, not read: its pages are loaded when they are used.
--- Errors: wrong options raise; nil, message, code for files that cannot be read, hold too little,
--- end within an id, or are another kind of file. A file that becomes shorter while it is in use
--- raises at the next batch.
--- ```lua
--- local path = os.tmpname()
--- assert(io.open(path, "wb")):write(string.pack("<I2I2I2I2", 5, 6, 50256, 7)):close()
--- local x, y = assert(gp.data.tokens{path = path, context = 3}):item(1)
--- assert(x[3] == 50256 and y[3] == 7)
--- os.remove(path)
--- ```
---@param opts gpipe.TokensOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function tokens.open(opts)
  opts = options.check("data.tokens", opts, SPEC)
  local paths, message, code = files.find("data.tokens", opts)
  if not paths then return nil, message, code end
  local width = WIDTH[opts.dtype]
  local all
  all, message, code = files.map(paths, function(path, bytes)
    return core.corpus_check(path, bytes, width)
  end)
  if not all then return nil, message, code end
  return windows.new {
    ids = all, width = width, context = opts.context, stride = opts.stride, unit = "ids",
    path = #paths == 1 and paths[1] or nil, name = files.name("data.tokens", opts),
    files = #paths,
  }
end

return tokens
