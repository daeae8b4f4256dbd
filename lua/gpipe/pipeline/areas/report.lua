-- lua/gpipe/pipeline/areas/report.lua - the report that pipe:memory() and dry:memory() return: a
-- list with an element per device, printed as a table, drawn over the tasks of each device.

local columns = require "gpipe.draw.columns"
local draw = require "gpipe.draw.memory"
local errors = require "gpipe.errors"
local picture = require "gpipe.pipeline.areas.picture"
local sizes = require "gpipe.sizes"

local report = {}

-- The order in which areas are shown; others come behind them.
local ORDER = {
  "parameters", "gradients", "optimizer", "buffers", "extra gradients", "partial sums", "packed",
  "halves",
  "prepared", "constants", "kernel states", "versions", "edges", "saved", "recomputed", "carried",
  "transient", "waste", "staging", "workspace", "thread scratch", "padding",
}

---@class gpipe.DeviceMemory
---@field name string
---@field planned integer bytes
---@field measured integer? bytes that are allocated; nil in a dry run
---@field lower_bound integer bytes that no layout of the same values could do without
---@field cap integer|nil
---@field areas table<string, integer>
---@field host {planned: integer, measured: integer?, cap: integer?}? bytes of the host's memory,
--- beside the device's: what waits there between F and its backward pass

---@class gpipe.Memory
---@field [integer] gpipe.DeviceMemory
local Memory = {}
Memory.__index = Memory
Memory.__name = "gpipe.Memory"

-- Where each report gets its pictures from: {core, plan}. It is no field, so that printing and
-- comparing a report shows figures only.
local sources = setmetatable({}, { __mode = "k" })

-- ---- the table ----------------------------------------------------------------------------------

-- The areas that any device has, in order.
local function shown(list)
  local there, names = {}, {}
  for _, one in ipairs(list) do
    for name in pairs(one.areas) do there[name] = true end
  end
  for _, name in ipairs(ORDER) do
    if there[name] then names[#names + 1] = name end
    there[name] = nil
  end
  local others = {}
  for name in pairs(there) do others[#others + 1] = name end
  table.sort(others)
  return table.move(others, 1, #others, #names + 1, names)
end

local function any(list, field)
  for _, one in ipairs(list) do
    if one[field] then return true end
  end
  return false
end

function Memory:__tostring()
  local rows, names = { { "bytes of" } }, shown(self)
  for d, one in ipairs(self) do rows[1][d + 1] = one.name end
  local function add(title, read)
    local row = { title }
    for d, one in ipairs(self) do row[d + 1] = read(one) and sizes.text(read(one)) or "" end
    rows[#rows + 1] = row
  end
  for _, name in ipairs(names) do add(name, function(one) return one.areas[name] end) end
  add("planned", function(one) return one.planned end)
  if any(self, "measured") then add("measured", function(one) return one.measured end) end
  add("lower bound", function(one) return one.lower_bound end)
  if any(self, "cap") then add("cap", function(one) return one.cap end) end
  if any(self, "host") then
    add("in host memory", function(one) return one.host and one.host.planned end)
  end
  return columns.text(rows)
end

-- ---- pictures -----------------------------------------------------------------------------------

-- What the drawing functions take for device `d`, or for all of them.
local function views(self, who, d)
  local source = sources[self]
  if not source.plan then
    errors.raise("%s: the pipeline has not planned a pass yet, expected a step before "
      .. "pipe:memory() (or option 'sample')", who)
  end
  if d then return picture.device(source.core, source.plan, d, self[d]) end
  local list = {}
  for i = 1, #self do list[i] = picture.device(source.core, source.plan, i, self[i]) end
  return list
end

--- Draw the memory of each device over its tasks as text: what stays for the whole step at the
--- bottom, what tasks keep and work with on it, what is allocated and the cap as lines. The plan is
--- the one that trained last.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 8), nn.Linear(8, 2)},
---   {balance = {1, 1}, chunks = 2, loss = nn.MSELoss()})
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
--- print(pipe:memory():draw {width = 72, height = 6})
--- ```
---@param opts? {title?: string, width?: integer, height?: integer, colour?: boolean,
---  unicode?: boolean} height: lines of a device's plot
---@return string
function Memory:draw(opts) return draw.text(views(self, "draw"), opts) end

--- Write the same picture as an SVG figure; `force = false` keeps an existing file.
--- Errors: nil, message, code where the file cannot be written ("io") or, with force = false, is
--- there ("exists").
---@param path string
---@param opts? {title?: string, width?: integer, force?: boolean} width: points
---@return boolean? true
---@return string? message
---@return string? code
function Memory:svg(path, opts) return draw.svg(views(self, "svg"), path, opts) end

--- Write the same picture as a page: a click on a task lists what is alive during it. Errors: as
--- `svg`.
---@param path string
---@param opts? {title?: string, force?: boolean}
---@return boolean? true
---@return string? message
---@return string? code
function Memory:html(path, opts) return draw.html(views(self, "html"), path, opts) end

-- ---- what is alive ------------------------------------------------------------------------------

---@class gpipe.Alive
---@field [integer] {label: string, area: string, bytes: integer}
local Alive = { __name = "gpipe.Alive" }

function Alive:__tostring() return draw.list_text(self) end

-- The position of a device that is given by it or by its name.
local function position_of(self, device)
  if math.type(device) == "integer" and self[device] then return device end
  for d, one in ipairs(self) do
    if one.name == device then return d end
  end
  errors.raise("alive: the device is %s, expected a name as in the report or a number from 1 to %d",
    errors.show(device), #self)
end

--- List what is alive on a device during a task, the largest first; printed, it is a table.
---@param device string|integer its name, or its position in the report
---@param moment string|integer the name of a task in the lowered schedule, "0B1", or its number
---@return gpipe.Alive
function Memory:alive(device, moment)
  return setmetatable(draw.alive(views(self, "alive", position_of(self, device)), moment), Alive)
end

--- The same on the device whose task it is.
---@param task string "0B1"
---@return gpipe.Alive
function Memory:at(task)
  for d = 1, #self do
    local view = views(self, "at", d)
    for _, name in ipairs(view.times) do
      if name == task then return setmetatable(draw.alive(view, task), Alive) end
    end
  end
  errors.raise('at: no device has a task %s, expected a name such as "0F0" (pipe:lowered() prints '
    .. "them)", errors.show(task))
end

--- Make a report.
---@param list gpipe.DeviceMemory[]
---@param core table the pipeline or plan of the runtime
---@param plan any the plan that pictures show; nil where there is none
---@return gpipe.Memory
function report.new(list, core, plan)
  sources[list] = { core = core, plan = plan }
  return setmetatable(list, Memory)
end

return report
