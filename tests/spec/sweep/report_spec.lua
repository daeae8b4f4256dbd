-- tests/spec/sweep/report_spec.lua - reports of a sweep: table, page, importance, the command.
local child = dofile "tests/child.lua"
local facts = require "gpipe.sweep.report.facts"
local gp = require "gpipe"
local xml = require "tests.support.xml"
local sweep = gp.sweep

local folder
before_each(function()
  folder = os.tmpname()
  os.remove(folder)
end)
after_each(function() os.execute("rm -rf " .. folder) end)

local function new(more)
  local o = { name = "s", dir = folder, trials = 20, quiet = true, method = "random",
    minimize = "val_loss", space = { x = sweep.uniform(-1, 1), noise = sweep.uniform(0, 1),
    kind = sweep.choice { "a<b", "c&d" } } }
  for key, value in pairs(more or {}) do o[key] = value end
  return sweep(o)
end

local function valley(params, trial)
  if trial.number == 3 then error "went <wrong>" end
  return { val_loss = params.x ^ 2, accuracy = 1 }
end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

describe("importance", function()
  local function ranked_of(f)
    local s = new { name = "i", trials = 60 }
    s:run(function(params) return { val_loss = f(params) } end)
    return facts.ranked(s, s.trials)
  end

  local function shares(list)
    local by_name = {}
    for _, entry in ipairs(list) do by_name[entry.name] = entry.share end
    return by_name
  end

  it("finds a valley, which no correlation would show, and nothing in noise", function()
    local found = shares(facts.importance(ranked_of(function(p) return (p.x - 0.1) ^ 2 end),
      { "kind", "noise", "x" }))
    assert.is_true(found.x > 0.7, found.x)
    assert.is_true(found.noise < 0.25 and found.kind < 0.2)
  end)

  it("is 1 for a choice that decides alone, and nil for few trials", function()
    local ranked = ranked_of(function(p) return p.kind == "c&d" and 1 or 0 end)
    local found = shares(facts.importance(ranked, { "kind", "x" }))
    assert.is_true(found.kind > 0.7 and found.x < 0.3)
    assert.is_nil(facts.importance({ ranked[1] }, { "x" }))
  end)
end)

describe("a sweep as text", function()
  it("has goal, counts, the best trials in order and the failed ones", function()
    local s = new():run(valley)
    local text = tostring(s)
    assert.is_truthy(text:find("minimize val_loss, random", 1, true), text)
    assert.is_truthy(text:find("19 complete, 1 failed of 20 trials", 1, true), text)
    assert.is_truthy(text:find("went <wrong>", 1, true), text)
    assert.is_truthy(text:find(("\n%d "):format(s.best.number)), text)
    local first = math.tointeger(tonumber(text:match "trial +val_loss[^\n]*\n(%d+)"))
    assert.are.equal(s.best.number, first)
    assert.is_nil(text:find("accuracy", 1, true))
  end)

  it("can be shown before a trial has run, and after all failed", function()
    assert.is_truthy(tostring(new()):find("none run of 20 trials", 1, true))
    local s = new { name = "f", trials = 2 }:run(function() error "x" end)
    assert.is_truthy(tostring(s):find("2 failed of 2", 1, true))
    assert.is_nil(s.best)
    assert.is_truthy(s:html())
  end)
end)

