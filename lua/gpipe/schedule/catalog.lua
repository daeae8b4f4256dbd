-- lua/gpipe/schedule/catalog.lua - the schedules there are: the file of each and the options of its own.
--
-- A generator is a function (p, m, opts) in lua/gpipe/schedules/; a new one is a file there and a line here.

local catalog = {}

local entries = {
  naive = { module = "gpipe.schedules.naive", options = {} },
  gpipe = { module = "gpipe.schedules.gpipe", options = {} },
  ["1f1b"] = {
    module = "gpipe.schedules.1f1b",
    options = { warmup = { type = "integer", min = 1, default = 1 } },
  },
}

--- Names in alphabetical order.
---@return string[]
function catalog.names()
  local names = {}
  for name in pairs(entries) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- The entry of a name: {module =, options =} or {generator =}; nil where there is none.
function catalog.find(name) return entries[name] end

--- Add or replace a schedule whose options are passed through unchecked.
function catalog.define(name, generator) entries[name] = { generator = generator } end

return catalog
