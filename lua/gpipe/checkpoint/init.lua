-- lua/gpipe/checkpoint/init.lua - `gp.checkpoint`: everything that training needs to resume with
-- the same bits, in a folder that is there whole or not at all.
--
-- The folder has a safetensors file for each stage and MANIFEST.json, which lists them with sizes
-- and checksums and holds the counters. It is written under another name and renamed when it is
-- complete (runtime/io/checkpoint). Over ranks each writes the files of its stages (shares.lua).

local contents = require "gpipe.checkpoint.contents"
local call = require "gpipe.ranks.call"
local core = require "gpipe.core"
local dry_mode = require "gpipe.dry_mode"
local errors = require "gpipe.errors"
local namespace = require "gpipe.namespace"
local nn_state = require "gpipe.nn.state"
local optimizer = require "gpipe.optim.optimizer"
local options = require "gpipe.options"
local parts = require "gpipe.checkpoint.parts"
local ranks = require "gpipe.ranks"
local read = require "gpipe.checkpoint.read"
local shares = require "gpipe.checkpoint.shares"
local settings = require "gpipe.optim.settings"
local tables = require "gpipe.io.tables"

local checkpoint = {}

local under_way ---@type userdata? the last save in the background

-- ---- what belongs to it ------------------------------------------------------------------------

local function rules(more)
  local all = {}
  for key, rule in pairs(parts) do all[key] = rule end
  for key, rule in pairs(more) do all[key] = rule end
  return all
end

local SAVE = rules { extra = { type = "table" },
  background = { type = "boolean", default = false } }
local LOAD = rules {}

local function check_folder(who, folder)
  if type(folder) ~= "string" or folder == "" then
    errors.raise("%s: folder is %s, expected a path", who, errors.show(folder))
  end
end

-- The parts that were named; a pipeline's model is among them.
local function parts_of(who, opts, spec)
  local of = options.check(who, opts, spec)
  if of.pipe and of.model then
    errors.raise("%s: pipe and model are given, expected one (a pipeline has a model)", who)
  end
  of.model = of.model or of.pipe and of.pipe.model
  if not of.model then errors.raise("%s: missing option 'pipe' (or 'model')", who) end
  return of
end

-- Over ranks all have to mean the same folder and optimizer: each writes its share of them.
local function agree(folder, of)
  if not (of.pipe and of.pipe.spread) then return end
  ranks.agree("gp.checkpoint.save", ("folder: %s\nopt: %s\nbackground: %s"):format(folder,
    of.opt and "given" or "none", of.background or false))
end

-- ---- saving ------------------------------------------------------------------------------------

-- Copy the tensors to the host, so that training can go on while they are written.
local function copy(files)
  for _, file in ipairs(files) do
    for i, value in ipairs(file[3] or {}) do
      file[3][i] = value.device == "cpu" and value:clone() or value:to "cpu"
    end
  end
end

-- A file of the script's own tensors, which all ranks have.
local function extra_file(extra)
  local more = { read.EXTRA, {}, {}, rank = 0 }
  for name in pairs(extra) do table.insert(more[2], name) end
  table.sort(more[2])
  for i, name in ipairs(more[2]) do more[3][i] = extra[name] end
  return #more[2] > 0 and more or nil
end