describe("the page of a sweep", function()
  it("is well-formed, has every trial and loads nothing else", function()
    local s = new():run(valley)
    local path = assert(s:html())
    assert.are.equal(folder .. "/s.html", path)
    local page = read(path)
    for number = 1, 20 do assert.is_truthy(page:find(('data-t="%d"'):format(number), 1, true)) end
    for figure in page:gmatch "<svg.-</svg>" do assert(xml.elements(figure)) end
    assert.is_nil(page:find "https?://")
    assert.is_nil(page:find("a<b", 1, true))
    assert.is_truthy(page:find("went &lt;wrong&gt;", 1, true))
    assert.is_nil(page:find "{{%u+}}")
    assert.is_nil(page:find("nan", 1, true))
  end)

  it("replaces only itself, unless an option says otherwise", function()
    local s = new():run(valley)
    assert.is_truthy(s:html())
    assert.is_truthy(s:html())
    local other = folder .. "/other.html"
    local file <close> = assert(io.open(other, "w"))
    file:write "mine"
    file:close()
    local done, message, code = s:html(other)
    assert.is_nil(done)
    assert.are.equal("io", code)
    assert.is_truthy(message:find(other, 1, true))
    assert.are.equal("mine", read(other))
    assert.is_truthy(s:html(other, { force = true }))
    assert.is_truthy(read(other):find "^<!DOCTYPE html>")
    assert.is_nil((s:html "/dev/null/x.html"))
  end)

  it("copes with values that are all the same, infinite, and of one parameter", function()
    local s = new { name = "flat", space = { x = sweep.uniform(0, 1) } }
    s:run(function(_, trial) return { val_loss = trial.number == 2 and math.huge or 1 } end)
    local page = read(assert(s:html()))
    for figure in page:gmatch "<svg.-</svg>" do assert(xml.elements(figure)) end
    assert.is_nil(page:find("nan", 1, true))
    assert.is_nil(page:find('"-?inf"'))
  end)

  it("is drawn by a browser without an error", function()
    if not child.has "chromium" then return pending "no chromium" end
    local path = assert(new():run(valley):html())
    local out, err = child.shell(("chromium --headless --no-sandbox --disable-gpu --enable-logging="
      .. "stderr --dump-dom %s 2>%s.err; grep -c CONSOLE %s.err"):format(path, path, path))
    assert.is_truthy(out:find("<svg", 1, true), err)
    assert.is_truthy(out:find "\n0\n$", err)
  end)
end)

describe("the axes of a sweep's page", function()
  it("have the scale by which parameters are drawn, and say so", function()
    local s = new { space = { dropout = sweep.uniform(0, 0.5), lr = sweep.log(1e-5, 1e-1) } }
    s:run(function(p) return { val_loss = p.dropout + p.lr } end)
    local page = read(assert(s:html()))
    assert.is_truthy(page:find(">lr (logarithmic)<", 1, true))
    assert.is_truthy(page:find(">lr (log)<", 1, true))
    assert.is_nil(page:find("dropout (log", 1, true))
    assert.is_truthy(page:find(">val_loss", 1, true))
  end)
end)

describe("learning curves, the table and the page of each trial", function()
  local function learn(params, trial)
    for step = 1, 8 do
      if trial:report(step, params.x ^ 2 + 1 / step) then return end
    end
  end

  it("show all trials, also stopped and failed ones", function()
    local s = new { stop = "asha", trials = 30 }
    s:run(function(params, trial)
      if trial.number == 5 then trial:report(1, 3) error "broken <b>" end
      return learn(params, trial)
    end)
    local page = read(assert(s:html()))
    assert.is_truthy(page:find("Learning curves", 1, true))
    local curves = page:match "Learning curves.-</svg>"
    for number = 1, 30 do
      assert.is_truthy(curves:find(('data-t="%d"'):format(number), 1, true), number)
      assert.is_truthy(page:find(('<tr class="t" data-t="%d">'):format(number), 1, true), number)
      assert.is_truthy(page:find(('<article id="t%d">'):format(number), 1, true), number)
    end
    assert.is_truthy(page:find("broken &lt;b&gt;", 1, true))
  end)

  it("sort, and open a trial, in a browser", function()
    if not child.has "chromium" then return pending "no chromium" end
    local path = assert(new():run(function(p, t) return learn(p, t) end):html())
    local text = read(path):gsub("</body>", [=[<script>
      document.querySelectorAll(".trials th")[0].click();
      const first = document.querySelector(".trials tbody tr").dataset.t;
      document.querySelector('circle[data-t="4"]').dispatchEvent(new MouseEvent("click", {bubbles: true}));
      document.title = "first " + first + " at " + location.hash;
    </script></body>]=])
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local out = child.shell("chromium --headless --no-sandbox --disable-gpu --dump-dom " .. path)
    assert.is_truthy(out:find("<title>first 1 at #t4</title>", 1, true), out:sub(1, 600))
  end)
end)

