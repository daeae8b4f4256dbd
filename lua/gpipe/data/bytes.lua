-- gpipe/data/bytes.lua - files as windows of bytes, for models that predict the next byte.
--
-- The files are put one after the other in the order of their names, so the data depends on their
-- content alone. Window i begins at byte (i - 1) * stride; its targets are its bytes moved by one.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local dataset = require "gpipe.data.dataset"

local bytes = {}

-- ---- the source ------------------------------------------------------------------------------

local Source = {}
Source.__index = Source

function Source:gather(positions)
  local starts = {}
  for i, position in ipairs(positions) do starts[i] = (position - 1) * self.stride + 1 end
  return core.gather_windows(self.bytes, starts, self.context)
end

function Source:describe() return ("%d bytes"):format(self.context) end

-- ---- finding the files -----------------------------------------------------------------------

-- The options' path, dir and files as one list of paths to look at.
local function roots_of(opts)
  local given = {}
  for _, name in ipairs { "path", "dir", "files" } do
    if opts[name] then given[#given + 1] = name end
  end
  if #given ~= 1 then
    errors.raise("data.bytes: %s, expected exactly one of path, dir and files",
      #given == 0 and "no data is named" or table.concat(given, " and ") .. " are given")
  end
  if not opts.files then return { opts.path or opts.dir } end
  for i, file in ipairs(opts.files) do
    if type(file) ~= "string" then
      errors.raise("data.bytes: file %d is %s, expected a path", i, errors.show(file))
    end
  end
  return opts.files
end

-- Files below the roots whose paths fit the pattern; nil, message, code.
local function find_files(opts)
  local found = {}
  for _, root in ipairs(roots_of(opts)) do
    local files, message, code = core.file_list(root)
    if not files then return nil, message, code end
    for _, file in ipairs(files) do
      if not opts.match or file:find(opts.match) then found[#found + 1] = file end
    end
  end
  return found
end

-- All bytes of the files; nil, message, code.
local function read_files(files)
  local parts = {}
  for i, file in ipairs(files) do
    local part, message, code = core.file_read(file)
    if not part then return nil, message, code end
    parts[i] = part
  end
  return #parts == 1 and parts[1] or core.join_bytes(parts)
end

local function name_of(opts)
  return opts.path or opts.dir or ("%d files"):format(#opts.files)
end

-- ---- opening ---------------------------------------------------------------------------------

local function is_pattern(text)
  return not pcall(string.find, "", text) and "a Lua pattern" or nil
end

local SPEC = {
  path = { type = "string" }, dir = { type = "string" }, files = { type = "table" },
  match = { type = "string", check = is_pattern },
  context = { type = "integer", min = 1, required = true },
  stride = { type = "integer", min = 1 },
}

local function source_of(all, opts)
  local stride = opts.stride or opts.context
  local count = (all:numel() - opts.context - 1) // stride + 1
  -- The next window that shares no target with the last one of the part before.
  local gap = (opts.context + stride - 1) // stride - 1
  return setmetatable({
    bytes = all, context = opts.context, stride = stride, count = count, gap = gap,
  }, Source)
end

---@class gpipe.BytesOptions one of path, dir and files
---@field path? string a file or a folder
---@field dir? string a folder
---@field files? string[] files and folders
---@field match? string a Lua pattern that paths must contain, e.g. "%.lua$"
---@field context integer bytes of input in a window
---@field stride? integer bytes from one window to the next; default context

--- Open files as windows of `context` + 1 bytes: the inputs are the first `context`, the targets
--- the last ones, as i64 ids from 0 to 255. Folders are searched for files, hidden ones left out;
--- files follow one another in the order of their names.
--- Errors: wrong options raise; nil, message, code for files that cannot be read or hold too
--- little.
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
  local files, message, code = find_files(opts)
  if not files then return nil, message, code end
  if #files == 0 then
    return nil, ("data.bytes: %s: there are no files%s"):format(name_of(opts),
      opts.match and (" that fit '%s'"):format(opts.match) or ""), "io"
  end
  local all
  all, message, code = read_files(files)
  if not all then return nil, message, code end
  if all:numel() <= opts.context then
    local text = "data.bytes: %s: %d bytes in %d file%s, expected at least context + 1 = %d"
    return nil, text:format(name_of(opts), all:numel(), #files, #files == 1 and "" or "s",
      opts.context + 1), "format"
  end
  return dataset(source_of(all, opts))
end

return bytes
