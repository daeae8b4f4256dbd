-- lua/gpipe/draw/schedule/init.lua - drawings of timelines: predicted, measured, or both.
--
-- Every drawing takes one timeline or a list of them (timeline.lua says what one is). Files are
-- written whole or not at all: nil, message, code where the world refuses.

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

-- A timeline under another name: all else is shared, rows that are made on demand too.
local function renamed(given, name)
  return type(given) == "table" and setmetatable({ name = name }, { __index = given }) or given
end

-- What to draw: the given timelines, then those of the options.
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

--- Draw timelines as a text grid.
--- Errors: raises for what is no timeline and for unknown options.
---@param given table a timeline, or a list of them
---@param opts? {width?: integer, height?: integer, colour?: boolean, scale?: number, measured?: table}
---@param who? string the public function, for errors
---@return string
function draw.text(given, opts, who)
  who = who or "draw.text"
  local o = options.check(who, opts, text_spec)
  o.width = o.width or screen.columns()
  if o.colour == nil then o.colour = screen.has_colours(io.stdout) end
  return require("gpipe.draw.schedule.text").render(views_of(who, given, o, o.height), o)
end

-- Render with the module of a kind, and write what it made.
local function write(who, kind, spec, path, given, opts)
  local o = options.check(who, opts, spec)
  return file.write(who, path, o.force, function()
    return require("gpipe.draw.schedule." .. kind).render(views_of(who, given, o, o.height), o)
  end)
end

--- Draw timelines as an SVG figure. It takes the place of a file that is there, unless `force` is
--- false.
--- Errors: raises for what is no timeline; nil, message, code where the system refuses ("io") or,
--- with force = false, such a file is there ("exists").
---@param path string
---@param given table a timeline, or a list of them
---@param opts? {width?: number, height?: integer, title?: string, critical?: table, scale?: number}
---@param who? string the public function, for errors
---@return boolean? true
---@return string? message
---@return string? code "io"
function draw.svg(path, given, opts, who)
  return write(who or "draw.svg", "svg", svg_spec, path, given, opts)
end

--- Draw timelines as one page with zoom and tooltips; errors as for draw.svg.
---@param path string
---@param given table a timeline, or a list of them
---@param opts? {title?: string, scale?: number, measured?: table}
---@param who? string
---@return boolean? true
---@return string? message
---@return string? code "io"
function draw.html(path, given, opts, who)
  return write(who or "draw.html", "html", html_spec, path, given, opts)
end

--- Write timelines as Chrome trace JSON; errors as for draw.svg.
---@param path string
---@param given table a timeline, or a list of them
---@param opts? {measured?: table}
---@param who? string
---@return boolean? true
---@return string? message
---@return string? code "io"
function draw.trace(path, given, opts, who)
  return write(who or "draw.trace", "trace", trace_spec, path, given, opts)
end

return draw
