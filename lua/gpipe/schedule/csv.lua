-- lua/gpipe/schedule/csv.lua - schedules as CSV, as torch.distributed.pipelining writes and reads
-- them.
--
-- There is a line for each device, with actions between commas and an empty cell where nothing
-- happens. The text holds neither placement nor counts: they follow from the actions of each line.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"

local csv = {}

-- ---- reading ------------------------------------------------------------------------------------

-- The lines without the byte order mark, carriage returns, spaces and quotes that some programs
-- add; empty lines at the end are no devices.
local function lines_of(text)
  local lines = {}
  text = text:gsub("^\u{FEFF}", ""):gsub("\r\n?", "\n"):gsub('[ \t"]', "")
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  while #lines > 0 and lines[#lines] == "" do lines[#lines] = nil end
  return lines
end

-- Until October 2024 torch wrote B for what is I now, and BW for what is B now.
local OLD = { B = "I", BW = "B" }
local function modern(line)
  return (line:gsub("(%d)(%u[%u_]*)", function(digit, op) return digit .. (OLD[op] or op) end))
end

-- Find the first cell of a line that cannot be read, by reading the cells one by one.
local function bad_cell(line)
  local number = 0
  for cell in (line .. ","):gmatch "(.-)," do
    number = number + 1
    if not core.rows(1):read(0, cell) then return number, cell end
  end
end

local function fail_at(number, line)
  local at, cell = bad_cell(line)
  local old = cell:find "%dBW%d" and " (old letters, B for I and BW for B: pass old_letters = true)"
    or ""
  errors.raise("gp.schedule.parse: line %d, cell %d: '%s' is not an action, expected \"2F0\", "
    .. '"2SEND_F0", "(0F7;7B3)OVERLAP_F_B" or nothing%s', number, at, cell:sub(1, 40), old)
end

-- ---- what follows from the actions --------------------------------------------------------------

-- Note a device of a stage with its first micro-batch there. Most stages have one device: that is
-- kept as two numbers without a table, for schedules of many devices.
local function note_device(found, stage, device, micro)
  local only, several = found.only[stage], found.devices[stage]
  if only == nil then
    found.only[stage], found.first[stage] = device, micro
  elseif only == device and not several then
    found.first[stage] = math.min(found.first[stage], micro)
  else
    several = several or { [only] = found.first[stage] }
    several[device] = math.min(several[device] or math.huge, micro)
    found.devices[stage] = several
  end
end

-- Collect from all actions the devices of the stages, the counts, the updates and the versions.
local function survey(lines)
  local found = { stages = 0, micros = 0, updates = 0, versions = false, only = {}, first = {},
    devices = {} }
  for d, line in ipairs(lines) do
    for stage, op, number, version in line:gmatch "(%d+)(%u[%u_]*)(%d*)(@?)" do
      stage, number = math.tointeger(stage), math.tointeger(number) or -1
      local field = op == "U" and "updates" or "micros"
      found.stages = math.max(found.stages, stage + 1)
      found[field] = math.max(found[field], number + 1)
      found.versions = found.versions or version == "@"
      note_device(found, stage, d - 1, (op == "U" or number < 0) and math.huge or number)
    end
  end
  return found
end

-- The devices of a stage, `copies` of them (the same one may count twice); the first of them has
-- the first micro-batch.
local function devices_of(found, stage, copies)
  local list, first = {}, found.devices[stage] or {}
  list[1] = not found.devices[stage] and found.only[stage] or nil
  for device in pairs(first) do list[#list + 1] = device end
  table.sort(list, function(a, b)
    if first[a] ~= first[b] then return first[a] < first[b] end
    return a < b
  end)
  if #list == 0 then
    errors.raise("gp.schedule.parse: stage %d has no action, expected stages 0 to %d", stage,
      found.stages - 1)
  elseif #list > 2 then
    errors.raise("gp.schedule.parse: stage %d is on lines %d, %d and %d, expected one device, or "
      .. "two", stage,
      list[1] + 1, list[2] + 1, list[3] + 1)
  end
  if copies == 1 then return list[1] end
  return { list[1], list[2] or list[1] }
end

-- If any stage has two copies, all have two.
local function placement_of(found)
  local copies, placement = next(found.devices) and 2 or 1, {}
  for stage = 0, found.stages - 1 do placement[stage] = devices_of(found, stage, copies) end
  return placement
end

-- Micro-batches per update; 0 where the whole schedule is one step.
local function batch_of(found)
  if not found.versions and found.updates <= 1 then return 0 end
  return found.updates > 0 and math.ceil(found.micros / found.updates) or 1
end

local PARSE = {
  name = { type = "string", default = "csv" },
  old_letters = { type = "boolean", default = false },
  batch = { type = "integer", min = 0 },
}

-- Make gp.schedule.parse; it needs the class of schedules.
function csv.parser(Schedule)
  --- Read a schedule from CSV text, a line per device, as torch.distributed.pipelining writes it:
  --- compute alone or with sends and receives. Devices, stages, micro-batches and placement follow
  --- from the text; empty cells are kept. old_letters reads files from before October 2024, where B
  --- was what is I now, and BW was B.
  --- Errors: a cell that is no action, with its line.
  --- ```lua
  --- local s = gp.schedule.parse("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n")
  --- assert(s:verify() and s.devices == 2 and s.chunks == 2)
  --- ```
  ---@param text string
  ---@param opts? {name: string?, old_letters: boolean?, batch: integer?} batch: micro-batches of an
  --- update
  ---@return gpipe.Schedule
  return function(text, opts)
    options.argument("gp.schedule.parse", "text", text, { type = "string", required = true })
    local checked = options.check("gp.schedule.parse", opts, PARSE)
    local lines = lines_of(text)
    if #lines == 0 then
      errors.raise("gp.schedule.parse: the text is empty, expected a line per device")
    end
    local rows = core.rows(#lines)
    for d, line in ipairs(lines) do
      if checked.old_letters then lines[d] = modern(line) end
      if not rows:read(d - 1, lines[d]) then fail_at(d, lines[d]) end
    end
    local found = survey(lines)
    if found.micros == 0 then
      errors.raise("gp.schedule.parse: there is no action, expected \"0F0\" or such")
    end
    local made = { rows = rows, placement = placement_of(found),
      batch = checked.batch or batch_of(found) }
    return Schedule.new(checked.name, made, found.micros)
  end
end

-- ---- writing ------------------------------------------------------------------------------------

local function text_of(rows)
  local lines = {}
  for d = 0, #rows - 1 do lines[d + 1] = rows:text(d) end
  return table.concat(lines, "\n") .. "\n"
end

--- The schedule as CSV text, a line per device: "compute" holds what the schedule computes (and its
--- empty cells), "comm" also the sends and receives, placed as torch.distributed.pipelining places
--- them, or as the schedule names them itself.
--- ```lua
--- local text = gp.schedule.build("1f1b", {devices = 2, chunks = 2}):csv()
--- assert(text == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
--- assert(gp.schedule.parse(text):csv() == text)
--- ```
---@param form? "compute"|"comm" default "compute"
---@return string
function csv.csv(self, form)
  form = options.argument("csv", "form", form,
    { choices = { "compute", "comm" }, default = "compute" })
  local good, report = self:verify()
  if not good then errors.raise("csv: %s", tostring(report)) end
  return text_of(form == "comm" and self.checked:comms() or self.checked:compute())
end

return csv
