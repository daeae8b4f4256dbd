-- lua/gpipe/run_reader/groups.lua - group runs by their settings: runs that differ only by a seed
-- become one curve with a band.

local errors = require "gpipe.errors"

local groups = {}

---@class gpipe.RunGroup
---@field label string "lr=0.1 width=16"
---@field runs gpipe.RunFolder[]

local LARGEST_LABEL = 60 -- characters of a value

-- {a = {b = 1}} is "a.b".
local function flatten(value, path, into)
  if type(value) ~= "table" then
    into[path] = errors.name(tostring(value), LARGEST_LABEL)
    return into
  end
  for key, inner in pairs(value) do
    flatten(inner, path == "" and tostring(key) or path .. "." .. tostring(key), into)
  end
  return into
end

local function settings_of(runs)
  local all, seen, keys = {}, {}, {}
  for i, run in ipairs(runs) do
    all[i] = flatten(run.config, "", {})
    for key in pairs(all[i]) do
      if not seen[key] then seen[key], keys[#keys + 1] = true, key end
    end
  end
  table.sort(keys)
  return all, keys
end

--- List the settings that differ between runs, in alphabetical order. Runs without settings do not
--- count.
---@param runs gpipe.RunFolder[]
---@return string[]
function groups.keys(runs)
  local all, keys = settings_of(runs)
  local list, with = {}, {}
  for _, settings in ipairs(all) do
    if next(settings) then with[#with + 1] = settings end
  end
  for _, key in ipairs(keys) do
    for _, settings in ipairs(with) do
      if settings[key] ~= with[1][key] then
        list[#list + 1] = key
        break
      end
    end
  end
  return list
end

-- "lr,width" or a list; a key may hold a comma itself.
local function keys_of(by, known)
  if type(by) == "table" then return by end
  if known[by] then return { by } end
  local list = {}
  for key in by:gmatch "[^,]+" do list[#list + 1] = key end
  return list
end

-- Order groups by their values: numbers by size, then words, then groups without the setting.
local function before(a, b)
  for i = 1, a.keys do
    local x, y = a.values[i], b.values[i]
    if x ~= y then
      if not (x and y) then return x ~= nil end
      local m, n = tonumber(x), tonumber(y)
      if m and n and m ~= n then return m < n end
      if (m == nil) ~= (n == nil) then return m ~= nil end
      return x < y
    end
  end
  return false
end

--- Group the runs that agree in some settings, in the order of the values.
---@param runs gpipe.RunFolder[]
---@param by string|string[] "lr", "lr,width"
---@return gpipe.RunGroup[]?
---@return string? fault no run has such a setting
function groups.of(runs, by)
  local all, names = settings_of(runs)
  local known = {}
  for _, name in ipairs(names) do known[name] = true end
  local keys, found, list = keys_of(by, known), {}, {}
  for _, key in ipairs(keys) do
    if not known[key] then
      return nil, ("no run has the setting '%s'%s"):format(key, errors.hint(key, names, "settings"))
    end
  end
  for i, run in ipairs(runs) do
    local values, words = {}, {}
    for k, key in ipairs(keys) do
      values[k] = all[i][key]
      words[k] = ("%s=%s"):format(key, values[k] or "?")
    end
    local label = table.concat(words, " ")
    if not found[label] then
      found[label] = { label = label, runs = {}, values = values, keys = #keys }
      list[#list + 1] = found[label]
    end
    table.insert(found[label].runs, run)
  end
  table.sort(list, before)
  return list
end

return groups
