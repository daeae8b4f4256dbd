-- scripts/check_rooms.lua - the folders inside runtime/engine and runtime/plan are layers.
--
-- Each list says the order of the rooms from the top down: a file includes what lies in its own
-- room or in a lower one. "." is the folder's own files. Distinct pairs of rooms that include
-- upwards are counted: at most 8 per folder. Run from the root of the checkout; prints each fault,
-- exits 1.

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"

local MOST = 8

local FOLDERS = {
  engine = { ".", "run", "update", "bind", "intake", "optimizer", "profile", "watch", "memory",
    "worker", "state" },
  plan = { "edge", "refine", "memory", ".", "remat", "program", "arrange" },
}

local function room_of(folder, path)
  local inside = path:match("^" .. folder .. "/(.*)$")
  return inside and (inside:match "^([^/]+)/" or ".")
end

local function list_includes(folder)
  return judge.lines_of(("grep -rnE '^#include \"%s/' runtime/%s"):format(folder, folder))
end

local function heights_of(rooms)
  local heights = {}
  for i, room in ipairs(rooms) do heights[room] = #rooms - i end
  return heights
end

for folder, rooms in pairs(FOLDERS) do
  local heights, up, count = heights_of(rooms), {}, 0
  for _, line in ipairs(list_includes(folder)) do
    local path, target = line:match '^runtime/([^:]+):%d+:#include "([^"]+)"'
    local from, to = room_of(folder, path), room_of(folder, target)
    if not heights[from] or not heights[to] then
      judge.complain("runtime/%s: room %s has no place in the order of scripts/check_rooms.lua",
        folder, heights[from] and to or from)
    elseif heights[to] > heights[from] then
      local arrow = from .. " -> " .. to
      if not up[arrow] then count = count + 1 end
      up[arrow] = up[arrow] or {}
      table.insert(up[arrow], path)
    end
  end
  if count > MOST then
    for arrow, paths in pairs(up) do
      judge.complain("runtime/%s: %s runs up (%s)", folder, arrow, table.concat(paths, ", "))
    end
    judge.complain("runtime/%s: %d arrows between rooms run up, expected at most %d", folder, count,
      MOST)
  end
end
judge.finish()
