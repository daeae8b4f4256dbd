-- lua/gpipe/checkpoint/read.lua - reads the files of a checkpoint: all of them, or of each only the
-- tensors that a rank holds.

local contents = require "gpipe.checkpoint.contents"
local core = require "gpipe.core"
local tables = require "gpipe.io.tables"

local read = {}

read.EXTRA = "extra.safetensors" -- tensors that the script gave

-- Read all tensors of all files by name, and apart from them the script's own. wanted: the names of
-- those whose values are needed; of the others only shape and dtype are read. nil: all.
local function read_files(paths, wanted)
  local all, extra = {}, {}
  for _, path in ipairs(paths) do
    local is_extra = path:sub(-#read.EXTRA - 1) == "/" .. read.EXTRA
    local tensors, message, code = core.archive_load(path, not is_extra and wanted or nil)
    if not tensors then return nil, message, code end
    local into = is_extra and extra or all
    for name, tensor in pairs(tensors) do into[name] = tensor end
  end
  return all, extra
end

--- Read state and tensors of a folder.
---@param folder string
---@param wanted? string[]
---@return table? state
---@return table<string, gpipe.Tensor>|string tensors or message
---@return string? code
function read.folder(folder, wanted)
  local text, paths, code = core.checkpoint_read(folder)
  if not text then return nil, paths, code end
  local all, extra
  all, extra, code = read_files(paths, wanted)
  if not all then return nil, extra, code end
  local whole, reason = tables.decode(text, extra)
  if not whole or type(whole.state) ~= "table" then
    return nil, ("%s/MANIFEST.json: %s"):format(folder, reason or "it has no state"), "format"
  end
  return whole.state, all
end

--- The names of the tensors that this rank holds; nil where one process has all of them.
---@param of {pipe: gpipe.Pipeline?, model: nn.Module?, opt: gpipe.Optimizer?}
---@return string[]?
function read.wanted(of)
  if not (of.pipe and of.pipe.spread) then return nil end
  local names = {}
  for _, entry in ipairs(contents.entries(of)) do
    if entry.value then names[#names + 1] = entry.name end
  end
  return names
end

return read
