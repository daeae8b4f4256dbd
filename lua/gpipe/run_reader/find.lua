-- lua/gpipe/run_reader/find.lua - the folders of runs below a folder.

local core = require "gpipe.core"
local folder = require "gpipe.run_reader.folder"

local find = {}

-- A folder with one of these files is a run; a new run has only its config.
local MARKS = { ["config.json"] = true, ["state.json"] = true, ["log.jsonl"] = true }

local DEEPEST = 8 -- folders within folders

-- Append the folders of runs in and below a folder. What cannot be listed is skipped: no folder.
local function search(found, path, names, depth)
  for _, name in ipairs(names) do
    if MARKS[name] then
      found[#found + 1] = path
      return
    end
  end
  for _, name in ipairs(depth > 0 and names or {}) do
    local below = path:gsub("/+$", "") .. "/" .. name
    -- Links are not followed: they may lead in a circle, or through the whole machine.
    local inside = not name:find "^%." and core.folder_is_own(below) and core.folder_names(below)
    if inside then search(found, below, inside, depth - 1) end
  end
end

-- The latest first; runs of the same second by path.
local function latest_first(a, b)
  local x, y = a.updated or a.created or 0, b.updated or b.created or 0
  if x ~= y then return x > y end
  return a.path < b.path
end

--- Find the runs in a folder and below it, the latest first; the folder itself may be a run.
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