describe("a damaged file of a sweep", function()
  local function damaged(sql)
    local s = new():run(valley)
    local path = s.path
    local db = assert(require("gpipe.core").database(path))
    assert(db:run(sql))
    db:close()
    local good, text = pcall(function() return new().trials end)
    assert.is_false(good, "it was read")
    assert.is_truthy(text:find(path, 1, true), text)
    assert.is_truthy(text:find("damaged", 1, true), text)
    return text
  end

  for sql, words in pairs {
    ["DELETE FROM sweep"] = "no row",
    ["UPDATE trial SET value = NULL WHERE number = 7"] = "trial 7: it is complete without a value",
    ["UPDATE trial SET params = '12' WHERE number = 7"] = "trial 7: the parameters are",
    ["UPDATE trial SET params = '{' WHERE number = 7"] = "trial 7: the parameters are no JSON",
    ["UPDATE trial SET params = '{\"x\": 1e999}' WHERE number = 7"] = "trial 7: ",
    ["UPDATE trial SET params = '{\"x\": [1]}' WHERE number = 7"] = "trial 7: 'x'",
    ["UPDATE trial SET state = '<script>' WHERE number = 7"] = "trial 7: the state is",
    ["UPDATE trial SET value = 'low' WHERE number = 7"] = "trial 7: value is",
    ["ALTER TABLE report RENAME TO other"] = "'report' is missing",
  } do
    it("is an error that names the trial: " .. words, function()
      local said = damaged(sql)
      assert.is_truthy(said:find(words, 1, true), said)
    end)
  end

  it("is not read through a view", function()
    local s = new():run(valley)
    local db = assert(require("gpipe.core").database(s.path))
    assert(db:run "ALTER TABLE trial RENAME TO other")
    assert(db:run([[CREATE VIEW trial AS WITH RECURSIVE n(number) AS (SELECT 1 UNION ALL SELECT
      number + 1 FROM n) SELECT number, 1 AS changed FROM n]]))
    db:close()
    local good, text = pcall(function() return new().trials end)
    assert.is_false(good)
    assert.is_truthy(text:find("'trial' is a view", 1, true), text)
  end)
end)

describe("gpipe-lua sweep", function()
  local SCRIPT = [[
    local gp = require "gpipe"
    local s = gp.sweep {name = "s", dir = %q, trials = 4, quiet = true, %s
      space = {x = gp.sweep.uniform(-1, 1)}}
    return %s]]

  local function run(options, result, ...)
    local path = child.file(SCRIPT:format(folder, options, result))
    local out, err, code = child.run { "sweep", path, ... }
    os.remove(path)
    return out, err, code
  end

  it("runs what a script returns, and prints its table", function()
    local out, err, code = run("", "{s, function(p) return p.x end}")
    assert.are.equal(0, code, err)
    assert.is_truthy(out:find("4 complete of 4 trials", 1, true), out)
    out, err, code = run("objective = function(p) return p.x end,", "s", "--trials", "6",
      "--html", folder .. "/page.html")
    assert.are.equal(0, code, err)
    assert.is_truthy(out:find("6 complete of 6 trials", 1, true), out)
    assert.is_truthy(read(folder .. "/page.html"):find("<svg", 1, true))
  end)

  it("gives the script its own name as arg[0], and no arguments", function()
    local out, err, code = run("objective = function() return 1 end, minimize = arg[0] .. #arg,", "s")
    assert.are.equal(0, code, err)
    assert.is_truthy(out:find "minimize /[%w_/]+0,", out)
  end)

  it("runs trials in processes", function()
    local out, err, code = run("objective = function(p) return p.x end,", "s", "--parallel", "2")
    assert.are.equal(0, code, err)
    assert.is_truthy(out:find("4 complete of 4 trials", 1, true), out)
    assert.is_truthy(read(folder .. "/s.worker-1.txt"))
  end)

  it("says what is wrong, and exits with 2 for arguments, with 1 for the script", function()
    for _, case in ipairs {
      { "", "s", 1, "function" }, { "", "5", 1, "returned 5" }, { "", "{}", 1, "without a sweep" },
      { "", "s", 2, "did you mean '--trials'", "--trails" }, { "", "s", 2, "--trials", "--trials=x" },
    } do
      local _, err, code = run(case[1], case[2], case[5])
      assert.are.equal(case[3], code, err)
      assert.is_truthy(err:find(case[4], 1, true), err)
    end
    local _, err, code = child.run { "sweep" }
    assert.are.equal(2, code)
    assert.is_truthy(err:find("usage: gpipe-lua sweep FILE...", 1, true), err)
    local out
    out, err, code = child.run { "sweep", "--help" }
    assert.are.equal(0, code, err)
    assert.is_truthy(out:find("--parallel N", 1, true), out)
    _, err, code = child.run { "sweep", "/nonexistent.lua" }
    assert.are.equal(1, code)
    assert.is_truthy(err:find("/nonexistent.lua", 1, true), err)
  end)
end)
