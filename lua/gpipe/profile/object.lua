-- lua/gpipe/profile/object.lua - a profile as a script holds it: checked fields, saved as a file.
--
-- Profiles come from measuring, from files and from people who write down what another machine
-- takes. All three pass the same check, so planners need none.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local host = require "gpipe.plan.host"
local json = require "gpipe.io.json"
local options = require "gpipe.options"
local text = require "gpipe.profile.text"

---@class gpipe.LayerProfile
---@field name string of the layer in the model: "3", "head"
---@field layer? string what it is: "Linear 64 -> 10"
---@field forward number seconds, where what it makes is kept
---@field forward_dropped number seconds, where what it makes is dropped and made again
---@field input number seconds of the gradient for its input
---@field weight number seconds of the gradients for its weights
---@field backward number seconds of all these gradients in one action
---@field recompute number seconds of what runs again if its stage recomputes
---@field output_bytes integer that cross a cut behind it: its output, and skips that pass by
---@field gradient_bytes integer of the gradients that cross it backward; else output_bytes
---@field saved_bytes integer that a micro-batch keeps of it if nothing is recomputed
---@field parameter_bytes integer
---@field workspace_bytes integer temporaries while it runs
---@field head_bytes integer the part of saved_bytes that W does not read, where it is apart from I
---@field carried_bytes integer that I leaves for W, where a schedule runs them apart
---@field packed_bytes integer packed weights, buffers and such, which stay on the device
---@field scratch_bytes integer of each thread while it runs
---@field flop number of forward
---@field reads_input boolean false: its backward does not read what the layer gets
---@field selective? {saved_bytes: integer, head_bytes: integer, recompute: number}

---@class gpipe.ModelProfile
---@field layers gpipe.LayerProfile[]
---@field rows integer of a micro-batch
---@field input_bytes integer of a micro-batch
---@field device? string
---@field threads? integer of that device
---@field repeats? integer steps that were measured
---@field host_link? {bandwidth: number, latency: number} of copies to the host's memory and back
local ModelProfile = {}
ModelProfile.__index = ModelProfile
ModelProfile.__name = "gpipe.ModelProfile"
ModelProfile.__tostring = text.of

local KIND, VERSION = "gpipe profile", 1 -- of files

-- ---- checks -------------------------------------------------------------------------------------

local amount = { type = "number", min = 0, below = math.huge, default = 0 }
local count = { type = "integer", min = 0, default = 0 }

local LAYER = {
  name = { type = "string" }, layer = { type = "string" },
  forward = amount, input = amount, weight = amount, recompute = amount, flop = amount,
  output_bytes = count, saved_bytes = count, parameter_bytes = count, workspace_bytes = count,
  head_bytes = count, carried_bytes = count, packed_bytes = count, scratch_bytes = count,
  reads_input = { type = "boolean", default = true }, selective = { type = "table" },
}

local SELECTIVE = { saved_bytes = count, head_bytes = count, recompute = amount }

local optional = { type = "number", min = 0, below = math.huge }
LAYER.forward_dropped, LAYER.backward = optional, optional
LAYER.gradient_bytes = { type = "integer", min = 0 }

local PROFILE = {
  layers = { type = "table", required = true },
  rows = { type = "integer", min = 1, default = 1 },
  input_bytes = count,
  device = { type = "string" }, threads = { type = "integer", min = 1 },
  repeats = { type = "integer", min = 1 },
  host_link = { type = "table" },
}

local function check_layer(who, i, given)
  local where = ("%s: layer %d"):format(who, i)
  if type(given) ~= "table" then
    errors.raise("%s is %s, expected a table such as {forward = 0.001}", where, errors.show(given))
  end
  local layer = options.check(where, given, LAYER)
  layer.name = layer.name or tostring(i)
  layer.forward_dropped = layer.forward_dropped or layer.forward
  layer.gradient_bytes = layer.gradient_bytes or layer.output_bytes
  layer.backward = layer.backward or layer.input + layer.weight
  if layer.selective then
    layer.selective = options.check(where .. ": selective", layer.selective, SELECTIVE)
  end
  return layer
end

local object = {}

--- Make a profile of a table of its fields.
---@param who string for errors
---@param fields table
---@return gpipe.ModelProfile
function object.new(who, fields)
  local profile = options.check(who, fields, PROFILE)
  host.link(who, profile.host_link)
  if #profile.layers == 0 then
    errors.raise("%s: there are no layers, expected at least one", who)
  end
  local layers = {}
  for i, given in ipairs(profile.layers) do layers[i] = check_layer(who, i, given) end
  profile.layers = layers
  return setmetatable(profile, ModelProfile)
end

--- Whether a value is a profile.
function object.is(value) return getmetatable(value) == ModelProfile end

--- The fields of a profile, as `new` takes them.
---@param profile gpipe.ModelProfile
---@return table
function object.fields(profile)
  local fields = {}
  for key in pairs(PROFILE) do fields[key] = profile[key] end
  return fields
end

-- ---- files --------------------------------------------------------------------------------------

--- Save the profile as a JSON file, which gp.profile{path = ...} reads. The file is written whole
--- or not at all.
--- ```lua
--- local profile = gp.profile {layers = {{forward = 1e-3, weight = 1e-3}, {forward = 2e-3}}}
--- local path = os.tmpname()
--- assert(profile:save(path))
--- assert(gp.profile {path = path}.layers[2].forward == 2e-3)
--- ```
---@param path string
---@return boolean? true
---@return string? message
---@return string? code "io"
function ModelProfile:save(path)
  options.argument("save", "path", path, { type = "string", required = true })
  local fields = object.fields(self)
  fields.kind, fields.version = KIND, VERSION
  return core.file_write(path, json.line({ "kind", "version", "device", "threads", "rows" }, fields)
    .. "\n")
end

local function read(path)
  local file, message = io.open(path, "rb")
  if not file then return nil, message, "io" end
  local found <close> = file
  local data
  data, message = found:read "a"
  if not data then return nil, ("%s: %s"):format(errors.path(path), message), "io" end
  return data
end

--- Read a profile from a file.
---@param who string
---@param path string
---@return gpipe.ModelProfile?
---@return string? message
---@return string? code "io"; "format" where the file holds something else
function object.load(who, path)
  local data, message, code = read(path)
  if not data then return nil, message, code end
  local fields, reason = json.decode(data)
  if type(fields) ~= "table" or fields.kind ~= KIND then
    return nil, ("%s: %s is no profile, expected a file of p:save%s"):format(who,
      errors.path(path), reason and " (" .. reason .. ")" or ""), "format"
  end
  if fields.version ~= VERSION then
    return nil, ("%s: %s has version %s, expected %d"):format(who, errors.path(path),
      errors.show(fields.version), VERSION), "format"
  end
  fields.kind, fields.version = nil, nil
  local good, made = pcall(object.new, who .. ": " .. errors.path(path), fields)
  if not good then return nil, made, "format" end
  return made
end

object.methods = ModelProfile

return object
