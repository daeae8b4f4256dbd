-- lua/gpipe/pipeline/devices.lua - the devices of a pipeline: names, threads, defaults.
--
-- A device is a name, or {name, threads = n}. CPU devices share the cores evenly unless told
-- otherwise; a name given twice makes two devices.

local errors = require "gpipe.errors"
local machine = require "gpipe.machine"
local options = require "gpipe.options"

local devices = {}

local WHO = "gp.pipeline"

local function check_name(name)
  if type(name) ~= "string" then
    errors.raise("%s: a device is %s, expected a name such as \"cpu:0\"", WHO, errors.show(name))
  end
  local kind, number = name:match("^(%a+):?(%d*)")
  if kind == "cpu" and name:match("^cpu:?%d*$") then
    return number == "" and "cpu:0" or name
  end
  if kind == "cuda" then
    local all = machine.devices { why = true }
    for _, d in ipairs(all) do
      if d.kind == "cuda" and d.why then
        errors.raise("%s: device '%s' cannot be used: %s", WHO, name, d.why)
      end
    end
  end
  errors.raise("%s: there is no device '%s', expected cpu:0, cpu:1, ...", WHO, name)
end

-- "cpu:0" or {"cpu:0", threads = 2} -> {name, threads or nil}
local function parse(entry)
  if type(entry) ~= "table" then return { name = check_name(entry) } end
  local o = options.check(WHO .. ": a device", entry, {
    [1] = { type = "string", required = true }, threads = { type = "integer", min = 1, max = 64 },
  })
  return { name = check_name(o[1]), threads = o.threads }
end

-- Threads of devices that named none: an even share of the cores, at least one.
local function share_cores(list)
  local cores, open = #machine.devices(), 0
  for _, d in ipairs(list) do
    if d.threads then cores = cores - d.threads else open = open + 1 end
  end
  local given = 0
  for _, d in ipairs(list) do
    if not d.threads then
      local extra = given < cores % open and 1 or 0
      d.threads = math.max(1, cores // open + extra)
      given = given + 1
    end
  end
  return list
end

--- The devices of a pipeline that wants so many (nil: not known yet).
---@param given? table option `devices`, or what the command line named
---@param wanted? integer
---@return {name: string, threads: integer}[]
function devices.resolve(given, wanted)
  local list = {}
  if given then
    if #given == 0 then errors.raise("%s: devices is empty, expected at least one", WHO) end
    for i, entry in ipairs(given) do list[i] = parse(entry) end
    if wanted and #list < wanted then
      errors.raise("%s: %d devices where the schedule wants %d: add devices or shorten balance (a device "
        .. "may be named twice)", WHO, #list, wanted)
    end
    for i = #list, (wanted or #list) + 1, -1 do list[i] = nil end
  else
    for i = 1, wanted or 1 do list[i] = { name = "cpu:" .. i - 1 } end
  end
  return share_cores(list)
end

return devices
