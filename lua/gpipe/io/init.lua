-- lua/gpipe/io/init.lua - `gp.save` and `gp.load`: named tensors in a safetensors file, or one in a
-- .npy file.
--
-- Names are written in sorted order, so the same tensors make the same file, byte for byte. A file
-- is written whole or not at all: the old one stays when anything fails.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local npy = require "gpipe.io.npy"

local io = {}

-- The keys of a table of texts or tensors, sorted. Errors: a key that is no string.
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

local function check_tensors(tensors)
  if type(tensors) ~= "table" then
    errors.raise("gp.save: tensors is %s, expected a table {name = tensor}", errors.show(tensors))
  end
  local names, values = sorted_keys("gp.save", "tensors", tensors), {}
  for i, name in ipairs(names) do
    local value = tensors[name]
    if getmetatable(value) ~= "gpipe.Tensor" then
      errors.raise("gp.save: '%s' is %s, expected a tensor%s", name, errors.show(value),
        type(value) == "table" and " (gp.tensor(x) makes one)" or "")
    end
    values[i] = value
  end
  return names, values
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
    pairs_list[#pairs_list + 1] = key
    pairs_list[#pairs_list + 1] = value
  end
  return pairs_list
end

local function is_npy(path) return path:lower():sub(-4) == ".npy" end

--- Save named tensors as a safetensors file, or one tensor as a .npy file where the path ends so;
--- whole or not at all.
--- Errors: raises for what cannot be saved; nil, message, code where the system refuses.
--- ```lua
--- local path = os.tmpname()
--- assert(gp.save(path, {weight = gp.ones{2, 3}}, {note = "first try"}))
--- ```
---@param path string
---@param tensors table<string, gpipe.Tensor>|gpipe.Tensor one tensor: "x.npy"
---@param metadata? table<string, string>
---@return boolean? true
---@return string? message
---@return string? code "io", "memory"
function io.save(path, tensors, metadata)
  check_path("gp.save", path)
  if is_tensor(tensors) then
    if is_npy(path) then return npy.save(path, tensors) end
    errors.raise('gp.save: one tensor goes into a file that ends in .npy, expected "%s.npy" or a '
      .. "table {name = tensor}", path)
  end
  local names, values = check_tensors(tensors)
  return core.archive_save(path, names, values, check_metadata(metadata or {}))
end

-- The metadata tables that gp.load returned.
local metadata_of_files = setmetatable({}, { __mode = "k" })

--- Whether a table is the metadata of a file: `load_state_dict(assert(gp.load(path)))` hands it on,
--- where the options would be.
---@param value any
---@return boolean
function io.is_metadata(value) return metadata_of_files[value] ~= nil end

--- Load the tensors of a safetensors file, or the one of a .npy file. The file is not trusted:
--- everything is checked.
--- Errors: nil, message, code.
--- ```lua
--- local path = os.tmpname()
--- assert(gp.save(path, {weight = gp.ones{2, 3}}))
--- local tensors, metadata = assert(gp.load(path))
--- assert(gp.equal(tensors.weight, gp.ones{2, 3}))
--- ```
---@param path string
---@return table<string, gpipe.Tensor>|gpipe.Tensor? tensors
---@return table<string, string>|string metadata or message
---@return string? code "io", "format", "memory"
function io.load(path)
  check_path("gp.load", path)
  if is_npy(path) then return npy.load(path) end
  local tensors, metadata, code = core.archive_load(path)
  if tensors then metadata_of_files[metadata] = true end
  return tensors, metadata, code
end

return io
