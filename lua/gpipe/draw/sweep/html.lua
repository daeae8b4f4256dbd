-- lua/gpipe/draw/sweep/html.lua - a sweep as one self-contained page: its history, the learning
-- curves, all parameters side by side, each of them against the objective, which of them mattered,
-- a table of all trials, and a page of each.

local escape = require "gpipe.io.escape"
local charts = require "gpipe.draw.sweep.charts"
local file = require "gpipe.draw.file"
local facts = require "gpipe.sweep.report.facts"
local figure = require "gpipe.draw.sweep.figure"
local page = require "gpipe.draw.page"
local text = require "gpipe.sweep.text"

local html = {}

local xml, place = escape.xml, escape.place

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
  local shown = curve and charts.learning(view, { curve }, 520, 220) or ""
  local failed = trial.error and ("<pre>%s</pre>"):format((trial.error:gsub("[^\n]+", xml))) or ""
  return ('<article id="t%d"><a class="close" href="#">close</a><h2>Trial %d</h2><table>%s</table>'
    .. "%s%s</article>"):format(trial.number, trial.number, table.concat(lines), shown, failed)
end

local function trial_pages(view, curves)
  local of, list = {}, {}
  for _, curve in ipairs(curves) do of[curve.trial] = curve end
  for i, trial in ipairs(in_order(view)) do
    if i <= charts.MOST then list[i] = page_of(view, trial, of[trial]) end
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
    shown = table.move(settled, 1, math.min(#settled, charts.MOST), 1, {}),
    tip = function(trial) return figure.tip(sweep, trial) end }
  view.y = #ranked > 0 and charts.value_axis(sweep, settled, 6)
  view.numbers = #ranked > 0 and figure.axis("trial", { 1, math.max(2, #trials) }, 8, "linear")
  return view
end

local function section(title, body)
  return body and ("<h2>%s</h2><section>%s</section>"):format(title, body) or ""
end

local function figures(view, curves)
  if #view.ranked == 0 then
    return "<p>No trial is complete yet.</p>" .. section("Learning curves",
      charts.learning(view, curves, charts.WIDE, 300)) .. section("Trials", table_of_trials(view))
  end
  local each = {}
  for i, name in ipairs(view.names) do each[i] = charts.against(view, name) end
  return table.concat({
    section("History", charts.history(view)),
    section("Learning curves", charts.learning(view, curves, charts.WIDE, 300)),
    section("All parameters", charts.parallel(view)),
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
  local curves = charts.curves(view)
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
