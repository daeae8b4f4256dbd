-- lua/gpipe/run_reader/find.lua - the folders of runs below a folder.

local core = require "gpipe.core"
local folder = require "gpipe.run_reader.folder"

local find = {}

-- A run that has just been made has nothing but its config.
local MARKS = { ["config.json"] = true, ["state.json"] = true, ["log.jsonl"] = true }

local DEEPEST = 8 -- folders within folders

-- Append the runs' folders in a folder. What is no folder cannot be listed, and is passed over.
local function search(found, path, names, depth)
  for _, name in ipairs(names) do
    if MARKS[name] then
      found[#found + 1] = path
      return
    end
  end
  for _, name in ipairs(depth > 0 and names or {}) do
    local below = path:gsub("/+$", "") .. "/" .. name
    -- A link may lead in a circle, or through all of the machine.
    local inside = not name:find "^%." and core.folder_is_own(below) and core.folder_names(below)
    if inside then search(found, below, inside, depth - 1) end
  end
end

-- The latest first; those of one second by name.
local function latest_first(a, b)
  local x, y = a.updated or a.created or 0, b.updated or b.created or 0
  if x ~= y then return x > y end
  return a.path < b.path
end

--- The runs in a folder and below it, the one that wrote last first; the folder itself may be one.
---@param path string
---@param known? table<string, gpipe.RunFolder> runs by path that are read on instead of anew
---@return gpipe.RunFolder[]? runs nil, message, code where the folder cannot be read
---@return string? message
---@return string? code
function find.runs(path, known)
  local names, message, code = core.folder_names(path)
  if not names then return nil, message, code end
  local runs, found = {}, {}
  search(found, path, names, DEEPEST)
  for i, place in ipairs(found) do
    local old = known and known[place]
    runs[i] = old and old:update() or folder.open(place)
  end
  table.sort(runs, latest_first)
  return runs
end

return find
