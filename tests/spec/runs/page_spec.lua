-- tests/spec/runs/page_spec.lua - the page of runs: its data, what it may load, and how a browser
-- shows it.

local browser = require "tests.support.browser"
local child = dofile "tests/child.lua"
local gp = require "gpipe"
local json = require "tests.support.json"
local run_folder = require "tests.support.run_folder"

local EVIL = "</script><img src=x onerror=alert(1)><b>"

local root
before_each(function() root = run_folder.root() end)
after_each(function() run_folder.remove(root) end)

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- Makes two runs, one of them with a name, a config and a picture that try to be markup.
local function make_runs()
  run_folder.make(root, "good", { step = 3000, config = '"lr":0.1,"net":{"width":64,"depth":2}' })
  local path = run_folder.make(root, "evil", { step = 40, name = EVIL:gsub('"', ""), reason = EVIL,
    state = "failed", config = ('"lr":0.2,"net":{"width":64,"depth":2},"%s":"%s"'):format(EVIL, EVIL) })
  run_folder.write(path .. "/timeline.svg", '<svg xmlns="http://www.w3.org/2000/svg" width="10" '
    .. 'height="10"><script>alert(2)</script></svg>')
  run_folder.write(path .. "/memory.json", '[{"device":"cpu:0","planned":100,"measured":90,'
    .. '"parts":{"parameters":40,"gradients":"none"}},7]')
end

local function page_of(opts)
  local path = root .. "/page.html"
  assert(gp.runs(root):html(path, opts))
  local text = read(path)
  return text, json.read(text:match '<script id="data" type="application/json">(.-)</script>'), path
end

describe("the page of runs", function()
  it("holds the curves with their extremes, the configs and the memory", function()
    make_runs()
    local _, data = page_of()
    assert.equal(2, #data.runs)
    assert.same({ "loss", "val_loss" }, { data.charts[1].name, data.charts[2].name })
    for _, chart in ipairs(data.charts) do
      assert.equal(2, #chart.curves)
      for _, curve in ipairs(chart.curves) do
        assert.is_true(#curve.x <= 1000 and #curve.x == #curve.high and #curve.x == #curve.mean)
      end
    end
    local by_name = {}
    for _, run in ipairs(data.runs) do by_name[run.name] = run end
    assert.equal(64, by_name.good.config.net.width)
    assert.same({ { device = "cpu:0", planned = 100, measured = 90, parts = { parameters = 40 } } },
      { by_name[EVIL].memory[1] })
    assert.equal("rate", data.machine[3].name)
  end)

  it("loads nothing from elsewhere, and no name ends its scripts", function()
    make_runs()
    local text = page_of()
    assert.is_nil(text:gsub("http://www.w3.org/2000/svg", ""):find "https?://")
    assert.is_nil(text:find "{{" or text:find "@import")
    assert.equal(2, select(2, text:gsub("</script>", "")))
    assert.is_nil(text:find("<img", 1, true) or text:find("<b>", 1, true))
    assert.is_truthy(text:find("default-src &#39;none&#39;", 1, true))
  end)

  it("shows runs that logged nothing", function()
    run_folder.make(root, "a", { step = 0 })
    run_folder.write(root .. "/a/log.jsonl", "")
    local _, data = page_of()
    assert.equal(1, #data.runs)
  end)

  it("replaces no other file", function()
    make_runs()
    run_folder.write(root .. "/there.html", "precious")
    local _, err, code = child.run { "plot", root, "--html", root .. "/there.html" }
    assert.equal(1, code)
    assert.is_truthy(err:find("there.html", 1, true))
    assert.equal("precious", read(root .. "/there.html"))
    assert.equal(0, (select(3, child.run { "plot", root, "--html", root .. "/there.html",
      "--force" })))
    assert.matches("^<!DOCTYPE", read(root .. "/there.html"))
  end)

  it("is drawn by a browser without an error", function()
    if not browser.find() then return pending "no chromium" end
    make_runs()
    local _, _, path = page_of()
    local document, complaints = browser.document("file://" .. path)
    assert.same({}, complaints)
    assert.equal(2, select(2, document:gsub("<script", "")))
    document = document:gsub("<script.->.-</script>", "")
    local function count(what) return select(2, document:gsub(what, "")) end
    assert.equal(2 + 3, count "<figure>") -- loss, val_loss; rate, memory of two devices
    assert.equal(0, count "onerror=alert%(1%)>") -- no markup, because texts are escaped
    assert.equal(1, count "<img ")
    assert.equal(1, count 'class="state failed"')
    assert.equal(2, count 'class="differs"')
    assert.is_nil(document:match "<main>.*</main>":find "NaN")
  end)
end)