-- The files: {name, names, tensors}, one for each stage that has something.
local function files_of(entries)
  local files, by_stage = {}, {}
  for _, entry in ipairs(entries) do
    local file = by_stage[entry.stage]
    if not file then
      file = { ("stage-%d.safetensors"):format(entry.stage), {}, {} }
      files[#files + 1], by_stage[entry.stage] = file, file
    end
    table.insert(file[2], entry.name)
    table.insert(file[3], entry.value)
  end
  return files
end

---@class gpipe.CheckpointSave
---@field pipe? gpipe.Pipeline or model
---@field model? nn.Module
---@field opt? gpipe.Optimizer
---@field data? any what has state() and restore(): batches
---@field extra? table of the script
---@field background? boolean

---@class gpipe.Saving a checkpoint that is being written in the background
local Saving = {}
Saving.__index = Saving
Saving.__name = "gpipe.Saving"

--- Whether it has ended; `finish` then says how.
---@return boolean
function Saving:done() return self.writer:is_done() end

--- Wait for the end.
---@return boolean? true
---@return string? message where the system refused
---@return string? code
function Saving:finish() return self.writer:finish() end

-- Write the files; `begin` starts the writer.
local function write(of, files, begin)
  if of.background then copy(files) end
  if under_way then under_way:finish() end -- an older save must not overwrite this one
  local writer, message, code = begin(files)
  under_way = writer
  if not writer then return nil, message, code end
  if of.background then return setmetatable({ writer = writer }, Saving) end
  return writer:finish()
end

-- All ranks write; rank 0 knows how it went when all files are there.
local function over_ranks(folder, of, text, files)
  local good, message, code = write(of, files, function(list)
    return shares.begin(folder, text, list)
  end)
  if of.background then return good, message, code end
  local result = ranks.tell("checkpoint: end",
    { good = not not good, message = message, code = code }, 0)
  if result.good then return true end
  return nil, result.message, result.code
end

--- Save everything that training needs to resume: parameters, buffers, moments, counters, learning
--- rates, streams of random numbers, the position in the data, and what `extra` holds (as gp.save
--- takes it), into a folder, whole or not at all. An older checkpoint in the folder is replaced
--- when the new one is complete.
---
--- Over ranks every rank has to call, and writes what it holds; the folder must be one that all of
--- them see.
---
--- With `background = true` it returns as soon as the tensors are copied. The returned object has
--- `:done()` and `:finish()`, which waits and returns the result; the next save waits for it, too.
--- Errors: raises for what cannot be saved, and where the ranks give different folders or only
--- some give an optimizer; nil, message, code where the system refuses.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- local opt = gp.optim.AdamW(pipe:parameters(), {lr = 1e-3})
--- local folder = os.tmpname()
--- os.remove(folder)
--- assert(gp.checkpoint.save(folder, {pipe = pipe, opt = opt, extra = {epoch = 3}}))
--- assert(gp.checkpoint.load(folder, {pipe = pipe, opt = opt}).epoch == 3)
--- ```
---@param folder string
---@param opts gpipe.CheckpointSave
---@return boolean|gpipe.Saving|nil
---@return string? message
---@return string? code
function checkpoint.save(folder, opts)
  check_folder("gp.checkpoint.save", folder)
  local _ <close> = call.enter "gp.checkpoint.save"
  local of = parts_of("gp.checkpoint.save", opts, SAVE)
  if of.pipe and dry_mode.is_on() then return true end
  agree(folder, of)
  local state = contents.state(of) -- waits for steps under way
  local tensors, text = tables.encode { state = state }
  local entries = contents.entries(of)
  local spread = of.pipe and of.pipe.spread
  local files = spread and shares.files(entries) or files_of(entries)
  if not spread or ranks.rank() == 0 then files[#files + 1] = extra_file(tensors) end
  if spread then return over_ranks(folder, of, text, files) end
  return write(of, files, function(list) return core.checkpoint_save(folder, text, list) end)
end

-- ---- loading -----------------------------------------------------------------------------------

--- Read a checkpoint without setting anything: its state, and its tensors by name
--- ("model.3.weight", "optimizer.3.weight.moment1"). Every file is verified against the manifest.
--- Errors: nil, message, code; the message names a file that is missing or damaged.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local folder = os.tmpname()
--- os.remove(folder)
--- assert(gp.checkpoint.save(folder, {model = model}))
--- local state, tensors = assert(gp.checkpoint.read(folder))
--- print(state.saved, tensors["model.1.weight"])
--- ```
---@param folder string
---@return table? state
---@return table<string, gpipe.Tensor>|string tensors or message
---@return string? code "io", "format", "memory"
function checkpoint.read(folder)
  check_folder("gp.checkpoint.read", folder)
  return read.folder(folder)
end

-- The field of the state that each requested part needs, and its name in messages.
local NEEDS = {
  { part = "pipe", key = "progress", what = "progress of a pipeline" },
  { part = "opt", key = "optimizer", what = "optimizer" },
  { part = "data", key = "data", what = "position in the data" },
}

local function check_parts(folder, of, state)
  for _, need in ipairs(NEEDS) do
    if of[need.part] and state[need.key] == nil then
      errors.raise("gp.checkpoint.load: %s has no %s, expected one for '%s'", folder, need.what,
        need.part)
    end
  end
end

-- The tensors of one part, without its prefix.
local function part(tensors, prefix)
  local found = {}
  for name, tensor in pairs(tensors) do
    local own = name:match("^" .. prefix .. "%.(.*)")
    if own then found[own] = tensor end
  end
  return found
end

-- Put tensors and state into their objects; everything is compared before anything is set.
local function put(of, state, tensors)
  local model, moments = part(tensors, "model"), part(tensors, "optimizer")
  if not of.opt then
    for name in pairs(moments) do tensors["optimizer." .. name] = nil end
  end
  nn_state.check(contents.entries(of), tensors)
  contents.check(of, state)
  local owner = of.pipe or of.model
  local _ <close> = nn_state.load_in "own"
  owner:load_state_dict(model)
  if of.opt then nn_state.load(optimizer.entries(of.opt), moments) end
  contents.restore(of, state)
  for _, list in ipairs { model, moments } do
    for _, tensor in pairs(list) do tensor:free() end -- the copy is as large as the model
  end
end

--- Load a checkpoint. The balance, the number of stages, the schedule and the kind of device may
--- differ from those it was saved with. Over ranks each reads what it holds.
--- Errors: raises where something does not fit (one text lists all names, shapes and dtypes) and
--- changes nothing; nil, message, code for a folder that is missing or damaged, by file.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local folder = os.tmpname()
--- os.remove(folder)
--- assert(gp.checkpoint.save(folder, {model = model, extra = {best = 0.5}}))
--- assert(gp.checkpoint.load(folder, {model = model}).best == 0.5)
--- ```
---@param folder string
---@param opts {pipe: gpipe.Pipeline?, model: nn.Module?, opt: gpipe.Optimizer?, data: any}
---@return table? extra what the script gave when it saved; empty where it gave nothing
---@return string? message
---@return string? code
function checkpoint.load(folder, opts)
  check_folder("gp.checkpoint.load", folder)
  local _ <close> = call.enter "gp.checkpoint.load"
  local of = parts_of("gp.checkpoint.load", opts, LOAD)
  local dry = of.pipe and dry_mode.is_on() -- reads the state alone, and sets nothing
  local state, tensors, code = read.folder(folder, dry and {} or read.wanted(of))
  if not state then return nil, tensors, code end
  if dry then return state.extra or {} end
  check_parts(folder, of, state)
  if of.opt then settings.check("gp.checkpoint.load", of.opt, state.optimizer) end
  if of.pipe then of.pipe:progress() end -- waits for steps under way
  put(of, state, tensors)
  return state.extra or {}
end

return namespace("gp.checkpoint",
  { save = checkpoint.save, load = checkpoint.load, read = checkpoint.read })
