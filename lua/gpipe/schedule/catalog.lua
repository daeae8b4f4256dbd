-- lua/gpipe/schedule/catalog.lua - the known schedules: the module and the options of each.
--
-- A generator is a function (p, m, opts) in lua/gpipe/schedule/published/; a new one is a file
-- there and a line here.

local catalog = {}

local boolean, integer = "boolean", "integer"
local stages = { type = integer, min = 1, default = 2 }
local group = { type = integer, min = 1 }
local cost = { type = { "number", "table" }, default = 1 } -- one for all stages, or a list
-- A V goes down the devices and up again, so each device has two stages.
local two_stages = {
  type = integer, default = 2,
  check = function(v) return v ~= 2 and "2 (a V has two stages on each device)" or nil end,
}

-- The generator of a name is the module gpipe.schedule.published.<name>.
local option_specs = {
  ["1f1b"] = { warmup = { type = integer, min = 1, default = 1 } },
  chimera = {},
  dualpipe = {},
  dualpipev = { stages_per_device = two_stages },
  gpipe = { backward = { type = "string", choices = { "fifo", "lifo" }, default = "fifo" } },
  interleaved_1f1b = { stages_per_device = stages, group = group },
  interleaved_zero_bubble = { stages_per_device = stages, group = group },
  looped_bfs = { stages_per_device = stages },
  naive = {},
  pipedream = { vertical_sync = { type = boolean, default = false } },
  pipedream_2bw = { batches = { type = integer, min = 1, default = 3 } },
  v_half = { stages_per_device = two_stages },
  v_min = { stages_per_device = two_stages },
  zb_auto = {
    memory = { type = integer, min = 1 }, F = cost, I = cost, W = cost,
    comm = { type = "number", min = 0, below = math.huge, default = 0 },
  },
  zb_h1 = {},
  zb_h2 = {},
  zbv = { stages_per_device = two_stages },
}

local entries = {}
for name, spec in pairs(option_specs) do
  entries[name] = { module = "gpipe.schedule.published." .. name, options = spec }
end

--- List the names in alphabetical order.
---@return string[]
function catalog.names()
  local names = {}
  for name in pairs(entries) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- The entry of a name: {module =, options =} or {generator =}; nil where there is none.
function catalog.find(name) return entries[name] end

--- Whether a published schedule has this name.
---@param name string
---@return boolean
function catalog.is_published(name) return option_specs[name] ~= nil end

--- Add or replace a schedule whose options are passed through unchecked.
function catalog.define(name, generator) entries[name] = { generator = generator } end

return catalog
