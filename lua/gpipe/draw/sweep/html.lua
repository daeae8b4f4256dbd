-- lua/gpipe/draw/sweep/html.lua - a sweep as one self-contained page: its history, the learning
-- curves, all parameters side by side, each of them against the objective, which of them mattered,
-- a table of all trials, and a page of each.

local escape = require "gpipe.io.escape"
local file = require "gpipe.draw.file"
local facts = require "gpipe.sweep.report.facts"
local figure = require "gpipe.draw.sweep.figure"
local page = require "gpipe.draw.page"
local svg = require "gpipe.draw.svg"
local text = require "gpipe.sweep.text"

local html = {}

local xml, place = escape.xml, escape.place
local MOST_LINES = 1000 -- trials in the figures and with pages of their own; of more, the best
local WIDE = 1120       -- pixels

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

-- The axis of a parameter: logarithmic if its domain is. Where a function of the script gives the
-- domain, the values decide.
local function axis_of(view, name)
  local from = view.sweep.space.given[name]
  local kind = type(from) == "table" and from.kind
  local scale = kind and (kind:find "log" and "log" or "linear") or nil
  return figure.axis(name, values_of(view.shown, function(t) return t.params[name] end), 5, scale)
end

-- ---- figures -----------------------------------------------------------------------------------

