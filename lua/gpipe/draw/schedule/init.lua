-- lua/gpipe/draw/schedule/init.lua - drawings of timelines: predicted, measured, or both.
--
-- Every drawing takes one timeline or a list of them (timeline.lua describes them). Files are
-- written whole or not at all.

local file = require "gpipe.draw.file"
local options = require "gpipe.options"
local screen = require "gpipe.screen"
local timeline = require "gpipe.draw.schedule.timeline"

local draw = {}

-- ---- options ------------------------------------------------------------------------------------

local LEAST_WIDTH = 20

-- Options that every drawing has: seconds per unit of predicted timelines, and other timelines.
local function spec_with(more)
  local spec = {
    scale = { type = "number", above = 0, below = math.huge },
    measured = { type = "table" },
    timelines = { type = "table" },
  }
  for key, rule in pairs(more) do spec[key] = rule end
  return spec
end

local text_spec = spec_with {
  width = { type = "integer", min = LEAST_WIDTH },
  height = { type = "integer", min = 2, default = 32 },
  colour = { type = "boolean" },
}

local svg_spec = spec_with {
  width = { type = "number", min = 200 },
  height = { type = "integer", min = 2, default = 64 },
  title = { type = "string" },
  critical = { type = "table" },
  force = { type = "boolean", default = true },
}

local html_spec = spec_with { title = { type = "string" }, force = svg_spec.force }
local trace_spec = spec_with { force = svg_spec.force }

-- A timeline under another name; everything else is shared, also rows that are made on demand.
local function renamed(given, name)
  return type(given) == "table" and setmetatable({ name = name }, { __index = given }) or given
end

-- The views to draw: of the given timelines, and of those in the options.
local function views_of(who, given, o, most)
  local list = {}
  if o.timelines then
    for i, one in ipairs(o.timelines) do list[i] = one end
  end
  if o.measured then
    list = { renamed(given, "predicted"), renamed(o.measured, "measured") }
    local name = type(given) == "table" and given.name or "timeline"
    o.title = o.title or ("%s: predicted and measured"):format(name)
  elseif not o.timelines then
    list = given
  end
  return timeline.views(who, list, most)
end

-- ---- drawings -----------------------------------------------------------------------------------

--- Draw timelines as a text grid; the options are those of `schedule:draw`.
--- Errors: raises for what is no timeline and for unknown options.
---@param given table a timeline, or a list of them
---@param opts table?
---@param who? string the public function, for errors
---@return string
function draw.text(given, opts, who)
  who = who or "draw.text"
  local o = options.check(who, opts, text_spec)
  o.width = o.width or screen.columns()
  if o.colour == nil then o.colour = screen.has_colours(io.stdout) end
  return require("gpipe.draw.schedule.text").render(views_of(who, given, o, o.height), o)
end

-- A function that writes a file with what the module of a kind renders. A file that is there is
-- replaced, unless `force` is false.
local function writer(kind, spec)
  return function(path, given, opts, who)
    who = who or "draw." .. kind
    local o = options.check(who, opts, spec)
    return file.write(who, path, o.force, function()
      return require("gpipe.draw.schedule." .. kind).render(views_of(who, given, o, o.height), o)
    end)
  end
end

--- Draw timelines as an SVG figure; the options are those of `schedule:svg`.
--- Errors: raises for what is no timeline; nil, message, code where the system refuses ("io") or,
--- with force = false, such a file is there ("exists").
---@type fun(path: string, given: table, opts: table?, who: string?): boolean?, string?, string?
draw.svg = writer("svg", svg_spec)

--- Draw timelines as one page with zoom and tooltips; as draw.svg.
---@type fun(path: string, given: table, opts: table?, who: string?): boolean?, string?, string?
draw.html = writer("html", html_spec)

--- Write timelines as Chrome trace JSON; as draw.svg.
---@type fun(path: string, given: table, opts: table?, who: string?): boolean?, string?, string?
draw.trace = writer("trace", trace_spec)

return draw
