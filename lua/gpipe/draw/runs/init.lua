-- lua/gpipe/draw/runs/init.lua - pictures of runs: in the terminal, as a figure, as a page.

local core = require "gpipe.core"
local curves = require "gpipe.run_reader.curves"
local errors = require "gpipe.errors"
local file = require "gpipe.draw.file"
local groups = require "gpipe.run_reader.groups"
local options = require "gpipe.options"
local screen = require "gpipe.screen"

local draw = {}

-- ---- options -----------------------------------------------------------------------------------

local FIGURE = {
  x = { type = "string", choices = { "step", "time" }, default = "step" },
  smooth = { type = "number", min = 0, below = 1, default = 0 },
  log = { type = "boolean", default = false },
  by = { type = { "string", "table" } },
}

local function spec_with(more)
  local spec = {}
  for key, rule in pairs(FIGURE) do spec[key] = rule end
  for key, rule in pairs(more) do spec[key] = rule end
  return spec
end

local TEXT = spec_with(screen.PICTURE)
local SVG = spec_with { force = { type = "boolean", default = false } }
local PAGE = { force = { type = "boolean", default = false }, title = { type = "string" } }

-- Names as a list; the functions take nothing, one name, or a list.
local function names_of(who, what, names)
  if names == nil then return {} end
  if type(names) == "string" then return { names } end
  options.argument(who, what .. "s", names, { type = { "string", "table" } })
  for i, name in ipairs(names) do
    if type(name) ~= "string" then
      errors.raise("%s: %s %d is %s, expected a string", who, what, i, errors.show(name))
    end
  end
  return names
end

-- Check the settings of `by`: an empty list would put all runs into one group.
local function check_groups(who, runs, by)
  if type(by) == "table" and #names_of(who, "setting", by) == 0 then
    errors.raise("%s: by is empty, expected settings such as \"lr\"", who)
  end
  local list, fault = groups.of(runs, by)
  if not list then errors.raise("%s: %s", who, fault) end
end

local function gather(who, runs, names, o, most)
  local panels, fault = curves.panels(runs, names_of(who, "name", names))
  if not panels then errors.raise("%s: %s", who, fault) end
  if o.by then check_groups(who, runs, o.by) end
  o.time, o.most = o.x == "time", most
  local list = curves.gather(runs, panels, o)
  if #list == 0 then
    errors.raise("%s: there is nothing to show%s", who,
      o.time and " (no run has a timing.jsonl)" or "")
  end
  return list
end

-- ---- pictures ----------------------------------------------------------------------------------

--- Curves as text for a terminal; the options are those of `run:plot` and `by`.
---@param who string the public function, for errors
---@param runs gpipe.RunFolder[]
---@param names? string|string[]
---@param opts? table
---@return string
function draw.text(who, runs, names, opts)
  local o = options.check(who, opts, TEXT)
  screen.fill_in(o)
  o.lines = o.smooth > 0 or o.by ~= nil -- bands of several groups would cover each other
  local text = require "gpipe.draw.curves.text"
  return core.plain_numbers(function()
    return text.render(gather(who, runs, names, o, text.points(o.width)), o)
  end)
end

--- Curves as an SVG figure in a file; the options are those of `runs:svg`.
---@return boolean? true
---@return string? message
---@return string? code "io"; "exists" where there is such a file and force was not given
function draw.svg(who, runs, path, names, opts)
  local o = options.check(who, opts, SVG)
  return file.write(who, path, o.force, function()
    local figure = require "gpipe.draw.curves.svg"
    return figure.render(gather(who, runs, names, o, figure.POINTS), o)
  end)
end

--- Runs as one page in a file; the options are those of `runs:html`, results as draw.svg.
function draw.html(who, runs, path, opts)
  local o = options.check(who, opts, PAGE)
  return file.write(who, path, o.force, function()
    return require("gpipe.draw.runs.html").render(runs, o)
  end)
end

return draw