-- The best so far, from trial to trial, as steps.
local function best_line(view)
  return function(out, x_at, y_at)
    local best, parts = nil, {}
    for _, trial in ipairs(view.trials) do
      if trial.state == "complete" and math.abs(trial.value) < math.huge then
        local better = not best or view.sweep.sign * trial.value < view.sweep.sign * best
        best = better and trial.value or best
        local x, y = x_at(view.numbers.place(trial.number)), y_at(view.y.place(best))
        parts[#parts + 1] = (#parts == 0 and "M%s %s" or "H%s V%s"):format(place(x), place(y))
      end
    end
    parts[#parts + 1] = "H" .. place(x_at(1)) -- it holds to the last trial
    svg.path(out, table.concat(parts), 'class="best"')
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
  return figure.points { width = WIDE, height = 260, x = view.numbers, y = view.y, points = points,
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
    width = math.max(WIDE, 120 * #axes), height = 320, axes = axes, trials = view.shown,
    value = function(trial, name, i) return i == #axes and trial.value or trial.params[name] end,
    class = function(i) return class_of(view.shown[i], i, #view.shown) end, tip = view.tip,
  }
end

-- ---- learning curves ---------------------------------------------------------------------------

-- A learning curve for each trial with reports: the best first, then those that are not settled.
local function curves_of(view)
  local rank, list = {}, {}
  for i, trial in ipairs(view.settled) do rank[trial.number] = i end
  local order = table.move(view.trials, 1, #view.trials, 1, {})
  table.sort(order, function(a, b)
    local x, y = rank[a.number] or math.huge, rank[b.number] or math.huge
    return x < y or x == y and a.number < b.number
  end)
  for _, trial in ipairs(order) do
    local points = #list < MOST_LINES and view.sweep.store:reports(trial.number) or {}
    local at = rank[trial.number]
    if #points > 0 then
      list[#list + 1] = { trial = trial, points = points,
        class = at and class_of(trial, at, #view.settled) or "lost" }
    end
  end
  return list
end

-- Finite values and steps of curves.
local function range_of(curves)
  local steps, values = {}, {}
  for _, curve in ipairs(curves) do
    for _, point in ipairs(curve.points) do
      steps[#steps + 1] = point.step
      if point.value and point.value - point.value == 0 then values[#values + 1] = point.value end
    end
  end
  return steps, values
end

local function learning(view, curves, width, height)
  local steps, values = range_of(curves)
  if #values == 0 then return nil end
  if #steps == 1 then steps[2] = steps[1] + 1 end
  return figure.curves { width = width, height = height, curves = curves, tip = view.tip,
    x = figure.axis("step", steps, 8, "linear"),
    y = figure.axis(view.sweep.objective, values, 6) }
end

-- ---- words -------------------------------------------------------------------------------------

-- A cell with the number that it is sorted by.
local function cell(value, shown)
  local by = type(value) == "number" and (' data-v="%.17g"'):format(value) or ""
  return ("<td%s>%s</td>"):format(by, xml(shown or value == nil and "-" or text.short(value)))
end

-- The best first, then those that a rule stopped, then the others by number.
local function in_order(view)
  local list, seen = {}, {}
  for _, trial in ipairs(view.settled) do list[#list + 1], seen[trial] = trial, true end
  for _, trial in ipairs(view.trials) do
    if not seen[trial] then list[#list + 1] = trial end
  end
  return list
end

local function table_of_trials(view)
  local head = { "trial", "state", view.sweep.objective }
  for _, name in ipairs(view.names) do head[#head + 1] = name end
  head[#head + 1], head[#head + 2] = "steps", "seconds"
  local lines = { "<thead>" .. page.row("th", head) .. "</thead><tbody>" }
  for _, trial in ipairs(in_order(view)) do
    local row = { cell(trial.number, tostring(trial.number)), cell(trial.state), cell(trial.value) }
    for _, name in ipairs(view.names) do row[#row + 1] = cell(trial.params[name]) end
    row[#row + 1] = cell(trial.step)
    row[#row + 1] = cell(trial.seconds, trial.seconds and ("%.1f"):format(trial.seconds) or "-")
    lines[#lines + 1] = ('<tr class="t" data-t="%d">%s</tr>'):format(trial.number,
      table.concat(row))
  end
  return '<table class="trials">' .. table.concat(lines, "\n") .. "</tbody></table>"
end

-- The page of one trial, which the address #t7 shows.
local function page_of(view, trial, curve)
  local lines = {}
  local function add(name, value)
    lines[#lines + 1] = page.row("td", { name, value })
  end
  add("state", trial.state)
  if trial.value then add(view.sweep.objective, text.value(trial.value)) end
  for _, name in ipairs(text.names(trial.values or {})) do
    if name ~= view.sweep.objective then add(name, text.value(trial.values[name])) end
  end
  for _, name in ipairs(text.names(trial.params)) do add(name, text.value(trial.params[name])) end
  if trial.seconds then add("seconds", ("%.1f"):format(trial.seconds)) end
  local shown = curve and learning(view, { curve }, 520, 220) or ""
  local failed = trial.error and ("<pre>%s</pre>"):format((trial.error:gsub("[^\n]+", xml))) or ""
  return ('<article id="t%d"><a class="close" href="#">close</a><h2>Trial %d</h2><table>%s</table>'
    .. "%s%s</article>"):format(trial.number, trial.number, table.concat(lines), shown, failed)
end

local function trial_pages(view, curves)
  local of, list = {}, {}
  for _, curve in ipairs(curves) do of[curve.trial] = curve end
  for i, trial in ipairs(in_order(view)) do
    if i <= MOST_LINES then list[i] = page_of(view, trial, of[trial]) end
  end
  return table.concat(list, "\n")
end

local function importance(view)
  local list = facts.importance(view.settled, view.names)
  if not list then return '<p class="faint">With ten trials or more.</p>' end
  local lines = {}
  for i, entry in ipairs(list) do
    lines[i] = ('<tr><td>%s</td><td class="share"><i style="width:%s%%"></i></td>'
      .. "<td>%.2f</td></tr>"):format(xml(entry.name), place(100 * entry.share), entry.share)
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
        :format(trial.number, xml(trial.state), xml(trial.error:match "[^\n]*"),
          xml(text.params(trial.params)), (trial.error:gsub("[^\n]+", xml)))
    end
  end
  return #lines > 0 and "<h2>What failed</h2>\n" .. table.concat(lines, "\n") or ""
end

-- ---- the page ----------------------------------------------------------------------------------

-- The data that the parts of the page are made from.
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

local function section(title, body)
  return body and ("<h2>%s</h2><section>%s</section>"):format(title, body) or ""
end

local function figures(view, curves)
  if #view.ranked == 0 then
    return "<p>No trial is complete yet.</p>" .. section("Learning curves",
      learning(view, curves, WIDE, 300)) .. section("Trials", table_of_trials(view))
  end
  local each = {}
  for i, name in ipairs(view.names) do each[i] = against(view, name) end
  return table.concat({
    section("History", history(view)),
    section("Learning curves", learning(view, curves, WIDE, 300)),
    section("All parameters", parallel(view)),
    section("Importance", importance(view)),
    "<h2>Each parameter</h2>", '<div class="each">', table.concat(each, "\n"), "</div>",
    section("Trials", table_of_trials(view)),
  }, "\n")
end

local function generator(sweep) return "gpipe-lua sweep " .. sweep.name end

--- The page of a sweep.
---@param sweep gpipe.Sweep
---@return string
function html.render(sweep)
  local view = view_of(sweep)
  local curves = curves_of(view)
  return page.render {
    title = sweep.name, generator = generator(sweep), body = require "gpipe.draw.sweep.page.body",
    style = require "gpipe.draw.sweep.page.style", script = require "gpipe.draw.sweep.page.script",
    parts = {
      HOW = xml(("%s, %s"):format(sweep:goal(), sweep:how())),
      COUNTS = xml(facts.counts(sweep, view.trials)), FIGURES = figures(view, curves),
      FAILURES = failures(view), TRIALS = trial_pages(view, curves),
    },
  }
end

-- Whether the file of a path is a page of the same sweep.
local function is_page_of(sweep, path)
  local there <close> = io.open(path, "rb")
  local head = there and there:read(1000) or ""
  return head:find(page.generator(generator(sweep)), 1, true) ~= nil
end

--- Write the page. A file that is there is replaced only where it is a page of the same sweep, or
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
  local written, message, code = file.write("sweep:html", path, true,
    function() return html.render(sweep) end)
  if not written then return nil, message, code end
  return path
end

return html
