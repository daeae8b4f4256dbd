-- lua/gpipe/data/files.lua - finds the files that the options path, dir, files and match name, and
-- maps their bytes.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local files = {}

local function is_pattern(text)
  return not pcall(string.find, "", text) and "a Lua pattern" or nil
end

-- The rules of these options.
files.SPEC = {
  path = { type = "string" }, dir = { type = "string" }, files = { type = "table" },
  match = { type = "string", check = is_pattern },
}

-- The options' path, dir and files as one list of paths to look at.
local function roots_of(who, opts)
  local given = {}
  for _, name in ipairs { "path", "dir", "files" } do
    if opts[name] then given[#given + 1] = name end
  end
  if #given ~= 1 then
    errors.raise("%s: %s, expected exactly one of path, dir and files", who,
      #given == 0 and "no data is named" or table.concat(given, " and ") .. " are given")
  end
  if not opts.files then return { opts.path or opts.dir } end
  for i, file in ipairs(opts.files) do
    if type(file) ~= "string" then
      errors.raise("%s: file %d is %s, expected a path", who, i, errors.show(file))
    end
  end
  return opts.files
end

--- The name of the data in messages.
---@param who string
---@param opts table
---@return string
function files.name(who, opts)
  local path = opts.path or opts.dir
  return ("%s: %s"):format(who, path and errors.path(path) or ("%d files"):format(#opts.files))
end

--- The files in the order of their names, at least one. In folders only the files whose paths match
--- the pattern count. Otherwise nil, message, code.
---@param who string
---@param opts table
---@return string[]?
---@return string? message
---@return string? code
function files.find(who, opts)
  local found = {}
  for _, root in ipairs(roots_of(who, opts)) do
    local list, message, code = core.file_list(root)
    if not list then return nil, message, code end
    for _, file in ipairs(list) do
      if not opts.match or file:find(opts.match) then found[#found + 1] = file end
    end
  end
  if #found > 0 then return found end
  return nil, ("%s: there are no files%s"):format(files.name(who, opts),
    opts.match and (" that fit '%s'"):format(errors.name(opts.match)) or ""), "io"
end

--- All bytes, u8 [size]: one file is mapped, several are put together.
--- nil, message, code for files that cannot be read, or that `check(path, bytes)` refuses.
---@param paths string[]
---@param check? fun(path: string, bytes: gpipe.Tensor): any, string?, string?
---@return gpipe.Tensor?
---@return string? message
---@return string? code
function files.map(paths, check)
  local parts = {}
  for i, path in ipairs(paths) do
    local part, message, code = core.file_map(path)
    if not part then return nil, message, code end
    if check then
      local good
      good, message, code = check(path, part)
      if not good then return nil, message, code end
    end
    parts[i] = part
  end
  if #parts == 1 then return parts[1] end
  local joined = core.join_bytes(parts)
  for _, part in ipairs(parts) do part:free() end
  return joined
end

return files
