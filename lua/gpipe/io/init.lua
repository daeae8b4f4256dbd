-- lua/gpipe/io/init.lua - `gp.save` and `gp.load`: named tensors in a safetensors file, with Lua
-- tables beside them, or one tensor in a .npy file.
--
-- Names are written in sorted order, so the same tensors make the same file, byte for byte. A file
-- is written whole or not at all: the old one stays when anything fails.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local npy = require "gpipe.io.npy"
local is_plain = require "gpipe.plain"
local tables = require "gpipe.io.tables"

local io = {}

-- The keys of a table of texts or tensors, sorted. Errors: a key that is not a string.
local function sorted_keys(who, what, t)
  local keys = {}
  for key in pairs(t) do
    if type(key) ~= "string" then
      errors.raise("%s: a name in the %s is %s, expected a string", who, what, errors.show(key))
    end
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

local function check_path(who, path)
  if type(path) ~= "string" then
    errors.raise("%s: path is %s, expected a string", who, errors.show(path))
  end
end

-- The names in sorted order, their tensors, and the text of all other values.
local function check_tensors(given)
  if not is_plain(given) then
    errors.raise("gp.save: tensors is %s, expected a table {name = tensor}", errors.show(given))
  end
  local tensors, text = tables.encode(given)
  local names, values = sorted_keys("gp.save", "tensors", tensors), {}
  for i, name in ipairs(names) do values[i] = tensors[name] end
  return names, values, text
end

-- A flat list: key, value, key, value.
local function check_metadata(metadata)
  if type(metadata) ~= "table" then
    errors.raise("gp.save: metadata is %s, expected a table of strings", errors.show(metadata))
  end
  local pairs_list = {}
  for _, key in ipairs(sorted_keys("gp.save", "metadata", metadata)) do
    local value = metadata[key]
    if type(value) ~= "string" then
      errors.raise("gp.save: metadata '%s' is %s, expected a string%s", key, errors.show(value),
        type(value) == "number" and " (tostring(x) makes one)" or "")
    end
    if key == tables.KEY then
      errors.raise("gp.save: metadata '%s' is the place of tables, expected another name", key)
    end
    pairs_list[#pairs_list + 1] = key
    pairs_list[#pairs_list + 1] = value
  end
  return pairs_list
end

local function ending(path) return path:lower():match "%.%w+$" end

-- Endings under which other programs expect another format than safetensors.
local FOREIGN = {
  [".npy"] = "one tensor", [".npz"] = "a zip archive of arrays", [".csv"] = "a table as text",
  [".json"] = "JSON text", [".pkl"] = "a pickle", [".h5"] = "HDF5",
}

-- Check the ending of the path. Errors: a table is saved under an ending of another format.
local function check_ending(path)
  local holds = FOREIGN[ending(path)]
  if not holds then return end
  errors.raise("gp.save: a file that ends in %s holds %s, expected %s", ending(path), holds,
    ending(path) == ".npy" and "a tensor, or another ending (.safetensors) for a table of them"
    or "another ending (.safetensors)")
end

--- Save named tensors as a safetensors file, or one tensor as a .npy file if the path ends in .npy.
--- A file is written whole or not at all.
---
--- The table may also hold strings, numbers, booleans and tables of all these at any depth; gp.load
--- returns the same values. A table that is in two places comes back as two tables. These values
--- are stored as text in the metadata of the file (`gpipe.tables`).
--- Errors: raises for a value that cannot be saved, and names its place, and for a table under an
--- ending of another format (.npy, .npz, .json); nil, message, code if the system refuses.
--- ```lua
--- local path = os.tmpname()
--- assert(gp.save(path, {weight = gp.ones{2, 3}}, {note = "first try"}))
--- assert(gp.save(path, {model = {weight = gp.ones{2, 3}}, config = {widths = {2, 3}}, epoch = 7}))
--- assert(gp.load(path).config.widths[2] == 3)
--- ```
---@param path string
---@param tensors table|gpipe.Tensor one tensor: "x.npy"
---@param metadata? table<string, string>
---@return boolean? true
---@return string? message
---@return string? code "io", "memory"
function io.save(path, tensors, metadata)
  check_path("gp.save", path)
  if is_tensor(tensors) then
    if ending(path) == ".npy" then return npy.save(path, tensors) end
    errors.raise('gp.save: one tensor goes into a file that ends in .npy, expected "%s.npy" or a '
      .. "table {name = tensor}", errors.name(path))
  end
  check_ending(path)
  local names, values, text = check_tensors(tensors)
  local texts = check_metadata(metadata or {})
  if text then
    texts[#texts + 1] = tables.KEY
    texts[#texts + 1] = text
  end
  return core.archive_save(path, names, values, texts)
end

-- The metadata tables that gp.load returned.
local metadata_of_files = setmetatable({}, { __mode = "k" })

--- Return whether a table is the metadata of a file: `load_state_dict(assert(gp.load(path)))`
--- passes it where the options would be.
---@param value any
---@return boolean
function io.is_metadata(value) return metadata_of_files[value] ~= nil end

--- Load the tensors of a safetensors file and the values saved beside them, or the one tensor of a
--- .npy file. The file is not trusted: everything is checked. Elements of a .npy file whose type is
--- no dtype here are converted: i1, i2, u2 to i32, u4 and u8 to i64, also from big-endian files.
--- Errors: nil, message, code.
--- ```lua
--- local path = os.tmpname()
--- assert(gp.save(path, {weight = gp.ones{2, 3}}))
--- local tensors, metadata = assert(gp.load(path))
--- assert(gp.equal(tensors.weight, gp.ones{2, 3}))
--- ```
---@param path string
---@return table|gpipe.Tensor? tensors
---@return table<string, string>|string metadata or message
---@return string? code "io", "format", "memory"
function io.load(path)
  check_path("gp.load", path)
  if ending(path) == ".npy" then return npy.load(path) end
  local tensors, metadata, code = core.archive_load(path)
  if not tensors then return nil, metadata, code end
  metadata_of_files[metadata] = true
  local text = metadata[tables.KEY]
  if not text then return tensors, metadata end
  metadata[tables.KEY] = nil
  local whole, reason = tables.decode(text, tensors)
  if not whole then return nil, ("%s: %s"):format(path, reason), "format" end
  return whole, metadata
end

return io
