-- lua/gpipe/sweep/report/html.lua - a sweep as one page that needs nothing else: its best trials,
-- how it went, all parameters side by side, each of them against the objective, and which mattered.

local core = require "gpipe.core"
local escape = require "gpipe.schedule.draw.escape"
local facts = require "gpipe.sweep.report.facts"
local figure = require "gpipe.sweep.report.figure"
local text = require "gpipe.sweep.text"

local html = {}

local xml, place = escape.xml, escape.place
local BEST, MOST_LINES = 20, 1000 -- rows of the table; trials of the figures, the best of more

-- The class of the i-th best trial of n.
local function class_of(trial, i, n)
  local class = "q" .. math.min(9, 10 * (i - 1) // math.max(1, n))
  return trial.state == "stopped" and class .. " early" or class
end

local function values_of(trials, get)
  local list = {}
  for _, trial in ipairs(trials) do
    local value = get(trial)
    if value ~= nil then list[#list + 1] = value end
  end
  return list
end

local function objective(trial) return trial.value end

-- The axis of a parameter; one that is drawn by its logarithm is shown so.
local function axis_of(view, name)
  local from = view.sweep.space.given[name]
  local is_log = type(from) == "table" and from.kind:find "log"
  return figure.axis(name, values_of(view.shown, function(t) return t.params[name] end), 5,
    is_log and "log" or nil)
end

-- ---- figures -----------------------------------------------------------------------------------

-- The best so far, from trial to trial, as steps.
local function best_line(view)
  return function(x_at, y_at)
    local best, parts = nil, {}
    for _, trial in ipairs(view.trials) do
      if trial.state == "complete" and math.abs(trial.value) < math.huge then
        local better = not best or view.sweep.sign * trial.value < view.sweep.sign * best
        best = better and trial.value or best
        local x, y = x_at(view.numbers.place(trial.number)), y_at(view.y.place(best))
        parts[#parts + 1] = (#parts == 0 and "M%s %s" or "H%s V%s"):format(place(x), place(y))
      end
    end
    return ('<path class="best" d="%s"/>'):format(table.concat(parts))
  end
end

local function history(view)
  local points, rank = {}, {}
  for i, trial in ipairs(view.settled) do rank[trial.number] = i end
  for i, trial in ipairs(view.trials) do
    local at = rank[trial.number]
    points[i] = { trial = trial, x = trial.number, y = at and view.y.place(trial.value) or 0,
      class = at and class_of(trial, at, #view.settled) or "failed" }
  end
  return figure.points { width = 760, height = 260, x = view.numbers, y = view.y, points = points,
    under = best_line(view), tip = view.tip }
end

local function against(view, name)
  local x = axis_of(view, name)
  local points = {}
  for i = #view.shown, 1, -1 do
    local trial = view.shown[i]
    if trial.params[name] ~= nil then
      points[#points + 1] = { trial = trial, x = trial.params[name], y = view.y.place(trial.value),
        class = class_of(trial, i, #view.shown) }
    end
  end
  return figure.points { width = 370, height = 230, x = x, y = view.y, points = points,
    tip = view.tip }
end

local function parallel(view)
  local axes = {}
  for i, name in ipairs(view.names) do axes[i] = axis_of(view, name) end
  axes[#axes + 1] = figure.axis(view.sweep.objective, values_of(view.shown, objective), 5)
  return figure.lines {
    width = math.max(760, 120 * #axes), height = 320, axes = axes, trials = view.shown,
    value = function(trial, name, i) return i == #axes and trial.value or trial.params[name] end,
    class = function(i) return class_of(view.shown[i], i, #view.shown) end, tip = view.tip,
  }
end

-- ---- words -------------------------------------------------------------------------------------

local function cells(tag, list)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = ("<%s>%s</%s>"):format(tag, xml(value), tag) end
  return table.concat(parts)
end

local function best_table(view)
  local head = { "trial", view.sweep.objective }
  for _, name in ipairs(view.names) do head[#head + 1] = name end
  head[#head + 1] = "seconds"
  local lines = { "<tr>" .. cells("th", head) .. "</tr>" }
  for i = 1, math.min(BEST, #view.ranked) do
    local trial = view.ranked[i]
    local row = { tostring(trial.number), text.short(trial.value) }
    for _, name in ipairs(view.names) do
      local value = trial.params[name]
      row[#row + 1] = value == nil and "-" or text.short(value)
    end
    row[#row + 1] = ("%.1f"):format(trial.seconds or 0)
    lines[#lines + 1] = ('<tr class="t" data-t="%d">%s</tr>'):format(trial.number, cells("td", row))
  end
  return "<table>" .. table.concat(lines, "\n") .. "</table>"
end

local function importance(view)
  local list = facts.importance(view.settled, view.names)
  if not list then return '<p class="faint">With ten trials or more.</p>' end
  local lines = {}
  for i, entry in ipairs(list) do
    lines[i] = ('<tr><td>%s</td><td class="bar"><i style="width:%s%%"></i></td><td>%.2f</td></tr>')
      :format(xml(entry.name), place(100 * entry.share), entry.share)
  end
  return ('<table class="bars">%s</table><p class="faint">%s. A parameter that only matters '
    .. "together with another one is not seen.</p>"):format(table.concat(lines, "\n"),
      xml(facts.METHOD))
end

local function failures(view)
  local lines = {}
  for _, trial in ipairs(view.trials) do
    if trial.error then
      lines[#lines + 1] = ("<details><summary>trial %d %s: %s</summary><pre>%s\n%s</pre></details>")
        :format(trial.number, trial.state, xml(trial.error:match "[^\n]*"),
          xml(text.params(trial.params)), (trial.error:gsub("[^\n]+", xml)))
    end
  end
  return #lines > 0 and "<h2>What failed</h2>\n" .. table.concat(lines, "\n") or ""
end

-- ---- the page ----------------------------------------------------------------------------------

-- What the parts of the page look at.
local function view_of(sweep)
  local trials = sweep.trials
  local ranked = facts.ranked(sweep, trials)
  local settled = facts.settled(sweep, trials)
  local view = { sweep = sweep, trials = trials, ranked = ranked, settled = settled,
    names = facts.varying(settled),
    shown = table.move(settled, 1, math.min(#settled, MOST_LINES), 1, {}),
    tip = function(trial) return figure.tip(sweep, trial) end }
  view.y = #ranked > 0 and figure.axis(sweep.objective, values_of(settled, objective), 6)
  view.numbers = #ranked > 0 and figure.axis("trial", { 1, math.max(2, #trials) }, 8, "linear")
  return view
end

local function figures(view)
  if #view.ranked == 0 then return "<p>No trial is complete yet.</p>" end
  local each = {}
  for i, name in ipairs(view.names) do each[i] = against(view, name) end
  return table.concat({
    "<h2>Best trials</h2><section>", best_table(view), "</section>",
    "<h2>History</h2><section>", history(view), "</section>",
    "<h2>All parameters</h2><section>", parallel(view), "</section>",
    "<h2>Importance</h2><section>", importance(view), "</section>",
    "<h2>Each parameter</h2>", '<div class="each">', table.concat(each, "\n"), "</div>",
  }, "\n")
end

--- The page of a sweep.
---@param sweep gpipe.Sweep
---@return string
function html.render(sweep)
  local view = view_of(sweep)
  local parts = {
    TITLE = xml(sweep.name), COUNTS = xml(facts.counts(sweep, view.trials)),
    HOW = xml(("%s, %s"):format(sweep:goal(), sweep:how())), BODY = figures(view),
    FAILURES = failures(view),
  }
  return (require("gpipe.sweep.report.page"):gsub("{{(%u+)}}", parts))
end

-- Whether the file of a path is a page of the same sweep.
local function is_page_of(sweep, path)
  local file <close> = io.open(path, "rb")
  local head = file and file:read(1000) or ""
  return head:find(('<meta name="generator" content="gpipe-lua sweep %s">'):format(xml(sweep.name)),
    1, true) ~= nil
end

--- Write the page. A file that is there is only replaced where it is a page of the same sweep, or
--- with `force`.
---@param sweep gpipe.Sweep
---@param path string
---@param force boolean
---@return string? path
---@return string? message
---@return string? code "io"
function html.write(sweep, path, force)
  local there <close> = io.open(path, "rb")
  if there and not force and not is_page_of(sweep, path) then
    return nil, ("sweep:html: %s is there and is no page of '%s', expected another path or "
      .. "force = true"):format(path, sweep.name), "io"
  end
  local written, message, code = core.file_write(path, html.render(sweep))
  if not written then return nil, message, code end
  return path
end

return html
