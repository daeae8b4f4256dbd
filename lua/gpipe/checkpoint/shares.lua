-- lua/gpipe/checkpoint/shares.lua - a checkpoint that several ranks write side by side: who writes
-- which file.
--
-- A file has the tensors of one stage that one rank holds, so each rank writes what it has, and
-- nothing is sent. Names and their order are the same on all ranks. Rank 0 leads: it makes the
-- folder, waits for all files, writes the manifest and puts the folder in place.

local core = require "gpipe.core"
local ranks = require "gpipe.ranks"

local shares = {}

-- The rank that holds a value; nil if every rank has it.
local function holder_of(entry) return entry.box and core.param_holder(entry.box) end

-- The rank of each stage: that of the first of its entries that one rank holds, else rank 0.
local function owners_of(entries)
  local owners = {}
  for _, entry in ipairs(entries) do
    owners[entry.stage] = owners[entry.stage] or holder_of(entry)
  end
  return owners
end

--- The files {name, names, tensors, rank} of entries that lie with several ranks. Those of other
--- ranks have a name only.
---@param entries {name: string, stage: integer, value: gpipe.Tensor?, box: gpipe.Tensor?}[]
---@return table[]
function shares.files(entries)
  local owners, files, known = owners_of(entries), {}, {}
  for _, entry in ipairs(entries) do
    local owner = owners[entry.stage] or 0
    local rank = holder_of(entry) or owner
    local name = rank == owner and ("stage-%d.safetensors"):format(entry.stage)
      or ("stage-%d-rank-%d.safetensors"):format(entry.stage, rank)
    local file = known[name]
    if not file then
      file = { name, rank = rank }
      files[#files + 1], known[name] = file, file
    end
    if rank == ranks.rank() then
      file[2], file[3] = file[2] or {}, file[3] or {}
      table.insert(file[2], entry.name)
      table.insert(file[3], entry.value)
    end
  end
  return files
end

-- The files that a rank which follows adds: its own.
local function own(files)
  local list = {}
  for _, file in ipairs(files) do
    if file.rank == ranks.rank() then list[#list + 1] = file end
  end
  return list
end

--- Begin to write on all ranks.
---@param folder string
---@param text string the state, which rank 0 writes
---@param files table[] of shares.files
---@return userdata? writer
---@return string? message
---@return string? code
function shares.begin(folder, text, files)
  local leads, writer, shared, code = ranks.rank() == 0, nil, nil, nil
  ranks.gather("checkpoint: begin", "") -- one that is elsewhere would be waited for at the end
  if leads then writer, shared, code = core.checkpoint_save(folder, text, files, true) end
  local told = ranks.tell("checkpoint: folder",
    { folder = writer and shared, message = shared, code = code }, 0)
  if not told.folder then return nil, told.message, told.code end
  if leads then return writer end
  writer, shared, code = core.checkpoint_save(folder, "", own(files), told.folder)
  return writer, shared, code
end

return shares
