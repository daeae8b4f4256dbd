-- lua/gpipe/models/gpt2/files.lua - `gpt2.load` and `gpt2.save`: a folder in Hugging Face's layout.
--
-- A folder holds config.json and the weights: model.safetensors, or several files that
-- model.safetensors.index.json lists. Neither is trusted: configuration and tensors are compared
-- before a model is made, so memory use is bounded by what the files hold.

local check = require "gpipe.nn.check"
local config = require "gpipe.models.gpt2.config"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local io = require "gpipe.io"
local layers = require "gpipe.models.gpt2.layers"
local names = require "gpipe.models.gpt2.names"
local nn = require "gpipe.nn"

local files = {}

local SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
local COLLECT = 8 << 20 -- numbers that may wait for the garbage collector
local DTYPES = { f32 = true, f64 = true, f16 = true, bf16 = true }

local function failed(path, reason) return nil, ("%s: %s"):format(path, reason), "format" end

-- ---- reading ------------------------------------------------------------------------------------

local function read_text(path)
  local bytes, message, code = core.file_read(path)
  if not bytes then return nil, message, code end
  return bytes:bytes()
end

local function exists(path)
  local file <close> = _G.io.open(path, "rb")
  return file ~= nil
end

-- The files that an index lists. Only names beside the index are allowed, or a folder could read
-- any file.
local function listed(folder)
  local path = folder .. "/" .. INDEX
  local text, message, code = read_text(path)
  if not text then return nil, message, code end
  local index, reason = core.json_decode(text)
  local map = type(index) == "table" and index.weight_map
  if type(map) ~= "table" then return failed(path, reason or "there is no object weight_map") end
  local seen, list = {}, {}
  for name, file in pairs(map) do
    if type(file) ~= "string" or file:find "/" or file == ".." then
      return failed(path, ("'%s' lies in %s, expected the name of a file beside it"):format(name,
        errors.show(file)))
    end
    if not seen[file] then list[#list + 1] = file end
    seen[file] = true
  end
  table.sort(list)
  return list
end

local function weight_files(folder)
  if exists(folder .. "/" .. SINGLE) then return { SINGLE } end
  if exists(folder .. "/" .. INDEX) then return listed(folder) end
  local note = exists(folder .. "/pytorch_model.bin")
    and " (pytorch_model.bin is a pickle, which is not read: save it as safetensors)" or ""
  return nil, ("%s: there is neither %s nor %s%s"):format(folder, SINGLE, INDEX, note), "io"
end

-- All tensors by their names without prefix.
local function read_tensors(folder)
  local list, message, code = weight_files(folder)
  if not list then return nil, message, code end
  local tensors = {}
  for _, file in ipairs(list) do
    local path = folder .. "/" .. file
    local found, reason, what = io.load(path)
    if not found then return nil, reason, what end
    for name, tensor in pairs(found) do
      local plain = names.plain(tostring(name))
      if plain and tensors[plain] then return failed(path, ("%s is there twice"):format(plain)) end
      if plain then tensors[plain] = tensor end
    end
  end
  return tensors
end

-- ---- comparing ----------------------------------------------------------------------------------

local function fault_of(entry, tensor)
  local want = check.shape_text(entry.shape)
  if tensor == nil then return ("missing: %s (%s)"):format(entry.file, want) end
  local have = getmetatable(tensor) == "gpipe.Tensor" and tensor.dtype or errors.show(tensor)
  if not DTYPES[have] then
    return ("wrong: %s is %s, expected f32, f16, bf16 or f64"):format(entry.file, have)
  end
  local shape = check.shape_text(tensor.shape)
  if shape ~= want then
    return ("wrong: %s is %s, expected %s"):format(entry.file, shape, want)
  end
end

local function add_unexpected(faults, tensors, known)
  local list = {}
  for name in pairs(tensors) do
    if not known[name] then list[#list + 1] = "unexpected: " .. name end
  end
  table.sort(list)
  table.move(list, 1, #list, #faults + 1, faults)
end

-- If a file holds a head's matrix beside the tied table, both must be the same matrix.
local function check_head(c, tensors, faults)
  local head, embedding = tensors[names.HEAD], tensors["wte.weight"]
  if not c.tied or not head then return end
  tensors[names.HEAD] = nil
  if #faults == 0 and not core.methods.equal(head, embedding) then
    faults[1] = "wrong: lm_head.weight differs from wte.weight, expected the same matrix or "
      .. "tie_word_embeddings = false in config.json"
  end
end

local function count_of(t)
  local count = 0
  for _ in pairs(t) do count = count + 1 end
  return count
end

local function faults_of(c, tensors, list)
  local faults, known = {}, {}
  for _, entry in ipairs(list) do
    known[entry.file] = true
    faults[#faults + 1] = fault_of(entry, tensors[entry.file])
  end
  check_head(c, tensors, faults)
  add_unexpected(faults, tensors, known)
  return faults
end

-- ---- loading ------------------------------------------------------------------------------------

-- Copied tensors are freed on the way, so that file and model never lie in memory whole at the same
-- time: the model of an f16 file is twice as large as the file.
local function fill(model, tensors, list)
  local values, copied = {}, 0
  for _, p in ipairs(model:parameters()) do values[p.name] = p end
  for _, entry in ipairs(list) do
    local tensor = tensors[entry.file]
    values[entry.own].value:copy_(entry.transposed and tensor:transpose(1, 2) or tensor)
    tensors[entry.file] = nil
    copied = copied + tensor:numel()
    if copied > COLLECT then
      tensor, copied = nil, 0 -- luacheck: ignore 311
      collectgarbage()
    end
  end
end

local function check_folder(who, folder)
  if type(folder) ~= "string" then
    errors.raise("%s: folder is %s, expected a string", who, errors.show(folder))
  end
end

--- Load GPT-2 from a folder in Hugging Face's layout: config.json and model.safetensors, or the
--- files that model.safetensors.index.json lists.
---
--- Names may have the prefix `transformer.`. The head's own copy of the table and the masks of old
--- files (`attn.bias`) may be present or not. Files of f16 and bf16 become f32.
--- Errors: nil, message, code for a file that cannot be read, is damaged or holds something else;
--- one text names all tensors that do not fit.
--- ```lua
--- local folder = os.tmpname()
--- os.remove(folder)
--- assert(os.execute("mkdir " .. folder))
--- local made = gp.models.gpt2 {layers = 1, width = 8, heads = 2, context = 4, vocabulary = 10}
--- assert(gp.models.gpt2.save(made, folder))
--- local model, config = assert(gp.models.gpt2.load(folder))
--- assert(config.context == 4 and #model == 3)
--- os.execute("rm -r " .. folder)
--- ```
---@param folder string
---@return nn.Sequential? model
---@return table|string config {layers, width, heads, context, vocabulary, inner, eps, activation,
---  tied, dropouts = {embedding, attention, residual}}, or the message
---@return string? code "io", "format", "memory"
function files.load(folder)
  check_folder("gp.models.gpt2.load", folder)
  local path = folder .. "/config.json"
  local text, message, code = read_text(path)
  if not text then return nil, message, code end
  local c, reason = config.read(text)
  if not c then return failed(path, reason) end
  local tensors
  tensors, message, code = read_tensors(folder)
  if not tensors then return nil, message, code end
  if c.layers > count_of(tensors) then
    return failed(folder, ("n_layer is %d, the files hold %d tensors"):format(c.layers,
      count_of(tensors)))
  end
  local list = names.list(c)
  local faults = faults_of(c, tensors, list)
  if #faults > 0 then
    return failed(folder, ("the weights do not fit config.json (%d %s)\n  %s"):format(#faults,
      #faults == 1 and "fault" or "faults", table.concat(faults, "\n  ")))
  end
  c.init = nn.init.zeros() -- drawing numbers that are overwritten would take longer than reading
  local model = layers.build(c)
  c.init = nil
  fill(model, tensors, list)
  return model, c
end

-- ---- saving -------------------------------------------------------------------------------------

local function tensors_of(model, c)
  local values, tensors = {}, {}
  for _, p in ipairs(model:parameters()) do values[p.name] = p.value end
  for _, entry in ipairs(names.list(c)) do
    local value = values[entry.own]
    if entry.transposed then value = value:transpose(1, 2):contiguous() end
    tensors[names.prefixed(entry)] = value
  end
  return tensors
end

--- Save a GPT-2 as config.json and model.safetensors, which transformers can load. Each file is
--- written whole or not at all, and is on the disk when this returns. The folder must exist.
---
--- Errors: raises for a model that gp.models.gpt2 did not make; nil, message, code if the system
--- refuses.
--- ```lua
--- local model = gp.models.gpt2 {layers = 1, width = 8, heads = 2, context = 4, vocabulary = 10}
--- local done, message = gp.models.gpt2.save(model, "/no/such/folder")
--- assert(not done and message)
--- ```
---@param model nn.Sequential|gpipe.Pipeline a pipeline: the values that it has now
---@param folder string
---@return boolean? true
---@return string? message
---@return string? code "io", "memory"
function files.save(model, folder)
  check_folder("gp.models.gpt2.save", folder)
  local is_pipeline = type(model) == "table" and getmetatable(model)
    and getmetatable(model).__name == "gpipe.Pipeline"
  local c = layers.config_of(is_pipeline and model.model or model)
  if not c then
    errors.raise("gp.models.gpt2.save: model is %s, expected one that gp.models.gpt2 made",
      errors.show(model))
  end
  local good, message, code = io.save(folder .. "/" .. SINGLE, tensors_of(model, c),
    { format = "pt" })
  if not good then return nil, message, code end
  return core.file_write(folder .. "/config.json", config.text(c))
end

return files
